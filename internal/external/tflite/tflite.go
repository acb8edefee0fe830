//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package tflite

import (
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/opmeter/opmeter/internal/external"
)

// api holds the functions of the library.
type api struct {
	version                                         uintptr
	createModel, deleteModel                        uintptr
	createOptions, deleteOptions, threads, delegate uintptr
	create, remove, allocate, invoke                uintptr
	inputs, input, resize, outputs, output          uintptr
	kind, rank, dim, size, data, name               uintptr
	createXNNPACK, deleteXNNPACK                    uintptr // 0 in builds without it
}

func (a *api) table() []symbol {
	return []symbol{
		{"TfLiteVersion", &a.version},
		{"TfLiteModelCreateFromFile", &a.createModel},
		{"TfLiteModelDelete", &a.deleteModel},
		{"TfLiteInterpreterOptionsCreate", &a.createOptions},
		{"TfLiteInterpreterOptionsDelete", &a.deleteOptions},
		{"TfLiteInterpreterOptionsSetNumThreads", &a.threads},
		{"TfLiteInterpreterOptionsAddDelegate", &a.delegate},
		{"TfLiteInterpreterCreate", &a.create},
		{"TfLiteInterpreterDelete", &a.remove},
		{"TfLiteInterpreterAllocateTensors", &a.allocate},
		{"TfLiteInterpreterInvoke", &a.invoke},
		{"TfLiteInterpreterGetInputTensorCount", &a.inputs},
		{"TfLiteInterpreterGetInputTensor", &a.input},
		{"TfLiteInterpreterResizeInputTensor", &a.resize},
		{"TfLiteInterpreterGetOutputTensorCount", &a.outputs},
		{"TfLiteInterpreterGetOutputTensor", &a.output},
		{"TfLiteTensorType", &a.kind},
		{"TfLiteTensorNumDims", &a.rank},
		{"TfLiteTensorDim", &a.dim},
		{"TfLiteTensorByteSize", &a.size},
		{"TfLiteTensorData", &a.data},
		{"TfLiteTensorName", &a.name},
	}
}

type symbol struct {
	name string
	at   *uintptr
}

// library is an open TensorFlow Lite library.
type library struct {
	api   *api
	about external.About
}

const advice = "Name libtensorflowlite_c.so of TensorFlow Lite 2.4 or later, or use LiteRT (the PyPI package ai-edge-litert)."

// Open opens a library by its path. Errors are an [external.Error]. It stays open for the life of
// the process.
func Open(path string) (external.Library, error) {
	h, err := open(path)
	if err != nil {
		return nil, external.Errorf(external.NotLibrary, "%s cannot be opened as a library of TensorFlow Lite: %v. %s", path, err, advice)
	}
	a := &api{}
	known, missing := 0, ""
	for _, s := range a.table() {
		if *s.at, err = find(h, s.name); err != nil || *s.at == 0 {
			if missing == "" {
				missing = s.name
			}
			continue
		}
		known++
	}
	switch {
	case known == 0:
		return nil, external.Errorf(external.NotLibrary, "%s is a library, but not the C library of TensorFlow Lite: it has none of its functions. %s", path, advice)
	case missing != "":
		return nil, external.Errorf(external.TooOld, "%s is a TensorFlow Lite without %s. %s", path, missing, advice)
	}
	l := &library{api: a, about: external.About{Engine: "tflite", Title: "TensorFlow Lite", Version: text(pointer(a.version)), Formats: []string{"tflite"}, Providers: []string{"cpu"}}}
	a.createXNNPACK, err = find(h, "TfLiteXNNPackDelegateCreate")
	if err == nil {
		a.deleteXNNPACK, err = find(h, "TfLiteXNNPackDelegateDelete")
	}
	if err != nil || a.createXNNPACK == 0 || a.deleteXNNPACK == 0 {
		a.createXNNPACK, a.deleteXNNPACK = 0, 0
	} else {
		l.about.Providers = append(l.about.Providers, "xnnpack")
		l.about.Options = options
	}
	return l, nil
}

var options = []external.OptionInfo{{Key: "xnnpack", Values: "default, on", Doc: "on: operators that XNNPACK has, those of quantised models included, are given to it; default: what the library does by itself."}}

// About describes the library.
func (l *library) About() external.About { return l.about }

// parse parses the options of a task: whether XNNPACK is requested.
func (l *library) parse(given []external.Option) (on bool, err error) {
	for _, o := range given {
		switch {
		case o.Key != "xnnpack":
			return false, external.Errorf(external.NoOption, "TensorFlow Lite has no option %q here; there is xnnpack", o.Key)
		case o.Value == "default":
			on = false
		case o.Value != "on":
			return false, external.Errorf(external.NoOption, "xnnpack=%s: expected default or on", o.Value)
		case l.api.createXNNPACK == 0:
			return false, external.Errorf(external.NoProvider, "This TensorFlow Lite was built without XNNPACK. %s", advice)
		default:
			on = true
		}
	}
	return on, nil
}

// call calls a function. Pointers in args are not moved until it returns.
//
//go:uintptrescapes
func call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// pointer calls a function that returns a pointer into the library's memory.
//
//go:uintptrescapes
func pointer(fn uintptr, args ...uintptr) unsafe.Pointer {
	r, _, _ := purego.SyscallN(fn, args...)
	return *(*unsafe.Pointer)(unsafe.Pointer(&r))
}

// number calls a function whose result is an int32.
//
//go:uintptrescapes
func number(fn uintptr, args ...uintptr) int {
	r, _, _ := purego.SyscallN(fn, args...)
	return int(int32(uint32(r))) //nolint:gosec // the result is in the low half
}

// text copies a C string of bounded length.
func text(p unsafe.Pointer) string {
	const most = 1 << 16
	if p == nil {
		return ""
	}
	n := 0
	for n < most && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return strings.ToValidUTF8(string(unsafe.Slice((*byte)(p), n)), "\ufffd")
}
