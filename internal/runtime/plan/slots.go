package plan

import (
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Slot is an entry in the list of a model's steps: a step of the main graph, or of a graph that
// control flow runs.
type Slot struct {
	Step
	Parent int   // slot of the enclosing control-flow step, -1 in the main graph
	Bodies []int // graphs that the step runs
}

// List lists the steps of the main graph, with the steps of bodies after their owner. A body that
// several steps share is listed once, after the first. steps describes a graph; if it returns
// nil, the entries state what the file declares.
func List(m *graph.Model, steps func(graph int) []Step) []Slot {
	n := 0
	for _, g := range m.Graphs {
		n += len(g.Nodes)
	}
	out := make([]Slot, 0, n)
	seen := make([]bool, len(m.Graphs))
	var add func(g, parent int)
	add = func(g, parent int) {
		seen[g] = true
		list := steps(g)
		if list == nil {
			list = Declared(m, m.Graphs[g])
		}
		for _, st := range list {
			at := len(out)
			out = append(out, Slot{Step: st, Parent: parent, Bodies: Bodies(st.Node)})
			for _, b := range out[at].Bodies {
				if b >= 0 && b < len(seen) && !seen[b] {
					add(b, at)
				}
			}
		}
	}
	add(0, -1)
	return out
}

// Declared describes a graph that was never planned by what the file declares.
func Declared(m *graph.Model, g *graph.Graph) []Step {
	of := func(ids []int) []*tensor.Tensor {
		out := make([]*tensor.Tensor, len(ids))
		for i, id := range ids {
			if id < 0 || id >= len(g.Values) {
				continue
			}
			v := g.Values[id]
			switch {
			case v.Const != nil && !v.Variable:
				out[i] = v.Const
				continue
			case v.Type == tensor.Invalid && !v.HasShape:
				continue
			}
			t := &tensor.Tensor{Type: v.Type, Shape: v.Shape, Quant: v.Quant, Elem: v.Elem}
			switch {
			case v.Placeholder != nil:
				t.Shape = v.Placeholder
			case !v.HasShape:
				t.Shape = []int{-1} // unknown, not a scalar
			}
			out[i] = t
		}
		return out
	}
	out := make([]Step, len(g.Nodes))
	for i, n := range g.Nodes {
		in, results := of(n.Inputs), of(n.Outputs)
		out[i] = Step{Graph: g.Index, Node: n, Runs: n, In: in, Out: results, Calls: count.Bodies(m, n, in, results), Into: -1}
	}
	return out
}
