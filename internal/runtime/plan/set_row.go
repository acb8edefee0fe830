package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// fuseSetRow finds where a TFLite loop sets a row of a list. Files slice the list before and
// after the row and concatenate the parts with the new row. The parts have a different shape in
// each iteration, so the shape of the result is unknown before it is computed. It has the shape
// of the list.
func fuseSetRow(g *Graph) {
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
	g.InferAll()
}

// rowMatcher matches the tasks that compute a value against the pattern that sets a row.
type rowMatcher struct {
	g     *Graph
	uses  []int
	taken []int // tasks that are part of the match
}

// match returns the node that sets the row if task i concatenates the parts of a list around it,
// nil if it does something else.
func (r *rowMatcher) match(i int) *graph.Node {
	r.taken = nil
	n := r.is(i, "CONCATENATION", 3)
	if n == nil || n.Attrs.Int("axis", 0) != 0 {
		return nil
	}
	before, behind := r.producer(n.Inputs[0], "SLICE", 3), r.producer(n.Inputs[2], "SLICE", 3)
	if before == nil || behind == nil || before.Inputs[0] != behind.Inputs[0] || !r.allEqual(before.Inputs[1], 0) || !r.allEqual(behind.Inputs[2], -1) || !r.row(n, before.Inputs[0]) {
		return nil
	}
	// The first part ends at the row, the second begins one after it.
	end, begin := r.firstOf(before.Inputs[2], -1, true), r.firstOf(behind.Inputs[1], 0, false)
	if end < 0 || begin < 0 {
		return nil
	}
	m := r.g.maker[begin] - 1
	if m < 0 {
		return nil
	}
	next := r.is(m, "ADD", 2)
	if next == nil || next.Inputs[0] != end || !r.allEqual(next.Inputs[1], 1) || r.g.Values[end] == nil || r.g.Values[end].Len() != 1 {
		return nil
	}
	t := r.g.Tasks[i].Node
	return &graph.Node{
		Index: t.Index, Name: t.Name, Op: "DYNAMIC_UPDATE_SLICE", Domain: graph.TFLite, Version: 1,
		Inputs: []int{before.Inputs[0], n.Inputs[1], behind.Inputs[1]}, Outputs: t.Outputs, Attrs: graph.Attrs{"behind": true},
	}
}

// row reports whether the middle part is one row of the list, with the same quantisation.
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

// is returns the node of task i if it runs an operator with n inputs, one output, and no
// activation.
func (r *rowMatcher) is(i int, name string, inputs int) *graph.Node {
	n := r.g.Tasks[i].Node
	if !r.g.asInFile(i) || n.Op != name || len(n.Inputs) != inputs || len(n.Outputs) != 1 ||
		slices.Contains(n.Inputs, -1) || n.Attrs.Str("fused_activation_function", "NONE") != "NONE" {
		return nil
	}
	return n
}

// producer returns the node that computes a value, if it has the given name and only the match
// reads the value; its task is then part of the match.
func (r *rowMatcher) producer(id int, name string, inputs int) *graph.Node {
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

// allEqual reports whether a value is an integer constant with all elements equal to want.
func (r *rowMatcher) allEqual(id, want int) bool {
	if !r.g.Fixed[id] || r.g.compute(id, r.g.opts.FoldBytes, 0) != nil {
		return false
	}
	v, err := op.Ints(r.g.Values[id])
	return err == nil && !slices.ContainsFunc(v, func(x int) bool { return x != want })
}

// firstOf returns the first element of a vector whose other elements are all rest, -1 for
// anything else. With take, the tasks that build the vector are no longer needed.
func (r *rowMatcher) firstOf(id, rest int, take bool) int {
	i := r.g.maker[id] - 1
	if i < 0 {
		return -1
	}
	n := r.is(i, "CONCATENATION", 2)
	if n == nil || n.Attrs.Int("axis", 0) != 0 || !r.allEqual(n.Inputs[1], rest) {
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
