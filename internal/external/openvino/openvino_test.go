//go:build linux && (amd64 || arm64)

package openvino_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/external/openvino"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// open opens the newest library. The test keeps its thread, as users of sessions do.
func open(t testing.TB) external.Library {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	l, err := openvino.Open(newest(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Protobuf, by hand: fields of an ONNX model (onnx.proto, IR version 8).
func varint(field, v int) []byte {
	return append(binary.AppendUvarint(nil, uint64(field)<<3), binary.AppendUvarint(nil, uint64(v))...)
}

func field(n int, parts ...[]byte) []byte {
	b := bytes.Join(parts, nil)
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)<<3|2), uint64(len(b))), b...)
}

func value(name string, elem int, dims ...int) []byte {
	var shape []byte
	for _, d := range dims {
		if d < 0 {
			shape = append(shape, field(1, field(2, []byte("n")))...)
		} else {
			shape = append(shape, field(1, varint(1, d))...)
		}
	}
	return slices.Concat(field(1, []byte(name)), field(2, field(1, varint(1, elem), field(2, shape))))
}

func node(op, name string, in []string, out ...string) []byte {
	var b []byte
	for _, s := range in {
		b = append(b, field(1, []byte(s))...)
	}
	for _, s := range out {
		b = append(b, field(2, []byte(s))...)
	}
	return field(1, b, field(3, []byte(name)), field(4, []byte(op)))
}

func onnx(t testing.TB, inputs, outputs [][]byte, nodes ...[]byte) string {
	t.Helper()
	g := slices.Concat(bytes.Join(nodes, nil), field(2, []byte("g")))
	for _, v := range inputs {
		g = append(g, field(11, v)...)
	}
	for _, v := range outputs {
		g = append(g, field(12, v)...)
	}
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(file, slices.Concat(varint(1, 8), field(7, g), field(8, varint(2, 13))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func singles(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func task(t testing.TB, model string, in ...external.Tensor) *external.Task {
	return &external.Task{Model: model, Format: "onnx", Inputs: in, Threads: 1, Folder: t.TempDir(), Options: []external.Option{{Key: "INFERENCE_PRECISION_HINT", Value: "f32"}}}
}

func load(t testing.TB, l external.Library, k *external.Task) external.Session {
	t.Helper()
	s, err := l.Load(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// squares is a model of two outputs: y = x·x, z = x+x, of any number of rows.
func squares(t testing.TB) string {
	return onnx(t, [][]byte{value("x", 1, -1, 2)}, [][]byte{value("y", 1, -1, 2), value("z", 1, -1, 2)},
		node("Mul", "square", []string{"x", "x"}, "y"), node("Add", "twice", []string{"x", "x"}, "z"))
}

func TestAbout(t *testing.T) {
	for _, path := range libraries(t) {
		runtime.LockOSThread()
		l, err := openvino.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		a := l.About()
		if a.Engine != "openvino" || !strings.HasPrefix(a.Version, "20") || !slices.Contains(a.Providers, "CPU") || !slices.Contains(a.Formats, "tflite") || len(a.Options) == 0 {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// TestOutputs: two outputs in the model's order, of a shape that the model leaves open. Sums and
// products of small integers are exact.
func TestOutputs(t *testing.T) {
	l := open(t)
	s := load(t, l, task(t, squares(t), external.Tensor{Name: "x", DType: "float32", Shape: []int{3, 2}, Data: singles(1, -2, 3, 4, 0, 7)}))
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	out, err := s.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	want := []external.Tensor{
		{Name: "y", DType: "float32", Shape: []int{3, 2}, Data: singles(1, 4, 9, 16, 0, 49)},
		{Name: "z", DType: "float32", Shape: []int{3, 2}, Data: singles(2, -4, 6, 8, 0, 14)},
	}
	for i, w := range want {
		if g := out[i]; g.Name != w.Name || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || !bytes.Equal(g.Data, w.Data) {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Run(); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("a run allocates %g times", n)
	}
	f := s.Facts()
	if f.Settings["INFERENCE_PRECISION_HINT"] != "f32" || f.Settings["INFERENCE_NUM_THREADS"] != "1" || f.Settings["NUM_STREAMS"] != "1" || f.Settings["PERFORMANCE_HINT"] != "LATENCY" || f.Settings["device"] != "CPU" || f.Settings["PERF_COUNT"] != "NO" {
		t.Errorf("%+v", f.Settings)
	}
}

// TestTypes: elements of every type come back as they went in.
func TestTypes(t *testing.T) {
	l := open(t)
	for _, c := range []struct {
		dtype      string
		elem, size int
		shape      []int
	}{
		{"float32", 1, 4, []int{2, 3}},
		{"uint8", 2, 1, []int{5}},
		{"int8", 3, 1, []int{5}},
		{"uint16", 4, 2, []int{2}},
		{"int16", 5, 2, []int{2}},
		{"int32", 6, 4, []int{}},
		{"int64", 7, 8, []int{1, 2}},
		{"float16", 10, 2, []int{3}},
		{"float64", 11, 8, []int{2}},
		{"uint32", 12, 4, []int{2}},
		{"uint64", 13, 8, []int{2}},
		{"bool", 9, 1, []int{4}},
	} {
		n := c.size
		for _, d := range c.shape {
			n *= d
		}
		data := make([]byte, n)
		for i := range data {
			if i%c.size == 0 { // processors compute integers of 64 bits in 32
				data[i] = byte(i / c.size % 2)
			}
		}
		file := onnx(t, [][]byte{value("x", c.elem, c.shape...)}, [][]byte{value("y", c.elem, c.shape...)}, node("Identity", "i", []string{"x"}, "y"))
		s, err := l.Load(task(t, file, external.Tensor{Name: "x", DType: c.dtype, Shape: c.shape, Data: data}))
		if err != nil {
			t.Errorf("%s: %v", c.dtype, err)
			continue
		}
		err = s.Run()
		out, also := s.Outputs()
		if err != nil || also != nil || len(out) != 1 || out[0].DType != c.dtype || !slices.Equal(out[0].Shape, c.shape) || !bytes.Equal(out[0].Data, data) {
			t.Errorf("%s: %v %v %+v, want %v", c.dtype, err, also, out, data)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCarry: an output becomes an input of the next run, so that x doubles each time.
func TestCarry(t *testing.T) {
	l := open(t)
	k := task(t, squares(t), external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 2}, Data: singles(1, 3)})
	k.Carry = map[int]int{1: 0}
	s := load(t, l, k)
	for range 4 {
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := s.Outputs(); err != nil || !bytes.Equal(out[1].Data, singles(16, 48)) {
		t.Errorf("%v %v", err, out)
	}
	k.Carry = map[int]int{7: 0}
	wants(t, l, k, external.Rejected, "output 7")
}

// TestClone runs sessions of one task concurrently and compares their outputs.
func TestClone(t *testing.T) {
	l := open(t)
	s := load(t, l, task(t, squares(t), external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 2}, Data: singles(5, 6)}))
	b, err := s.Clone()
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for _, x := range []external.Session{s, b} {
		wait.Go(func() {
			runtime.LockOSThread()
			for range 20 {
				if err := x.Run(); err != nil {
					t.Error(err)
				}
			}
			if out, err := x.Outputs(); err != nil || !bytes.Equal(out[0].Data, singles(25, 36)) {
				t.Errorf("%v %v", err, out)
			}
		})
	}
	wait.Wait()
	if f := b.Facts(); f.Settings["NUM_STREAMS"] != "2" || f.Settings["INFERENCE_NUM_THREADS"] != "2" {
		t.Errorf("%+v", f.Settings)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Run(); err != nil {
		t.Errorf("after the other one was closed: %v", err)
	}
}

// wants checks that a task is refused.
func wants(t *testing.T, l external.Library, k *external.Task, code external.Code, part string) {
	t.Helper()
	s, err := l.Load(k)
	if err == nil {
		_ = s.Close()
	}
	e, ok := errors.AsType[*external.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Text, part) || strings.Contains(e.Text, "\n") {
		t.Errorf("%v, want %s with %q", err, code, part)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	lib := newest(t)
	text := filepath.Join(t.TempDir(), "libopenvino_c.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]external.Code{
		filepath.Join(t.TempDir(), "none.so"): external.NotFound, t.TempDir(): external.NotLibrary, text: external.NotLibrary,
		filepath.Join(filepath.Dir(lib), "libtbb.so.12"): external.NotLibrary,
	} {
		l, err := openvino.Open(path)
		if e, ok := errors.AsType[*external.Error](err); !ok || l != nil || e.Code != code || !strings.Contains(e.Text, path) {
			t.Errorf("%s: %v, want %s", path, err, code)
		}
	}
}

func TestErrors(t *testing.T) {
	l := open(t)
	x := external.Tensor{Name: "x", DType: "float32", Shape: []int{1, 2}, Data: singles(1, 2)}
	bad := filepath.Join(t.TempDir(), "bad.onnx")
	if err := os.WriteFile(bad, []byte("\x08\x08garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, l, task(t, bad, x), external.Rejected, "does not take the model")
	k := task(t, squares(t), x)
	k.Format = "xml"
	wants(t, l, k, external.NoFormat, "xml")
	for _, c := range []struct {
		key, value string
		code       external.Code
		part       string
	}{
		{"device", "GPU.7", external.NoProvider, "CPU"},
		{"device", "HETERO:GPU,CPU", external.NoProvider, "HETERO"},
		{"NO_SUCH_PROPERTY", "1", external.NoOption, "INFERENCE_PRECISION_HINT"},
		{"INFERENCE_PRECISION_HINT", "f7", external.NoOption, "f7"},
		{"property.NUM_STREAMS", "many", external.NoOption, "many"},
		{"graphs", "perhaps", external.NoOption, "yes or no"},
	} {
		k := task(t, squares(t), x)
		k.Options = []external.Option{{Key: c.key, Value: c.value}}
		wants(t, l, k, c.code, c.part)
	}
	whole := x
	whole.DType = "int32"
	wants(t, l, task(t, squares(t), whole), external.Rejected, "float32")
	wants(t, l, task(t, squares(t)), external.Rejected, `"x"`)
	short := x
	short.Shape = []int{4, 2}
	wants(t, l, task(t, squares(t), short), external.Rejected, "32 bytes")
	wide := x
	wide.Shape = []int{1, 3}
	wide.Data = singles(1, 2, 3)
	wants(t, l, task(t, onnx(t, [][]byte{value("x", 1, 1, 2), value("w", 1, 1, 2)}, [][]byte{value("y", 1, 1, 2)}, node("Add", "a", []string{"x", "w"}, "y")), wide, external.Tensor{Name: "w", DType: "float32", Shape: []int{1, 2}, Data: singles(1, 2)}), external.Rejected, "shapes")
	words := onnx(t, [][]byte{value("x", 8, 1)}, [][]byte{value("y", 8, 1)}, node("Identity", "i", []string{"x"}, "y"))
	wants(t, l, task(t, words, external.Tensor{Name: "x", DType: "string", Shape: []int{1}, Strings: []string{"a"}}), external.Rejected, "strings")
	huge := x
	huge.Shape = []int{1 << 42, 2}
	_, err := l.Load(task(t, squares(t), huge))
	if e, ok := errors.AsType[*external.Error](err); !ok || e.Code != external.NoMemory && e.Code != external.Rejected {
		t.Errorf("8 TiB of input: %v", err)
	}
}

// TestRecorded: rows of an engine's counters with hints that lead to the model's nodes.
func TestRecorded(t *testing.T) {
	for _, path := range libraries(t) {
		runtime.LockOSThread()
		l, err := openvino.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		n := 400
		data := make([]float32, n*n)
		for i := range data {
			data[i] = float32(i%7) - 3
		}
		v := func(name string) []byte { return value(name, 1, n, n) }
		file := onnx(t, [][]byte{v("x")}, [][]byte{v("y")}, node("MatMul", "first", []string{"x", "x"}, "a"), node("Sigmoid", "second", []string{"a"}, "b"), node("MatMul", "third", []string{"b", "x"}, "y"))
		k := task(t, file, external.Tensor{Name: "x", DType: "float32", Shape: []int{n, n}, Data: singles(data...)})
		k.Profiled = true
		p := load(t, l, k).(external.Profiled)
		if r, err := p.Records(); err != nil || r != nil {
			t.Errorf("recorded before a run: %v %v", r, err)
		}
		run := func(times int) {
			for range times {
				if err := errors.Join(p.Run(), p.AfterRun(50_000_000, false)); err != nil {
					t.Fatal(err)
				}
			}
		}
		run(3)
		if err := p.Reset(); err != nil {
			t.Fatal(err)
		}
		if r, err := p.Records(); err != nil || r != nil {
			t.Errorf("recorded after it was forgotten: %v %v", r, err)
		}
		run(10)
		r, err := p.Records()
		if err != nil || r == nil {
			t.Fatalf("%v %v", r, err)
		}
		model := []profile.Layer{}
		for i, op := range []string{"MatMul", "Sigmoid", "MatMul"} {
			model = append(model, profile.Layer{Op: op, Outputs: []profile.Tensor{{Name: []string{"a", "b", "y"}[i]}}, Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Name: []string{"first", "second", "third"}[i], Node: int64(i)}}}})
		}
		found := map[int]bool{}
		for i, m := range join.Find(model, r.Profile.Layers, r.Hints) {
			row := &r.Profile.Layers[i]
			for k, at := range m.Layers {
				if row.Latency != nil && m.How[k] == profile.Exact {
					found[at] = true
				}
			}
			if row.Latency != nil && (row.State != profile.Ran || *row.Latency.N != 10 || !(*row.Latency.Mean > 0 && *row.Latency.Mean < 60)) {
				t.Errorf("%+v %+v", row, row.Latency)
			}
		}
		if !found[0] || !found[2] {
			t.Errorf("%s: nodes that were found: %v of hints %+v", path, found, r.Hints)
			for _, l := range r.Profile.Layers {
				t.Log(l.Name, l.Op, l.Latency)
			}
		}
		if m := r.Profile.Totals.Latency; m == nil || *m.N != 10 || !(*m.Mean == 0.05) {
			t.Errorf("%+v", m)
		}
		if entries, err := os.ReadDir(k.Folder); err != nil || len(entries) != 0 {
			t.Errorf("files are left: %v %v", entries, err)
		}
		if _, err := p.Clone(); err == nil {
			t.Error("a profiled session has another one beside it")
		}
	}
}
