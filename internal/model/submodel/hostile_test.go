package submodel_test

import (
	"errors"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/submodel"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// chain is a model x -> a -> b -> c, where c reads a and b, in ONNX or TFLite.
func chain(tb testing.TB, format string) []byte {
	tb.Helper()
	op, domain := [3]string{"Relu", "Neg", "Add"}, ""
	if format == "tflite" {
		op, domain = [3]string{"RELU", "NEG", "ADD"}, graph.TFLite
	}
	g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: []int{3}}
	for i, name := range []string{"x", "a", "b", "c"} {
		g.Values = append(g.Values, &graph.Value{ID: i, Name: name, Type: tensor.Float32, Shape: []int{1, 4}, HasShape: true, Offset: -1})
	}
	g.Nodes = []*graph.Node{
		{Index: 0, Op: op[0], Domain: domain, Version: 1, Inputs: []int{0}, Outputs: []int{1}},
		{Index: 1, Op: op[1], Domain: domain, Version: 1, Inputs: []int{1}, Outputs: []int{2}},
		{Index: 2, Op: op[2], Domain: domain, Version: 1, Inputs: []int{1, 2}, Outputs: []int{3}},
	}
	m := &graph.Model{Format: format, Graphs: []*graph.Graph{g}, IRVersion: 8, Opsets: map[string]int{"": 13}}
	var b []byte
	var err error
	if format == "tflite" {
		m.Signatures = []graph.Signature{{Key: "main", Inputs: []graph.SignatureTensor{{Name: "x", Value: 0}}, Outputs: []graph.SignatureTensor{{Name: "c", Value: 3}}}}
		b, err = tflite.Encode(m)
	} else {
		b, err = onnx.Encode(m)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestChain(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"onnx", "tflite"} {
		s, err := submodel.New(chain(t, format), "chain."+format, "")
		if err != nil {
			t.Fatal(err)
		}
		want := func(m *submodel.Model, nodes int, outputs ...string) {
			t.Helper()
			if m == nil || m.Nodes != nodes || len(m.Outputs) != len(outputs) {
				t.Fatalf("%s: %+v, want %d nodes and outputs %v", format, m, nodes, outputs)
			}
			for i := range outputs {
				if m.Outputs[i] != outputs[i] {
					t.Errorf("%s: output %q, want %q", format, m.Outputs[i], outputs[i])
				}
			}
		}
		// What a later node reads is an output, too, whatever lies between.
		p, err := s.Prefix(1)
		if err != nil {
			t.Fatal(err)
		}
		want(p, 2, "a", "b")
		with, without, err := s.WithAndWithout([]int{1})
		if err != nil {
			t.Fatal(err)
		}
		want(with, 2, "a", "b")
		want(without, 1, "a")
		with, without, err = s.WithAndWithout([]int{2, 1})
		if err != nil {
			t.Fatal(err)
		}
		want(with, 3, "c")
		want(without, 1, "a")
		if with, without, err = s.WithAndWithout([]int{0}); err != nil || without != nil {
			t.Fatalf("%s: first node: %v, %v", format, without, err)
		}
		want(with, 1, "a")
		for _, tt := range []struct {
			nodes []int
			code  submodel.Code
		}{{nil, submodel.NoNode}, {[]int{3}, submodel.NoNode}, {[]int{-1}, submodel.NoNode}, {[]int{0, 2}, submodel.Between}} {
			_, _, err := s.WithAndWithout(tt.nodes)
			if e, ok := errors.AsType[*submodel.Error](err); !ok || e.Code != tt.code {
				t.Errorf("%s: around %v: %v, want %s", format, tt.nodes, err, tt.code)
			}
		}
		for _, last := range []int{-1, 3} {
			_, err := s.Prefix(last)
			if e, ok := errors.AsType[*submodel.Error](err); !ok || e.Code != submodel.NoNode {
				t.Errorf("%s: prefix of %d: %v", format, last, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoModel cuts what is not a model.
func TestNoModel(t *testing.T) {
	t.Parallel()
	s, err := submodel.New([]byte("no model of any kind"), "x", "")
	if e, ok := errors.AsType[*submodel.Error](err); !ok || e.Code != submodel.Malformed || s != nil {
		t.Errorf("%v, %v", s, err)
	}
}

func FuzzCut(f *testing.F) {
	f.Add(chain(f, "onnx"), uint8(1))
	f.Add(chain(f, "tflite"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, at uint8) {
		s, err := submodel.New(data, "x", "")
		if err != nil {
			if _, ok := errors.AsType[*submodel.Error](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		defer func() { _ = s.Close() }()
		if p, err := s.Prefix(int(at)); err == nil && (p.Nodes < 1 || len(p.Outputs) < 1) {
			t.Fatalf("prefix of %d nodes with %d outputs", p.Nodes, len(p.Outputs))
		}
		if n := len(s.Model().Main().Nodes); n > 0 {
			with, without, err := s.WithAndWithout([]int{int(at) % n})
			if err == nil && (with.Nodes < 1 || without != nil && without.Nodes >= with.Nodes) {
				t.Fatal("the part without has no fewer nodes")
			}
			node := []int{int(at) % n}
			w, err := s.Window(node, s.Predecessors(node))
			if err != nil {
				return
			}
			var given []submodel.Given
			if w.Needs != nil {
				for _, name := range w.Needs.Outputs {
					given = append(given, submodel.Given{Name: name, Type: tensor.Float32, Shape: []int{int(at), 2}})
				}
			}
			if with, without, err = w.Models(given); err == nil && (with.Nodes < 1 || without != nil && without.Nodes >= with.Nodes) {
				t.Fatal("the stretch without has no fewer nodes")
			}
		}
	})
}
