package find

import (
	"fmt"
	"slices"
	"strings"
)

// Engine describes an external engine, installed or not.
type Engine struct {
	// Name is the name on the command line, Title the display name.
	Name, Title string
	// Formats are the model formats that it reads: "onnx", "tflite".
	Formats []string
	// Variable is the environment variable that names its library or its folder, "" for none.
	Variable string
	// Program says that the engine is compiled into a program whose command line the user gives.
	// It has no library to search for.
	Program bool

	stem   string // of the library's name: lib + stem + .so
	pip    string // the package to install, "" if Python has none
	get    string // how to get it otherwise
	python []pythonPackage
	node   []nodePackage
	// folders lists patterns of folders below an installation that hold the library.
	folders []string
}

// pythonPackage is a Python package that contains the library, or did in some release.
type pythonPackage struct {
	folder string // in site-packages
	libs   string // folder below it that has the library, "" for the folder itself
	module string // how the names of the extension modules in libs begin
	// dists are the distributions that install the folder, by their dist-info names.
	dists []string
}

// nodePackage is a Node package that contains the library.
type nodePackage struct {
	name string
	libs string // pattern of folders with it; PLATFORM and ARCH stand for Node's words
}

// Engines lists the external engines.
var Engines = []Engine{
	{
		Name: "onnxruntime", Title: "ONNX Runtime", Formats: []string{"onnx"}, Variable: "OPMETER_ONNXRUNTIME",
		stem: "onnxruntime", pip: "onnxruntime",
		python: []pythonPackage{{"onnxruntime", "capi", "onnxruntime_pybind11_state", []string{
			"onnxruntime", "onnxruntime_gpu", "onnxruntime_openvino", "onnxruntime_directml", "onnxruntime_training", "onnxruntime_qnn",
			"onnxruntime_rocm", "onnxruntime_migraphx", "onnxruntime_vitisai", "onnxruntime_webgpu", "ort_nightly", "ort_nightly_gpu", "ort_nightly_directml",
		}}},
		node:    []nodePackage{{"onnxruntime-node", "bin/napi-v*/PLATFORM/ARCH"}},
		folders: []string{"lib", "lib64", "bin", "onnxruntime*/lib", "onnxruntime*/lib64", "runtimes/*/native"},
	},
	{
		Name: "litert", Title: "LiteRT", Formats: []string{"tflite"}, Variable: "OPMETER_LITERT",
		stem: "LiteRt", pip: "ai-edge-litert",
		python: []pythonPackage{{"ai_edge_litert", "", "_pywrap_", []string{"ai_edge_litert", "ai_edge_litert_nightly"}}},
		// The library's own releases are archives with one folder per platform.
		folders: []string{"lib", "lib64", "bin", "litert*/lib"},
	},
	{
		Name: "tflite", Title: "TensorFlow Lite", Formats: []string{"tflite"}, Variable: "OPMETER_TFLITE",
		stem: "tensorflowlite_c", get: "build the target //tensorflow/lite/c:tensorflowlite_c of TensorFlow",
		python:  []pythonPackage{{"tflite_runtime", "", "_pywrap_", []string{"tflite_runtime"}}},
		folders: []string{"lib", "lib64", "bin", "tensorflow*/lib", "tflite*/lib"},
	},
	{
		Name: "openvino", Title: "OpenVINO", Formats: []string{"onnx", "tflite"}, Variable: "OPMETER_OPENVINO",
		stem: "openvino_c", pip: "openvino",
		python: []pythonPackage{{"openvino", "libs", "", []string{"openvino", "openvino_nightly"}}},
		folders: []string{
			"lib", "lib64", "bin",
			"runtime/lib/INTEL", "runtime/lib/INTEL/Release", "runtime/bin/INTEL/Release",
			"openvino*/runtime/lib/INTEL", "openvino*/runtime/lib/INTEL/Release", "openvino*/runtime/bin/INTEL/Release",
		},
	},
	{Name: Micro, Title: "TensorFlow Lite Micro", Formats: []string{"tflite"}, Program: true},
}

// Names of engines without a library: opmeter's own engine, and TensorFlow Lite Micro, which is
// compiled into programs.
const (
	Native = "opmeter"
	Micro  = "tflm"
)

// known returns the engine with this name, nil if there is no such engine.
func known(name string) *Engine {
	for i := range Engines {
		if Engines[i].Name == name {
			return &Engines[i]
		}
	}
	return nil
}

// names lists the engines for a message.
func names() string {
	all := []string{Native}
	for i := range Engines {
		all = append(all, Engines[i].Name)
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// About returns the engine with this name; ok is false if there is no such engine.
func About(name string) (e Engine, ok bool) {
	if p := known(name); p != nil {
		return *p, true
	}
	return Engine{}, false
}

// Absent says that the engine was not found and how to install it on an operating system (a GOOS
// value).
func (g *Engine) Absent(system string) string {
	if g.Program {
		return g.Title + " is never searched for: " + g.advice(system)
	}
	return "no " + g.Title + " here: " + g.advice(system)
}

func (g *Engine) advice(system string) string {
	if g.Program {
		return "name a program that has it with --engine " + g.Name + "=PROGRAM"
	}
	get := g.get
	if g.pip != "" {
		get = "pip install " + g.pip
	}
	folder := "/path/to/"
	if system == "windows" {
		folder = `C:\path\to\`
	}
	return fmt.Sprintf("%s, or --engine %s=%s%s", get, g.Name, folder, g.file(system))
}

// file returns the name of the library on a system.
func (g *Engine) file(system string) string {
	switch system {
	case "windows":
		if g.stem == "LiteRt" {
			return "libLiteRt.dll"
		}
		return g.stem + ".dll"
	case "darwin":
		return "lib" + g.stem + ".dylib"
	}
	return "lib" + g.stem + ".so"
}

// library reports whether a file name is the engine's library, and the version in the name.
func (g *Engine) library(system, name string) (version string, ok bool) {
	switch system {
	case "windows":
		base, dll := cutSuffixFold(name, ".dll")
		return "", dll && (strings.EqualFold(base, g.stem) || strings.EqualFold(base, "lib"+g.stem))
	case "darwin":
		base, dylib := strings.CutSuffix(name, ".dylib")
		version, ok = strings.CutPrefix(base, "lib"+g.stem)
		if !dylib || !ok {
			return "", false
		}
	default:
		if version, ok = strings.CutPrefix(name, "lib"+g.stem+".so"); !ok {
			return "", false
		}
	}
	if version == "" {
		return "", true
	}
	version, dot := strings.CutPrefix(version, ".")
	if !dot || strings.Trim(version, "0123456789.") != "" || len(version) > 40 {
		return "", false
	}
	return g.told(version), true
}

// told converts the version part of a file name.
func (g *Engine) told(s string) string {
	switch {
	case g.Name == "openvino" && len(s) == 4 && !strings.Contains(s, "."):
		// Two digits of the year, release, patch.
		return fmt.Sprintf("20%s.%c.%c", s[:2], s[2], s[3])
	case !strings.Contains(s, "."):
		return "" // the number of an interface, as in libonnxruntime.so.1
	}
	return s
}

// inside lists the patterns of folders of an installation that hold the library.
func (g *Engine) inside(e *Env) []string {
	intel := map[string]string{"amd64": "intel64", "arm64": "arm64"}[e.Arch]
	if e.Arch == "arm64" && e.OS == "linux" {
		intel = "aarch64"
	}
	var out []string
	for _, f := range g.folders {
		if strings.Contains(f, "INTEL") {
			if intel == "" {
				continue
			}
			f = strings.ReplaceAll(f, "INTEL", intel)
		}
		out = append(out, f)
	}
	return slices.Compact(out)
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n >= 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n], true
	}
	return s, false
}
