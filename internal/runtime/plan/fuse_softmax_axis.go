package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// fuseSoftmaxAxis finds a SOFTMAX of TFLite models along an axis that the file transposes to the
// end and back, reshapes between included, and computes it where the axis is.
func fuseSoftmaxAxis(g *Graph) {
	if g.model.ONNX() {
		return
	}
	m := &liteMatcher{matcher: matcher{g: g, uses: g.readers(), domain: graph.TFLite}}
	for i := range g.Tasks {
		if !m.is(i, "TRANSPOSE", 2) {
			continue
		}
		soft, x, axis := m.softmaxAxis(i)
		if soft == nil {
			continue
		}
		n := g.Tasks[i].Node
		g.replace(i, &graph.Node{
			Index: n.Index, Name: n.Name, Domain: n.Domain, Function: n.Function, Op: soft.Op, Version: soft.Version, Inputs: []int{x}, Outputs: n.Outputs,
			Attrs: graph.Attrs{"beta": soft.Attrs.Float("beta", 1), op.AttrAxis: int64(axis)},
		}, m.taken...)
		g.Tasks[i].Lowered = true
	}
	g.InferAll()
}

// softmaxAxis returns the softmax that TRANSPOSE i ends, its input and its axis; nil if it ends
// none.
func (m *liteMatcher) softmaxAxis(i int) (soft *graph.Node, x, axis int) {
	m.begin(i)
	last := m.g.Tasks[i].Node
	y := m.float32Value(last.Outputs[0])
	back := m.g.permutation(i)
	if y == nil || y.Rank() == 0 || back == nil {
		return nil, 0, 0
	}
	if soft = m.producer(m.reshaped(last.Inputs[0], 1), "SOFTMAX", 1); soft == nil || m.float32Value(soft.Outputs[0]) == nil {
		return nil, 0, 0
	}
	first := m.producer(m.reshaped(soft.Inputs[0], 1), "TRANSPOSE", 2)
	if first == nil {
		return nil, 0, 0
	}
	from, to := m.float32Value(first.Outputs[0]), m.float32Value(last.Inputs[0])
	order := m.g.permutation(m.taken[len(m.taken)-1])
	if m.float32Value(first.Inputs[0]) == nil || from == nil || to == nil || !slices.Equal(from.Shape, to.Shape) || !graph.Inverse(order, back) {
		return nil, 0, 0
	}
	return soft, first.Inputs[0], order[len(order)-1]
}
