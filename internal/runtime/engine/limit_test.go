package engine_test

import (
	"errors"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// TestMaxBytes rejects a model that requests more memory than the limit, and accepts one that
// just fits.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	value := func(id int, name string) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: []int{1024}, HasShape: true}
	}
	g := &graph.Graph{
		Values: []*graph.Value{value(0, "x"), value(1, "a"), value(2, "y")},
		Inputs: []int{0}, Outputs: []int{1, 2},
		Nodes: []*graph.Node{
			{Index: 0, Op: "Relu", Version: 17, Inputs: []int{0}, Outputs: []int{1}},
			{Index: 1, Op: "Exp", Version: 17, Inputs: []int{1}, Outputs: []int{2}},
		},
	}
	m := &graph.Model{Format: "onnx", Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}}
	for _, tt := range []struct {
		name  string
		limit int
		fits  bool
	}{
		{"no limit", 0, true},
		{"both fit", 8192, true},
		{"one fits", 8191, false},
	} {
		s, err := engine.New(m, []*tensor.Tensor{tensor.New(tensor.Float32, 1024)}, engine.Options{Registry: operators.Registry(), MaxBytes: tt.limit})
		if tt.fits {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			s.Close()
			continue
		}
		if le := (*op.LimitError)(nil); !errors.As(err, &le) {
			t.Errorf("%s: error %v, want a LimitError", tt.name, err)
		}
	}
	// A single value beyond the limit is a failure of its node.
	s, err := engine.New(m, []*tensor.Tensor{tensor.New(tensor.Float32, 1024)}, engine.Options{Registry: operators.Registry(), MaxBytes: 4095})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if st := s.Steps()[0]; st.State != engine.Failed {
		t.Errorf("a value of 4096 bytes with 4095 allowed: %v, want failed", st.State)
	}
}
