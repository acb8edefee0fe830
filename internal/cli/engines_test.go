package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// shelf is a computer with three libraries of ONNX Runtime: one that opens, one that crashes, and
// a text in place of one.
func shelf(t *testing.T) (k catalogue, paths [3]string) {
	t.Helper()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the made-up libraries are those of Linux here")
	}
	dir := t.TempDir()
	e := find.Here()
	e.Home, e.Dir = dir, dir
	e.Files = below{dir, e.Files}
	names := map[string]string{}
	for i, v := range []string{"a", "b", "c"} {
		capi := filepath.Join(dir, v, "lib", "python3.11", "site-packages", "onnxruntime", "capi")
		if err := os.MkdirAll(capi, 0o755); err != nil {
			t.Fatal(err)
		}
		from, err := testengine.Write(dir, testengine.Behaviour{})
		if err != nil {
			t.Fatal(err)
		}
		paths[i] = filepath.Join(capi, "libonnxruntime.so.1.2"+string(rune('0'+i)))
		if err := os.Rename(from, paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(paths[2], []byte("a text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	helper := filepath.Join(dir, "opmeter-engine")
	if err := os.WriteFile(helper, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	names["VIRTUAL_ENV"], names["CONDA_PREFIX"] = filepath.Join(dir, "a"), filepath.Join(dir, "b")
	names["PYTHONPATH"] = filepath.Join(dir, "c", "lib", "python3.11", "site-packages")
	names["OPMETER_ENGINE"] = helper
	e.OS, e.Getenv = "linux", func(n string) string { return names[n] }
	return catalogue{e, func(_ context.Context, h, engine, library string) (external.About, error) {
		if h != helper || engine != "onnxruntime" {
			return external.About{}, errors.New("another helper or engine")
		}
		if library == paths[1] {
			return external.About{}, external.Errorf(external.Crashed, "it crashed")
		}
		return external.About{
			Engine: engine, Title: "ONNX Runtime", Version: "1.20.7", Formats: []string{"onnx"}, Providers: []string{"CPUExecutionProvider"},
			Options: []external.OptionInfo{{Key: "optimization", Values: "none, all", Doc: "how far the model is changed"}}, Gives: []string{"latency_s"},
		}, nil
	}}, paths
}

// below is a file system of which only a folder can be seen.
type below struct {
	dir string
	find.Files
}

func (b below) List(dir string) []string {
	if !strings.HasPrefix(dir, b.dir) {
		return nil
	}
	return b.Files.List(dir)
}

// A crash of one library is a line, and not the end of the list.
func TestEngines(t *testing.T) {
	t.Parallel()
	k, paths := shelf(t)
	var out bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &out)
	if err := a.engines(context.Background(), k, "table", false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"engine ", "\nopmeter ", "built-in", "\nonnxruntime  1.20.7 ", " CPU ", " " + paths[0] + "\n", " crashed ", " not_library ",
		"\n" + paths[1] + ": it crashed\n", "\n" + paths[2] + " is a text file, not a shared library: pip install onnxruntime, or ",
		"\nno OpenVINO here: pip install openvino, or --engine openvino=/path/to/libopenvino_c.so\n",
		"\nTensorFlow Lite Micro is never searched for: name a program that has it with --engine tflm=PROGRAM\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := a.engines(context.Background(), k, "json", false); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Engines []struct {
			Engine, Version, Path, Where, Problem, Help string
			About                                       *external.About
			Error                                       *external.Error
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if e := doc.Engines; len(e) != 8 || e[1].About.Providers[0] != "CPUExecutionProvider" || e[2].Error.Code != external.Crashed || e[3].Problem != "not_library" || e[4].Problem != "absent" {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	if err := a.engines(context.Background(), k, "csv", true); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 10 || lines[2] != "onnxruntime,1.20,python,,"+paths[0]+",onnx,,,," {
		t.Errorf("%s", out.String())
	}
}

func TestEngine(t *testing.T) {
	t.Parallel()
	k, paths := shelf(t)
	for _, c := range []struct {
		name, format string
		status       int
		want         []string
	}{
		{"onnxruntime", "table", 0, []string{
			"onnxruntime  ONNX Runtime 1.20.7\n  library    " + paths[0] + "\n", "providers  CPUExecutionProvider\n", "  says       time\n",
			"--engine-option KEY=VALUE:\n  optimization=none, all\n      how far the model is changed\n", "\nThere is also:\n  1.21  " + paths[1] + "\n",
		}},
		{"opmeter", "table", 0, []string{"opmeter  opmeter ", "formats    onnx, tflite\n"}},
		{"onnxruntime@1.20", "json", 0, []string{`"version": "1.20",`, `"key": "optimization"`}},
		{"onnxruntime@1.21", "table", statusSource, []string{"it crashed"}},
		{"onnxruntime@1.9", "table", statusSource, []string{"no ONNX Runtime 1.9 here, there is 1.20, 1.21: pip install 'onnxruntime==1.9.*', or"}},
		{"onnxruntime@1.19=" + paths[0], "table", statusSource, []string{"ONNX Runtime 1.19 was asked for, the library is of version 1.20.7"}},
		{"litert", "table", statusSource, []string{"no LiteRT here: pip install ai-edge-litert"}},
		{"steam", "table", statusUse, []string{`"steam" is not an engine: use opmeter, onnxruntime`}},
		{"opmeter,litert", "table", statusUse, []string{"one engine at a time"}},
	} {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &out)
		err := a.engine(context.Background(), k, c.name, c.format, false)
		status := 0
		if e, ok := errors.AsType[*statusError](err); ok {
			status = e.status
			out.WriteString(err.Error())
		}
		if status != c.status || (err != nil) != (status != 0) {
			t.Errorf("%s: %v, status %d, want %d", c.name, err, status, c.status)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, out.String())
			}
		}
	}
}
