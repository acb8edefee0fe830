//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

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
	"sync"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// engine opens the LiteRT among the engines for tests.
func engine(t testing.TB) external.Library {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(os.Getenv("OPMETER_TEST_ENGINES"), "ai_edge_litert-2.*", "ai_edge_litert", "libLiteRt.so"))
	if os.Getenv("OPMETER_TEST_ENGINES") == "" || len(found) == 0 {
		material.Skip(t, "no LiteRT: set OPMETER_TEST_ENGINES to a folder with the unpacked package ai-edge-litert in ai_edge_litert-2.3.0")
	}
	lib, err := Open(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// write puts a model into a file.
func write(t testing.TB, m *graph.Model) string {
	t.Helper()
	b, err := tflite.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, b)
}

func file(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.tflite")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func value(id int, name string, typ tensor.Type, shape ...int) *graph.Value {
	return &graph.Value{ID: id, Name: name, Type: typ, Shape: shape, HasShape: true, Offset: -1}
}

func constant(id int, name string, typ tensor.Type, data []byte, shape ...int) *graph.Value {
	v := value(id, name, typ, shape...)
	v.Const = &tensor.Tensor{Type: typ, Shape: shape, Data: data}
	return v
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// adding is a model that adds 1, 2, 3 to rows of three; rows are open.
func adding() *graph.Model {
	open := value(0, "x", tensor.Float32, -1, 3)
	open.Placeholder = []int{1, 3}
	sum := value(2, "y", tensor.Float32, -1, 3)
	sum.Placeholder = []int{1, 3}
	return &graph.Model{Format: "tflite", Opsets: map[string]int{}, Graphs: []*graph.Graph{{
		Name: "main", Values: []*graph.Value{open, constant(1, "c", tensor.Float32, floats(1, 2, 3), 3), sum}, Inputs: []int{0}, Outputs: []int{2},
		Nodes: []*graph.Node{{Op: "ADD", Domain: graph.TFLite, Version: 1, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{}}},
	}}}
}

// shaping is a model that gives its input another shape and nothing else.
func shaping(typ tensor.Type) *graph.Model {
	return &graph.Model{Format: "tflite", Opsets: map[string]int{}, Graphs: []*graph.Graph{{
		Name: "main", Values: []*graph.Value{value(0, "x", typ, 2, 4), constant(1, "s", tensor.Int32, []byte{8, 0, 0, 0}, 1), value(2, "y", typ, 8)}, Inputs: []int{0}, Outputs: []int{2},
		Nodes: []*graph.Node{{Op: "RESHAPE", Domain: graph.TFLite, Version: 1, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{}}},
	}}}
}

func task(path string, in ...external.Tensor) *external.Task {
	return &external.Task{Model: path, Format: "tflite", Threads: 1, Inputs: in}
}

// code is that of an error, "" for none.
func code(err error) external.Code {
	var e *external.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return external.Code("other: " + err.Error())
	}
	return ""
}

func TestAbout(t *testing.T) {
	a := engine(t).About()
	if a.Engine != "litert" || !strings.HasPrefix(a.Version, "2.") || !slices.Equal(a.Formats, []string{"tflite"}) || len(a.Providers) == 0 || a.Providers[0] != "cpu" || !strings.Contains(a.Build, "CpuAccelerator") {
		t.Errorf("got %+v", a)
	}
}

// TestRun checks values that are known beforehand, with every way of the CPU.
func TestRun(t *testing.T) {
	lib, path := engine(t), write(t, adding())
	for _, tt := range []struct {
		name    string
		options []external.Option
		shape   []int
		threads int
	}{
		{"default", nil, []int{1, 3}, 1},
		{"resized", nil, []int{4, 3}, 1},
		{"threads", nil, []int{2, 3}, 3},
		{"builtin", []external.Option{{Key: "kernel", Value: "builtin"}}, []int{2, 3}, 1},
		{"reference", []external.Option{{Key: "kernel", Value: "reference"}}, []int{1, 3}, 1},
		{"off", []external.Option{{Key: "xnnpack", Value: "off"}}, []int{1, 3}, 1},
		{"flags", []external.Option{{Key: "xnnpack_flags", Value: "qs8,qu8"}}, []int{1, 3}, 1},
		{"clustering", []external.Option{{Key: "clustering", Value: "off"}}, []int{1, 3}, 1},
		{"cache", []external.Option{{Key: "weight_cache", Value: filepath.Join(t.TempDir(), "cache")}}, []int{1, 3}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var x, want []float32
			for i := range tt.shape[0] {
				for k := range 3 {
					x = append(x, float32(10*i))
					want = append(want, float32(10*i+k+1))
				}
			}
			k := task(path, external.Tensor{Name: "x", DType: "float32", Shape: tt.shape, Data: floats(x...)})
			k.Options, k.Threads = tt.options, tt.threads
			s, err := lib.Load(k)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if _, err := s.Outputs(); code(err) != external.Failed {
				t.Errorf("outputs before a run: %v", err)
			}
			for range 3 {
				if err := s.Run(); err != nil {
					t.Fatal(err)
				}
			}
			out, err := s.Outputs()
			if err != nil {
				t.Fatal(err)
			}
			if len(out) != 1 || out[0].Name != "y" || out[0].DType != "float32" || !slices.Equal(out[0].Shape, tt.shape) || !bytes.Equal(out[0].Data, floats(want...)) {
				t.Errorf("got %v, want %v of shape %v", out, want, tt.shape)
			}
			f := s.Facts().Settings
			for _, o := range tt.options {
				if o.Key == "kernel" && f["kernel"] != o.Value || o.Key == "weight_cache" && f[o.Key] != o.Value {
					t.Errorf("%s=%s is not in %v", o.Key, o.Value, f)
				}
			}
			if f["accelerator"] != "cpu" || f["threads"] == "" {
				t.Errorf("facts %v", f)
			}
		})
	}
}

// TestElements feeds every type of elements of a fixed size and gets the same bytes back.
func TestElements(t *testing.T) {
	lib := engine(t)
	for _, typ := range []tensor.Type{tensor.Float32, tensor.Int32, tensor.Uint8, tensor.Int64, tensor.Bool, tensor.Int16, tensor.Complex64, tensor.Int8, tensor.Float16, tensor.Float64, tensor.Uint64, tensor.Uint32, tensor.Uint16, tensor.Int4} {
		t.Run(typ.String(), func(t *testing.T) {
			data := make([]byte, (8*typ.Bits()+7)/8)
			for i := range data {
				data[i] = byte(i%2 + 0)
			}
			k := task(write(t, shaping(typ)), external.Tensor{Name: "x", DType: typ.String(), Shape: []int{2, 4}, Data: data})
			k.Options = []external.Option{{Key: "kernel", Value: "builtin"}}
			s, err := lib.Load(k)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
			out, err := s.Outputs()
			if err != nil || out[0].DType != typ.String() || !slices.Equal(out[0].Shape, []int{8}) || !bytes.Equal(out[0].Data, data) {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
	_, err := lib.Load(task(write(t, shaping(tensor.String)), external.Tensor{Name: "x", DType: "string", Shape: []int{2, 4}, Strings: make([]string, 8)}))
	if code(err) != external.Rejected || !strings.Contains(err.Error(), "string") {
		t.Errorf("texts: %v", err)
	}
}

// TestCarry feeds what comes out: after n runs, n times the constant was added.
func TestCarry(t *testing.T) {
	lib := engine(t)
	k := task(write(t, adding()), external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 3}, Data: floats(0, 0, 0)})
	k.Carry = map[int]int{0: 0}
	s, err := lib.Load(k)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for n := 1; n <= 5; n++ {
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		out, err := s.Outputs()
		if err != nil || !bytes.Equal(out[0].Data, floats(float32(n), float32(2*n), float32(3*n))) {
			t.Fatalf("run %d: %v, %v", n, out, err)
		}
	}
	k.Carry = map[int]int{0: 1}
	if _, err := lib.Load(k); code(err) != external.Rejected {
		t.Errorf("an input that is absent: %v", err)
	}
}

// TestAllocations: what is timed takes no memory of Go's.
func TestAllocations(t *testing.T) {
	s, err := engine(t).Load(task(write(t, adding()), external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 3}, Data: floats(0, 0, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in a run", n)
	}
}

// TestClone runs two sessions at the same time.
func TestClone(t *testing.T) {
	lib := engine(t)
	s, err := lib.Load(task(write(t, adding()), external.Tensor{Name: "x", DType: "float32", Shape: []int{2, 3}, Data: floats(0, 0, 0, 5, 5, 5)}))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Clone()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, x := range []external.Session{s, b} {
		wg.Go(func() {
			runtime.LockOSThread()
			for range 200 {
				if err := x.Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil { // the model stays for the other
		t.Fatal(err)
	}
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	out, err := b.Outputs()
	if err != nil || !bytes.Equal(out[0].Data, floats(1, 2, 3, 6, 7, 8)) {
		t.Errorf("got %v, %v", out, err)
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

func TestRejected(t *testing.T) {
	lib := engine(t)
	ok := external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 3}, Data: floats(0, 0, 0)}
	good := write(t, adding())
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	custom := adding()
	custom.Graphs[0].Nodes[0] = &graph.Node{Op: "NoSuchThing", Domain: graph.TFLiteCustom, Version: 1, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{}}
	with := func(path string, format string, in []external.Tensor, o ...external.Option) *external.Task {
		k := task(path, in...)
		k.Format, k.Options = format, o
		return k
	}
	for _, tt := range []struct {
		name string
		task *external.Task
		code external.Code
		says string
	}{
		{"absent", with(filepath.Join(t.TempDir(), "none.tflite"), "tflite", []external.Tensor{ok}), external.Rejected, "none.tflite"},
		{"empty", with(file(t, nil), "tflite", []external.Tensor{ok}), external.Rejected, "does not read"},
		{"no model", with(file(t, []byte("this is not a model at all, but a text of some length")), "tflite", []external.Tensor{ok}), external.Rejected, "does not read"},
		{"cut", with(file(t, whole[:len(whole)/2]), "tflite", []external.Tensor{ok}), external.Rejected, "LiteRT"},
		{"format", with(good, "onnx", []external.Tensor{ok}), external.NoFormat, "onnx"},
		{"custom", with(write(t, custom), "tflite", []external.Tensor{ok}), external.Rejected, "NoSuchThing"},
		{"count", with(good, "tflite", nil), external.Rejected, "1 inputs"},
		{"type", with(good, "tflite", []external.Tensor{{Name: "x", DType: "int8", Shape: []int{1, 3}, Data: []byte{0, 0, 0}}}), external.Rejected, "float32"},
		{"rank", with(good, "tflite", []external.Tensor{{Name: "x", DType: "float32", Shape: []int{1, 1, 1, 1, 1, 1, 1, 1, 3}, Data: ok.Data}}), external.Rejected, "dimensions"},
		{"shape", with(good, "tflite", []external.Tensor{{Name: "x", DType: "float32", Shape: []int{1, 5}, Data: floats(0, 0, 0, 0, 0)}}), external.Rejected, "[1 5]"},
		{"bytes", with(good, "tflite", []external.Tensor{{Name: "x", DType: "float32", Shape: []int{1, 3}, Data: ok.Data[:8]}}), external.Rejected, "12 bytes"},
		{"option", with(good, "tflite", []external.Tensor{ok}, external.Option{Key: "arena", Value: "big"}), external.NoOption, "weight_cache"},
		{"value", with(good, "tflite", []external.Tensor{ok}, external.Option{Key: "kernel", Value: "fast"}), external.NoOption, "reference"},
		{"provider", with(good, "tflite", []external.Tensor{ok}, external.Option{Key: "accelerator", Value: "npu"}), external.NoProvider, "It has cpu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := lib.Load(tt.task)
			if s != nil {
				_ = s.Close()
			}
			if code(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v (%s), want %s with %q", err, code(err), tt.code, tt.says)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "libLiteRt.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, filepath.Join(t.TempDir(), "absent.so"), t.TempDir()} {
		if _, err := Open(path); code(err) != external.NotLibrary || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: libraries of another kind are not tried")
	}
	for source, want := range map[string]external.Code{"int other(void) { return 1; }": external.NotLibrary, "int LiteRtCreateEnvironment(void) { return 1; }": external.TooOld} {
		dir := t.TempDir()
		lib := filepath.Join(dir, "lib.so")
		c := filepath.Join(dir, "lib.c")
		if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, c).CombinedOutput(); err != nil {
			t.Skipf("the C compiler makes no library: %v %s", err, b)
		}
		if _, err := Open(lib); code(err) != want {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}
