package testengine_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// asProgram makes the program of these tests opmeter itself.
const asProgram = "OPMETER_TEST_PROGRAM"

// shared is a folder that is there until all tests have ended.
var shared string

// realHelper builds opmeter-engine with the engines that people ship, once.
var realHelper = sync.OnceValues(func() (string, error) {
	helper := filepath.Join(shared, "real", "opmeter-engine")
	out, err := exec.Command("go", "build", "-o", helper, "github.com/opmeter/opmeter/cmd/opmeter-engine").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return helper, err
})

// library finds the library of an engine below the folder of unpacked packages, and skips without
// it.
func library(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	list, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if dir == "" || len(list) == 0 {
		material.Skip(t, pattern+" is absent: set OPMETER_TEST_ENGINES to a folder of unpacked packages")
	}
	return list[len(list)-1]
}

// alone runs opmeter as somebody new does: nothing in the environment but four folders without a
// file, those of the system's temporary files, of the user, of the user's caches, and the working
// one. It returns what is in them afterwards.
func alone(t *testing.T, args ...string) (out string, left []string) {
	t.Helper()
	helper, err := realHelper()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder := func(name string) string {
		f := filepath.Join(dir, name)
		if err := os.Mkdir(f, 0o700); err != nil {
			t.Fatal(err)
		}
		return f
	}
	c := exec.Command(self, args...)
	c.Dir = folder("here")
	// Nothing that says that this is a test or a build: libraries behave otherwise there.
	c.Env = []string{
		asProgram + "=1", "OPMETER_ENGINE=" + helper, "PATH=" + os.Getenv("PATH"),
		"HOME=" + folder("home"), "XDG_CACHE_HOME=" + folder("caches"), "TMPDIR=" + folder("temp"),
	}
	b, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("opmeter %s: %v\n%s", strings.Join(args, " "), err, b)
	}
	folders := []string{"caches", "here", "home", "temp"}
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, bad := filepath.Rel(dir, path); bad == nil && name != "." && !slices.Contains(folders, name) {
			left = append(left, name)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	return string(b), left
}

// Engines leave nothing behind, whatever is asked of them: no profile, no optimised model, no
// cache, no number of the computer.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	const ort116, ort120, ort = "onnxruntime_node-1.16.*/package/bin/napi-v3/linux/x64/libonnxruntime.so.1.*", "onnxruntime-1.20.*/onnxruntime/capi/libonnxruntime.so.1.*", "onnxruntime-1.32.*/onnxruntime/capi/libonnxruntime.so.1.*"
	const litert, tflite, openvino = "ai_edge_litert-*/ai_edge_litert/libLiteRt.so", "tfjs_tflite_node-*/package/cc_deps/linux_amd64/libtensorflowlite_c.so", "openvino-*/openvino/libs/libopenvino_c.so*"
	digits, quantised := material.Path(t, "models", "real", "winml_mnist.onnx"), material.Path(t, "models", "mcu", "tinymaix_mnist_valid_q.tflite")
	// weights in a file of their own
	beside := material.Path(t, "models", "synthetic", "synth_mlp_external_data.onnx")
	for _, c := range []struct{ name, engine, lib, model, args string }{
		{"1.16", "onnxruntime", ort116, digits, ""},
		{"1.16 none", "onnxruntime", ort116, digits, "--engine-option optimization=none"},
		{"1.20 none", "onnxruntime", ort120, digits, "--engine-option optimization=none"},
		{"1.20 basic", "onnxruntime", ort120, digits, "--engine-option optimization=basic"},
		{"1.20 extended", "onnxruntime", ort120, digits, "--engine-option optimization=extended"},
		{"1.20", "onnxruntime", ort120, beside, ""},
		{"1.32 none", "onnxruntime", ort, digits, "--engine-option optimization=none"},
		{"1.32 basic", "onnxruntime", ort, digits, "--engine-option optimization=basic"},
		{"1.32 extended", "onnxruntime", ort, digits, "--engine-option optimization=extended"},
		{"1.32 layout", "onnxruntime", ort, digits, "--engine-option optimization=layout"},
		{"1.32", "onnxruntime", ort, beside, ""},
		{"1.32 streams", "onnxruntime", ort, digits, "--streams 2"},
		{"1.32 cold", "onnxruntime", ort, digits, "--cold=start"},
		{"1.32 check", "onnxruntime", ort, digits, "--check"},
		{"openvino", "openvino", openvino, digits, ""},
		{"openvino streams", "openvino", openvino, quantised, "--streams 2"},
		{"litert", "litert", litert, quantised, ""},
		{"litert builtin", "litert", litert, quantised, "--engine-option kernel=builtin --streams 2"},
		{"tflite", "tflite", tflite, quantised, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"profile", c.model, "--engine", c.engine + "=" + library(t, c.lib), "--runs", "3", "--warmup", "0"}
			if out, left := alone(t, append(args, strings.Fields(c.args)...)...); len(left) > 0 {
				t.Errorf("left: %v\n%s", left, out)
			}
		})
	}
	for _, c := range []struct{ engine, lib, version string }{
		{"onnxruntime", ort, "1.32"}, {"openvino", openvino, "2026"}, {"litert", litert, "2."},
	} {
		t.Run("engines "+c.engine, func(t *testing.T) {
			t.Parallel()
			// Named by a variable the others are not looked for.
			out, left := alone(t, "engines", c.engine+"="+library(t, c.lib))
			if len(left) > 0 || !strings.Contains(out, c.version) {
				t.Errorf("left: %v\n%s", left, out)
			}
		})
	}
}
