package tflite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// engine opens the TensorFlow Lite among the engines for tests: that of the npm package
// tfjs-tflite-node.
func engine(t *testing.T) external.Library {
	t.Helper()
	dir := os.Getenv("OPMETER_TEST_ENGINES")
	found, _ := filepath.Glob(filepath.Join(dir, "tfjs_tflite_node-*", "package", "cc_deps", runtime.GOOS+"_"+runtime.GOARCH, "libtensorflowlite_c.*"))
	if dir == "" || len(found) == 0 {
		material.Skip(t, "no TensorFlow Lite: set OPMETER_TEST_ENGINES to a folder with the unpacked npm package tfjs-tflite-node in tfjs_tflite_node-0.0.2")
	}
	lib, err := Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// adding is a model that adds 1, 2, 3 to rows of three.
func adding(t *testing.T, op, domain string) string {
	t.Helper()
	value := func(id int, name string, shape ...int) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: shape, HasShape: true, Offset: -1}
	}
	c := value(1, "c", 3)
	c.Const = &tensor.Tensor{Type: tensor.Float32, Shape: []int{3}, Data: floats(1, 2, 3)}
	b, err := tflite.Encode(&graph.Model{Format: "tflite", Opsets: map[string]int{}, Graphs: []*graph.Graph{{
		Name: "main", Values: []*graph.Value{value(0, "x", 1, 3), c, value(2, "y", 1, 3)}, Inputs: []int{0}, Outputs: []int{2},
		Nodes: []*graph.Node{{Op: op, Domain: domain, Version: 1, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.tflite")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func task(path string, in ...external.Tensor) *external.Task {
	return &external.Task{Model: path, Format: "tflite", Threads: 1, Inputs: in}
}

func code(err error) external.Code {
	if e, ok := errors.AsType[*external.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestRun(t *testing.T) {
	lib := engine(t)
	if a := lib.About(); a.Engine != "tflite" || !strings.HasPrefix(a.Version, "2.") {
		t.Errorf("got %+v", a)
	}
	path := adding(t, "ADD", graph.TFLite)
	for _, shape := range [][]int{{1, 3}, {2, 3}} {
		for _, options := range [][]external.Option{nil, {{Key: "xnnpack", Value: "on"}}} {
			x, want := floats(0, 0, 0, 10, 10, 10)[:12*shape[0]], floats(1, 2, 3, 11, 12, 13)[:12*shape[0]]
			k := task(path, external.Tensor{Name: "x", DType: "float32", Shape: shape, Data: x})
			k.Options = options
			s, err := lib.Load(k)
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.Clone()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(20, func() {
				if err := b.Run(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%v allocations in a run", n)
			}
			out, err := b.Outputs()
			if err != nil || len(out) != 1 || out[0].DType != "float32" || !slices.Equal(out[0].Shape, shape) || !bytes.Equal(out[0].Data, want) {
				t.Errorf("%v: got %v, %v", options, out, err)
			}
			if f := b.Facts().Settings; f["threads"] != "1" || (f["xnnpack"] == "on") != (options != nil) {
				t.Errorf("facts %v", f)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCarry(t *testing.T) {
	k := task(adding(t, "ADD", graph.TFLite), external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 3}, Data: floats(0, 0, 0)})
	k.Carry = map[int]int{0: 0}
	s, err := engine(t).Load(k)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for range 4 {
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := s.Outputs(); err != nil || !bytes.Equal(out[0].Data, floats(4, 8, 12)) {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestRejected(t *testing.T) {
	lib := engine(t)
	good := adding(t, "ADD", graph.TFLite)
	ok := external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 3}, Data: floats(0, 0, 0)}
	none := filepath.Join(t.TempDir(), "none.tflite")
	text := filepath.Join(t.TempDir(), "text.tflite")
	if err := os.WriteFile(text, []byte("this is not a model at all, but a text of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	option := task(good, ok)
	option.Options = []external.Option{{Key: "arena", Value: "1"}}
	value := task(good, ok)
	value.Options = []external.Option{{Key: "xnnpack", Value: "off"}}
	format := task(good, ok)
	format.Format = "onnx"
	for _, tt := range []struct {
		name string
		task *external.Task
		code external.Code
	}{
		{"absent", task(none, ok), external.Rejected},
		{"no model", task(text, ok), external.Rejected},
		{"custom", task(adding(t, "NoSuchThing", graph.TFLiteCustom), ok), external.Rejected},
		{"count", task(good), external.Rejected},
		{"type", task(good, external.Tensor{DType: "int8", Shape: []int{1, 3}, Data: []byte{1, 2, 3}}), external.Rejected},
		{"shape", task(good, external.Tensor{DType: "float32", Shape: []int{1, 5}, Data: floats(0, 0, 0, 0, 0)}), external.Rejected},
		{"bytes", task(good, external.Tensor{DType: "float32", Shape: []int{1, 3}, Data: []byte{1}}), external.Rejected},
		{"option", option, external.NoOption},
		{"value", value, external.NoOption},
		{"format", format, external.NoFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := lib.Load(tt.task)
			if s != nil {
				_ = s.Close()
			}
			if code(err) != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	if _, err := Open(filepath.Join(t.TempDir(), "absent.so")); code(err) != external.NotLibrary {
		t.Errorf("absent: %v", err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: libraries of another kind are not tried")
	}
	for source, want := range map[string]external.Code{"int other(void) { return 1; }": external.NotLibrary, "const char *TfLiteVersion(void) { return \"1.0\"; }": external.TooOld} {
		dir := t.TempDir()
		c := filepath.Join(dir, "lib.c")
		if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := exec.Command(cc, "-shared", "-fPIC", "-o", filepath.Join(dir, "lib.so"), c).CombinedOutput(); err != nil {
			t.Skipf("the C compiler makes no library: %v %s", err, b)
		}
		if _, err := Open(filepath.Join(dir, "lib.so")); code(err) != want {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}
