package onnxruntime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// libraries are releases of ONNX Runtime below the folder of engines, by version.
var libraries = map[string][]string{
	"1.16.3": {"onnxruntime-1.16.3/onnxruntime/capi/libonnxruntime.so.1.16.3", "onnxruntime_node-1.16.3/package/bin/napi-v3/linux/x64/libonnxruntime.so.1.16.3"},
	"1.20.1": {"onnxruntime-1.20.1/onnxruntime/capi/libonnxruntime.so.1.20.1"},
	"1.32.0": {"onnxruntime-1.32.0/onnxruntime/capi/libonnxruntime.so.1.32.0"},
}

// engines is the folder of engines' packages, "" for none.
func engines() string { return os.Getenv("OPMETER_TEST_ENGINES") }

// library finds a release, and skips without it.
func find(t testing.TB, version string) string {
	t.Helper()
	for _, f := range libraries[version] {
		f = filepath.Join(engines(), filepath.FromSlash(f))
		if _, err := os.Stat(f); engines() != "" && err == nil {
			return f
		}
	}
	material.Skip(t, "ONNX Runtime "+version+" is absent: set OPMETER_TEST_ENGINES to a folder with onnxruntime-"+version)
	return ""
}

func open(t testing.TB, version string) *library {
	t.Helper()
	l, err := Open(find(t, version))
	if err != nil {
		t.Fatal(err)
	}
	return l.(*library)
}

// each runs a test with every release.
func each(t *testing.T, test func(t *testing.T, l *library)) {
	for _, v := range []string{"1.16.3", "1.20.1", "1.32.0"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, v))
		})
	}
}

// TestSlots compares the slots with a list of the header's functions.
func TestSlots(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "api.txt"))
	if err != nil {
		t.Fatal(err)
	}
	slots := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if n, name, ok := strings.Cut(line, " "); ok && n != "#" {
			slots[name] = n
		}
	}
	// Numbers that the library's own source asserts for the ends of versions of the table.
	for name, n := range map[string]string{"ReleaseCustomOpDomain": "101", "ReleaseModelMetadata": "118", "ReleaseAvailableProviders": "126", "ReleaseArenaCfg": "157", "GetBuildInfoString": "254", "KernelContext_GetResource": "265"} {
		if slots[name] != n {
			t.Errorf("the list has %s at %s, want %s", name, slots[name], n)
		}
	}
	v := reflect.TypeFor[functions]()
	seen := map[string]bool{}
	for i := range v.NumField() {
		f := v.Field(i)
		name := f.Name
		if n := f.Tag.Get("name"); n != "" {
			name = n
		}
		if slots[name] == "" || slots[name] != f.Tag.Get("slot") || seen[name] {
			t.Errorf("%s at %s, want %q", name, f.Tag.Get("slot"), slots[name])
		}
		seen[name] = true
	}
}

// TestVersions opens the releases and asks what they are.
func TestVersions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *library) {
		a := l.About()
		if a.Engine != "onnxruntime" || !strings.HasSuffix(t.Name(), a.Version) || len(a.Providers) == 0 || a.Providers[0] != processor || a.Build == "" {
			t.Errorf("%+v", a)
		}
		if (l.f.AllocatorGetStats != 0) != (a.Version == "1.32.0") {
			t.Errorf("%s: statistics of the arena at %x", a.Version, l.f.AllocatorGetStats)
		}
	})
}

// TestOpen refuses what is not the library.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := ""
	for _, f := range []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"} {
		if _, err := os.Stat(f); err == nil {
			other = f
		}
	}
	for _, c := range []struct {
		file string
		want external.Code
	}{
		{filepath.Join(dir, "none.so"), external.NotFound},
		{dir, external.NotFound},
		{text, external.NotLibrary},
		{other, external.NotLibrary},
	} {
		if c.file == "" {
			continue
		}
		l, err := Open(c.file)
		if e, ok := errors.AsType[*external.Error](err); !ok || e.Code != c.want || !strings.Contains(e.Text, c.file) || l != nil {
			t.Errorf("%s: %v, want %s", c.file, err, c.want)
		}
	}
}

// write makes a model file of values by name and nodes.
type net struct {
	g    *graph.Graph
	byID map[string]int
}

func newNet() *net { return &net{g: &graph.Graph{Name: "net"}, byID: map[string]int{}} }

func (n *net) value(name string, typ tensor.Type, shape []int, c *tensor.Tensor) int {
	if id, ok := n.byID[name]; ok {
		return id
	}
	id := len(n.g.Values)
	n.g.Values = append(n.g.Values, &graph.Value{ID: id, Name: name, Type: typ, Shape: shape, HasShape: shape != nil, Const: c, Offset: -1})
	n.byID[name] = id
	return id
}

func (n *net) input(name string, typ tensor.Type, shape ...int) {
	n.g.Inputs = append(n.g.Inputs, n.value(name, typ, append([]int{}, shape...), nil))
}

func (n *net) output(name string, typ tensor.Type, shape []int) {
	id := n.value(name, typ, shape, nil)
	n.g.Values[id].Type, n.g.Values[id].Shape, n.g.Values[id].HasShape = typ, shape, shape != nil
	n.g.Outputs = append(n.g.Outputs, id)
}

func (n *net) node(name, op string, attrs graph.Attrs, outs []string, ins ...string) {
	x := &graph.Node{Index: len(n.g.Nodes), Name: name, Op: op, Attrs: attrs, Version: 17}
	for _, i := range ins {
		x.Inputs = append(x.Inputs, n.value(i, tensor.Invalid, nil, nil))
	}
	for _, o := range outs {
		x.Outputs = append(x.Outputs, n.value(o, tensor.Invalid, nil, nil))
	}
	n.g.Nodes = append(n.g.Nodes, x)
}

func (n *net) save(t testing.TB) string {
	t.Helper()
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{n.g}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func floats(v ...float32) []byte {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func code(err error) external.Code {
	if e, ok := errors.AsType[*external.Error](err); ok {
		return e.Code
	}
	return external.Code("none: " + strconv.Quote(errText(err)))
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCarry feeds an output back: each run adds x once more, in places that change.
func TestCarry(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string][]int{"fixed": {2}, "open": nil} {
		n := newNet()
		n.input("x", tensor.Float32, 2)
		n.input("s", tensor.Float32, 2)
		n.node("add", "Add", nil, []string{"y"}, "x", "s")
		n.node("double", "Add", nil, []string{"z"}, "y", "y")
		n.output("y", tensor.Float32, shape)
		n.output("z", tensor.Float32, shape)
		file := n.save(t)
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l *library) {
				s, err := l.Load(&external.Task{Model: file, Format: "onnx", Threads: 1, Folder: t.TempDir(), Carry: map[int]int{0: 1}, Inputs: []external.Tensor{
					{Name: "x", DType: "float32", Shape: []int{2}, Data: floats(1, 10)}, {Name: "s", DType: "float32", Shape: []int{2}, Data: floats(0, 5)},
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close() }()
				if _, err := s.Outputs(); err == nil {
					t.Error("outputs before a run")
				}
				for range 4 {
					if err := s.Run(); err != nil {
						t.Fatal(err)
					}
				}
				out, err := s.Outputs()
				if err != nil || len(out) != 2 || !bytes.Equal(out[0].Data, floats(4, 45)) || !bytes.Equal(out[1].Data, floats(8, 90)) || !slices.Equal(out[0].Shape, []int{2}) {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

// TestInPlace writes an output to the memory of an input, which the next run reads.
func TestInPlace(t *testing.T) {
	t.Parallel()
	n := newNet()
	n.input("x", tensor.Float32, 2)
	n.input("s", tensor.Float32, 2)
	n.node("add", "Add", nil, []string{"y"}, "x", "s")
	n.output("y", tensor.Float32, nil)
	task := external.Task{Model: n.save(t), Format: "onnx", Threads: 1, InPlace: map[int]int{0: 1}, Inputs: []external.Tensor{
		{Name: "x", DType: "float32", Shape: []int{2}, Data: floats(1, 10)}, {Name: "s", DType: "float32", Shape: []int{2}, Data: floats(0, 5)},
	}}
	each(t, func(t *testing.T, l *library) {
		task := task
		task.Folder = t.TempDir()
		s, err := l.Load(&task)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		for range 3 {
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
		}
		out, err := s.Outputs()
		if err != nil || len(out) != 1 || !bytes.Equal(out[0].Data, floats(3, 35)) || s.Facts().InPlace["y"] != "s" {
			t.Errorf("%+v, %v, %v", out, err, s.Facts().InPlace)
		}
		task.InPlace = map[int]int{0: 2}
		if _, err := l.Load(&task); err == nil || !strings.Contains(err.Error(), "output 0 cannot be written to input 2") {
			t.Error(err)
		}
	})
}

// TestTypes brings elements of every type through the library unchanged.
func TestTypes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *library) {
		for _, typ := range []tensor.Type{
			tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
			tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool, tensor.String, tensor.Float8E4M3FN, tensor.Float8E5M2,
		} {
			for _, shape := range [][]int{{}, {3}, {0, 2}} {
				n := newNet()
				n.input("x", typ, shape...)
				n.node("same", "Identity", nil, []string{"y"}, "x")
				n.output("y", typ, shape)
				data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 9, Opsets: map[string]int{"": 19}, Graphs: []*graph.Graph{n.g}})
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), "net.onnx")
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
				x := external.Tensor{Name: "x", DType: typ.String(), Shape: shape}
				count := 1
				for _, d := range shape {
					count *= d
				}
				for i := range typ.Bytes(count) {
					x.Data = append(x.Data, byte(1+i%2))
				}
				if typ == tensor.Bool {
					x.Data = bytes.Repeat([]byte{1}, count)
				}
				if typ == tensor.String {
					x.Strings = []string{"", "a b", "ü"}[:min(3, count)]
				}
				s, err := l.Load(&external.Task{Model: file, Format: "onnx", Threads: 1, Folder: t.TempDir(), Inputs: []external.Tensor{x}})
				if err != nil {
					t.Errorf("%s%v: %v", typ, shape, err)
					continue
				}
				if err := s.Run(); err != nil {
					t.Errorf("%s%v: %v", typ, shape, err)
				} else if out, err := s.Outputs(); err != nil || out[0].DType != typ.String() || !slices.Equal(out[0].Shape, shape) || !bytes.Equal(out[0].Data, x.Data) || !slices.Equal(out[0].Strings, x.Strings) {
					t.Errorf("%s%v: %+v, %v", typ, shape, out, err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestPacked feeds elements of four bits, two a byte with the first one in the low half.
func TestPacked(t *testing.T) {
	t.Parallel()
	n := newNet()
	n.input("x", tensor.Int4, 3)
	n.input("s", tensor.Float32)
	n.node("d", "DequantizeLinear", nil, []string{"y"}, "x", "s")
	n.output("y", tensor.Float32, []int{3})
	data, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 10, Opsets: map[string]int{"": 21}, Graphs: []*graph.Graph{n.g}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, l *library) {
		s, err := l.Load(&external.Task{Model: file, Format: "onnx", Threads: 1, Folder: t.TempDir(), Inputs: []external.Tensor{
			{Name: "x", DType: "int4", Shape: []int{3}, Data: []byte{0xf3, 0x07}}, {Name: "s", DType: "float32", Shape: []int{}, Data: floats(2)},
		}})
		if l.minor < 20 {
			if code(err) != external.Rejected {
				t.Errorf("%v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		if out, err := s.Outputs(); err != nil || !bytes.Equal(out[0].Data, floats(6, -2, 14)) {
			t.Errorf("%v, %v", out, err)
		}
	})
}

// TestRefusals names what does not fit.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newNet()
	n.input("x", tensor.Float32, 2)
	n.node("r", "Relu", nil, []string{"y"}, "x")
	n.output("y", tensor.Float32, []int{2})
	file := n.save(t)
	broken := filepath.Join(t.TempDir(), "broken.onnx")
	if err := os.WriteFile(broken, []byte("not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := external.Tensor{Name: "x", DType: "float32", Shape: []int{2}, Data: floats(1, 2)}
	opt := func(k, v string) external.Task { return external.Task{Options: []external.Option{{Key: k, Value: v}}} }
	each(t, func(t *testing.T, l *library) {
		for name, c := range map[string]struct {
			task external.Task
			want external.Code
			text string
		}{
			"format":            {external.Task{Format: "tflite"}, external.NoFormat, ".onnx"},
			"no model":          {external.Task{Model: "none.onnx"}, external.Rejected, "none.onnx"},
			"broken":            {external.Task{Model: broken}, external.Rejected, "broken.onnx"},
			"no inputs":         {external.Task{Inputs: []external.Tensor{}}, external.Rejected, "takes 1 inputs, 0 are fed"},
			"type":              {external.Task{Inputs: []external.Tensor{{Name: "x", DType: "int8", Shape: []int{2}, Data: []byte{1, 2}}}}, external.Rejected, "takes float32, not int8"},
			"shape":             {external.Task{Inputs: []external.Tensor{{Name: "x", DType: "float32", Shape: []int{3}, Data: floats(1, 2, 3)}}}, external.Rejected, "not [3]"},
			"too few bytes":     {external.Task{Inputs: []external.Tensor{{Name: "x", DType: "float32", Shape: []int{2}, Data: floats(1)}}}, external.Rejected, "takes 8"},
			"carry":             {external.Task{Carry: map[int]int{1: 0}}, external.Rejected, "output 1"},
			"unknown option":    {opt("speed", "high"), external.NoOption, "optimization"},
			"level":             {opt("optimization", "most"), external.NoOption, "none|basic|extended"},
			"execution":         {opt("execution", "wild"), external.NoOption, "sequential|parallel"},
			"threads":           {opt("inter_op_threads", "0"), external.NoOption, "1 to 1024"},
			"arena":             {opt("arena", "yes"), external.NoOption, "on|off"},
			"provider":          {opt("providers", "Moon"), external.NoProvider, "CPU"},
			"option of another": {opt("Moon.x", "1"), external.NoOption, "PROVIDER.KEY"},
			"of no provider":    {opt("CPU.x", "1"), external.NoOption, "PROVIDER.KEY"},
		} {
			task := c.task
			task.Folder = t.TempDir()
			if task.Format == "" {
				task.Format = "onnx"
			}
			if task.Model == "" {
				task.Model = file
			}
			if task.Inputs == nil {
				task.Inputs = []external.Tensor{x}
			}
			s, err := l.Load(&task)
			if code(err) != c.want || !strings.Contains(errText(err), c.text) {
				t.Errorf("%s: %v, want %s with %q", name, err, c.want, c.text)
			}
			if s != nil {
				t.Errorf("%s: a session in spite of %v", name, err)
			}
		}
	})
}

// TestSettings tells what is in effect.
func TestSettings(t *testing.T) {
	t.Parallel()
	n := newNet()
	n.input("x", tensor.Float32, 2)
	n.node("r", "Relu", nil, []string{"y"}, "x")
	n.output("y", tensor.Float32, []int{2})
	file := n.save(t)
	each(t, func(t *testing.T, l *library) {
		s, err := l.Load(&external.Task{Model: file, Format: "onnx", Threads: 2, Folder: t.TempDir(), Inputs: []external.Tensor{{Name: "x", DType: "float32", Shape: []int{2}, Data: floats(-1, 2)}}, Options: []external.Option{
			{Key: "optimization", Value: "basic"},
			{Key: "execution", Value: "parallel"},
			{Key: "inter_op_threads", Value: "2"},
			{Key: "memory_pattern", Value: "off"},
			{Key: "session.intra_op.allow_spinning", Value: "0"},
			{Key: "providers", Value: "cpu"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b, err := s.Clone()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []external.Session{s, b} {
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
			if out, err := s.Outputs(); err != nil || !bytes.Equal(out[0].Data, floats(0, 2)) {
				t.Errorf("%v, %v", out, err)
			}
		}
		got := s.Facts()
		want := map[string]string{
			"providers": processor, "optimization": "basic", "execution": "parallel", "intra_op_threads": "2", "inter_op_threads": "2", "arena": "on",
			"memory_pattern": "off", "session.intra_op.allow_spinning": "0",
		}
		if !reflect.DeepEqual(got.Settings, want) {
			t.Errorf("%v", got.Settings)
		}
		if (got.ArenaBytes != nil) != (l.minor >= withStats) {
			t.Errorf("arena of %v", got.ArenaBytes)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Run(); err != nil {
			t.Error(err)
		}
	})
}

// TestAllocates finds no allocation in the timed call. Runs of the library itself make none of
// Go's.
func TestAllocates(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counted on Linux")
	}
	n := newNet()
	n.input("x", tensor.Float32, 2)
	n.node("r", "Relu", nil, []string{"y"}, "x")
	n.output("y", tensor.Float32, []int{2})
	l := open(t, "1.32.0")
	s, err := l.Load(&external.Task{Model: n.save(t), Format: "onnx", Threads: 1, Folder: t.TempDir(), Inputs: []external.Tensor{{Name: "x", DType: "float32", Shape: []int{2}, Data: floats(-1, 2)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Run(); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
