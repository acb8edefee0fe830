package inputs

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// A batch that no output has is refused; a state with the batch behind its layers, an output
// beside another one that has it, and the batch of the file are not.
func TestCheckBatch(t *testing.T) {
	t.Parallel()
	reshaped := func(to ...int64) *graph.Node {
		return &graph.Node{Op: "Reshape", Version: 13, Inputs: []int{0, 1}, Outputs: []int{2}, Attrs: graph.Attrs{"to": to}}
	}
	relu := &graph.Node{Op: "Relu", Version: 13, Inputs: []int{0}, Outputs: []int{3}}
	for _, c := range []struct {
		name    string
		nodes   []*graph.Node
		outputs []int
		batch   int
		fails   bool
	}{
		{"fixed", []*graph.Node{reshaped(1, -1)}, []int{2}, 8, true},
		{"fixed with more axes", []*graph.Node{reshaped(1, 4, -1)}, []int{2}, 8, true},
		{"of the file", []*graph.Node{reshaped(1, -1)}, []int{2}, 1, false},
		{"behind the layers", []*graph.Node{reshaped(1, 8, 6)}, []int{2}, 8, false},
		{"flattened", []*graph.Node{reshaped(-1, 2)}, []int{2}, 8, false},
		{"beside another output", []*graph.Node{reshaped(1, -1), relu}, []int{2, 3}, 8, false},
		{"open", []*graph.Node{relu}, []int{3}, 8, false},
	} {
		g := &graph.Graph{Name: "g", Inputs: []int{0}, Outputs: c.outputs, Values: []*graph.Value{
			{ID: 0, Name: "x", Type: tensor.Float32, Shape: []int{-1, 6}, HasShape: true},
			{ID: 1, Name: "to", Type: tensor.Int64},
			{ID: 2, Name: "y", Type: tensor.Float32},
			{ID: 3, Name: "z", Type: tensor.Float32},
		}}
		for i, n := range c.nodes {
			copied := *n
			copied.Index = i
			if to, ok := n.Attrs["to"].([]int64); ok {
				g.Values[1].Const, copied.Attrs = tensor.From(tensor.Int64, []int{len(to)}, to), nil
			}
			g.Nodes = append(g.Nodes, &copied)
		}
		m := &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{g}}
		o := Options{Batch: c.batch}
		ins, _, err := Shapes(m, o)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		p, err := plan.Make(m, ins, plan.Options{Registry: operators.Registry()})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err = CheckBatch(p, o)
		if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "the model fixes a batch of 1 inside: output y is 1x") {
			t.Errorf("%s: %v, want an error: %v", c.name, err, c.fails)
		}
	}
}
