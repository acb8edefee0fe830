package submodel_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// models lists the reference models of a folder.
func models(t *testing.T, folder string) []string {
	t.Helper()
	var out []string
	for _, ending := range []string{"*.tflite", "*.onnx"} {
		list, err := filepath.Glob(filepath.Join(material.Path(t, "models", folder), ending))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list...)
	}
	if len(out) == 0 {
		t.Fatalf("no models in %s", folder)
	}
	return out
}

// huge are models whose weights alone take a second to pack: only where all material must be there.
var huge = []string{"vgg19", "resnet50", "alexnet", "zfnet", "inception"}

// large are models that take seconds an inference: one cut of each is enough.
var large = []string{"deeplab", "conformer", "vad.onnx", "op15", "ifless", "qwen35", "minilm"}

// TestPrefixes runs prefixes of all reference models with the engine: every operator of a cut has
// exactly the outputs that it has in the whole model.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"real", "synthetic", "mcu"} {
		for _, path := range models(t, folder) {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				if named(path, huge) && !material.Required() {
					t.Skip("a huge model: set OPMETER_REQUIRE")
				}
				prefixes(t, path)
			})
		}
	}
}

func named(path string, parts []string) bool {
	return slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(filepath.Base(path), s) })
}

func prefixes(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := submodel.New(data, path, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	m, err := opmeter.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	whole, files := run(t, m, opmeter.Inputs{}, t.TempDir())
	n := len(s.Model().Main().Nodes)
	if n != len(whole) {
		t.Fatalf("%d nodes, the engine has %d", n, len(whole))
	}
	at := []int{0, n / 3, n - 1}
	if named(path, large) || named(path, huge) || testing.Short() {
		at = []int{n / 2}
	}
	for _, last := range slices.Compact(at) {
		part, err := s.Prefix(last)
		var e *submodel.Error
		if errors.As(err, &e) && (e.Code == submodel.NoOutput || e.Code == submodel.InFunction) {
			t.Logf("prefix of %d: %v", last, err)
			continue
		}
		if err != nil {
			t.Fatalf("prefix of %d: %v", last, err)
		}
		// Another folder: nothing beside the model is there.
		name := filepath.Join(t.TempDir(), "part"+filepath.Ext(path))
		if err := os.WriteFile(name, part.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := opmeter.Open(name)
		if err != nil {
			t.Fatalf("prefix of %d: %v", last, err)
		}
		have, _ := run(t, p, opmeter.Inputs{Files: files}, "")
		_ = p.Close()
		if len(have) != last+1 {
			t.Fatalf("prefix of %d has %d operators", last, len(have))
		}
		for i := range have {
			same(t, &have[i], &whole[i])
		}
	}
}

// run runs a model once and returns its operators, and files with its inputs in a folder where
// one is given.
func run(t *testing.T, m *opmeter.Model, in opmeter.Inputs, dir string) ([]opmeter.Operator, map[string]string) {
	t.Helper()
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: in, KeepAll: true, MaxMemory: 2 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	files := map[string]string{}
	if dir != "" {
		for i, x := range s.Inputs() {
			if !x.Array() || x.Name == "" {
				continue
			}
			name := filepath.Join(dir, string(rune('a'+i))+".npy")
			f, err := os.Create(name)
			if err == nil {
				err = errors.Join(x.WriteNPY(f), f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			files[x.Name] = name
		}
	}
	if err := s.Run(context.Background()); err != nil {
		t.Log(err)
	}
	out := s.Operators()
	for i := range out {
		for k := range out[i].Outputs {
			o := &out[i].Outputs[k]
			o.Data, o.Strings, o.Shape = bytes.Clone(o.Data), slices.Clone(o.Strings), slices.Clone(o.Shape)
		}
	}
	return out, files
}

func same(t *testing.T, a, b *opmeter.Operator) {
	t.Helper()
	if a.Op != b.Op || (a.Err == nil) != (b.Err == nil) || len(a.Outputs) != len(b.Outputs) {
		t.Fatalf("operator %d is %s %q with %d outputs (%v), want %s %q with %d (%v)", b.Node, a.Op, a.Name, len(a.Outputs), a.Err, b.Op, b.Name, len(b.Outputs), b.Err)
	}
	for k := range a.Outputs {
		x, y := &a.Outputs[k], &b.Outputs[k]
		if x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Data, y.Data) || !slices.Equal(x.Strings, y.Strings) {
			t.Errorf("operator %d, %s: output %d %q differs", b.Node, b.Op, k, y.Name)
		}
	}
}

// TestAround cuts single nodes out: both parts are models, which differ by the node alone.
func TestAround(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"synthetic", "mcu"} {
		for _, path := range models(t, folder) {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				s, err := submodel.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close() }()
				n := len(s.Model().Main().Nodes)
				for _, i := range []int{0, n / 2, n - 1} {
					with, without, err := s.WithAndWithout([]int{i})
					if e, ok := errors.AsType[*submodel.Error](err); ok && e.Code == submodel.NoOutput {
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					a, b := operators(t, path, with), map[string]int{}
					if without != nil {
						b = operators(t, path, without)
					}
					more := map[string]int{}
					for op, k := range a {
						if k != b[op] {
							more[op] = k - b[op]
						}
					}
					if op := s.Model().Main().Nodes[i].Key(); len(more) != 1 || more[op] != 1 {
						t.Errorf("node %d, %s: the parts differ by %v", i, op, more)
					}
				}
			})
		}
	}
}

// operators counts the operators of a part by kind.
func operators(t *testing.T, path string, part *submodel.Model) map[string]int {
	t.Helper()
	s, err := submodel.New(part.Data, path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	out := map[string]int{}
	for _, n := range s.Model().Main().Nodes {
		out[n.Key()]++
	}
	return out
}

// TestValues makes values of every model outputs of it, in the order asked for.
func TestValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, end := range []string{"onnx", "tflite"} {
		f32 := func(id int, name string) *graph.Value {
			return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{1, 3}, HasShape: true, Offset: -1}
		}
		node := func(i int, op string, in, out int) *graph.Node {
			n := &graph.Node{Index: i, Op: op, Version: 17, Inputs: []int{in}, Outputs: []int{out}}
			if end == "tflite" {
				n.Op, n.Domain, n.Version = strings.ToUpper(op), graph.TFLite, 1
			}
			return n
		}
		m := &graph.Model{Format: end, IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{{
			Name: "net", Inputs: []int{0}, Outputs: []int{4},
			Values: []*graph.Value{f32(0, "x"), f32(1, "a"), f32(2, "b"), f32(3, "c"), f32(4, "y")},
			Nodes:  []*graph.Node{node(0, "Relu", 0, 1), node(1, "Neg", 1, 2), node(2, "Exp", 2, 3), node(3, "Abs", 3, 4)},
		}}}
		encode := onnx.Encode
		if end == "tflite" {
			encode = tflite.Encode
		}
		data, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		s, err := submodel.New(data, filepath.Join(dir, "m."+end), "")
		if err != nil {
			t.Fatal(err)
		}
		if !s.Has(2) || s.Has(0) {
			t.Errorf("%s: it has b: %v, and x, which no node computes: %v", end, s.Has(2), s.Has(0))
		}
		part, err := s.Values([]int{2, 1})
		if err != nil {
			t.Fatal(err)
		}
		if part.Nodes != 2 || !slices.Equal(part.Outputs, []string{"b", "a"}) {
			t.Errorf("%s: %d nodes with the outputs %q, want 2 and b, a", end, part.Nodes, part.Outputs)
		}
		if _, err := s.Values([]int{0}); err == nil {
			t.Errorf("%s: an input became an output", end)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
