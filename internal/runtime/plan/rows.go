package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// rows finds where a loop of TFLite sets a row of a list. Files cut the list before the row and behind it and join the parts with the new row
// between them: the parts are of another shape in each turn, and so is, before it is computed, the result. It has the list's.
func rows(g *Graph) {
	if g.model.Format != "tflite" {
		return
	}
	r := &rowMatcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if n := r.match(i); n != nil {
			g.replace(i, n, r.taken...)
			g.Tasks[i].Lowered = true
		}
	}
	g.Settle()
}

// rowMatcher compares the tasks behind a value with the way in which rows are set.
type rowMatcher struct {
	g     *Graph
	uses  []int
	taken []int // tasks that the match computes, too
}

// match is the node that sets the row where task i joins the parts of a list around it, nil if it does something else.
func (r *rowMatcher) match(i int) *graph.Node {
	r.taken = nil
	n := r.is(i, "CONCATENATION", 3)
	if n == nil || n.Attrs.Int("axis", 0) != 0 {
		return nil
	}
	before, behind := r.made(n.Inputs[0], "SLICE", 3), r.made(n.Inputs[2], "SLICE", 3)
	if before == nil || behind == nil || before.Inputs[0] != behind.Inputs[0] || !r.all(before.Inputs[1], 0) || !r.all(behind.Inputs[2], -1) || !r.row(n, before.Inputs[0]) {
		return nil
	}
	// The first part ends where the row is, the second begins one further on.
	end, begin := r.first(before.Inputs[2], -1, true), r.first(behind.Inputs[1], 0, false)
	if end < 0 || begin < 0 {
		return nil
	}
	m := r.g.maker[begin] - 1
	if m < 0 {
		return nil
	}
	next := r.is(m, "ADD", 2)
	if next == nil || next.Inputs[0] != end || !r.all(next.Inputs[1], 1) || r.g.Values[end] == nil || r.g.Values[end].Len() != 1 {
		return nil
	}
	t := r.g.Tasks[i].Node
	return &graph.Node{
		Index: t.Index, Name: t.Name, Op: "DYNAMIC_UPDATE_SLICE", Domain: graph.TFLite, Version: 1,
		Inputs: []int{before.Inputs[0], n.Inputs[1], behind.Inputs[1]}, Outputs: t.Outputs, Attrs: graph.Attrs{"behind": true},
	}
}

// row tells whether what stands between the parts of a list is one row of it, of the same numbers.
func (r *rowMatcher) row(n *graph.Node, list int) bool {
	x, y := r.g.Values[list], r.g.Values[n.Inputs[1]]
	if x == nil || y == nil || x.Type == tensor.Invalid || x.Type != y.Type || x.Type == tensor.String || x.Rank() == 0 || x.Rank() != y.Rank() || y.Shape[0] != 1 || !slices.Equal(x.Shape[1:], y.Shape[1:]) {
		return false
	}
	for _, id := range []int{list, n.Inputs[0], n.Inputs[1], n.Inputs[2], n.Outputs[0]} {
		if r.g.Graph.Values[id].Quant != nil {
			return false
		}
	}
	return true
}

// is gives the node of task i if it runs an operator with n inputs, one output, and no activation.
func (r *rowMatcher) is(i int, name string, inputs int) *graph.Node {
	n := r.g.Tasks[i].Node
	if !r.g.given(i) || n.Op != name || len(n.Inputs) != inputs || len(n.Outputs) != 1 ||
		slices.Contains(n.Inputs, -1) || n.Attrs.Str("fused_activation_function", "NONE") != "NONE" {
		return nil
	}
	return n
}

// made is the node that makes a value for nobody but the match, if it is one of the name; its task is taken.
func (r *rowMatcher) made(id int, name string, inputs int) *graph.Node {
	i := r.g.maker[id] - 1
	if i < 0 || r.uses[id] != 1 {
		return nil
	}
	n := r.is(i, name, inputs)
	if n != nil {
		r.taken = append(r.taken, i)
	}
	return n
}

// all tells whether a value is a constant of integers that are all the same.
func (r *rowMatcher) all(id, want int) bool {
	if !r.g.Fixed[id] || r.g.compute(id, r.g.opts.FoldBytes, 0) != nil {
		return false
	}
	v, err := op.Ints(r.g.Values[id])
	return err == nil && !slices.ContainsFunc(v, func(x int) bool { return x != want })
}

// first is the number that stands in front of others that are all rest, -1 for what is something else. With take
// the tasks that put them together are not needed any more.
func (r *rowMatcher) first(id, rest int, take bool) int {
	i := r.g.maker[id] - 1
	if i < 0 {
		return -1
	}
	n := r.is(i, "CONCATENATION", 2)
	if n == nil || n.Attrs.Int("axis", 0) != 0 || !r.all(n.Inputs[1], rest) {
		return -1
	}
	k := r.g.maker[n.Inputs[0]] - 1
	if k < 0 {
		return -1
	}
	one := r.is(k, "RESHAPE", 2)
	if one == nil {
		if one = r.is(k, "EXPAND_DIMS", 2); one == nil {
			return -1
		}
	}
	if take && r.uses[id] == 1 {
		if r.taken = append(r.taken, i); r.uses[n.Inputs[0]] == 1 {
			r.taken = append(r.taken, k)
		}
	}
	return one.Inputs[0]
}
