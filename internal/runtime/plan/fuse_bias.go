package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fuseBiases fuses the addition of a constant, one number per output channel or column, into the
// convolution or MatMul before it. A MatMul gets the constant as a third input.
func fuseBiases(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	uses := g.readers()
	for j := range g.Tasks {
		u := &g.Tasks[j]
		n := u.Node
		if u.State != Runs || u.final || u.Lowered && !u.wide || n.Domain != graph.ONNX || n.Op != "Add" || n.Version < 7 || len(n.Inputs) != 2 || slices.Contains(n.Inputs, -1) {
			continue
		}
		for k, id := range n.Inputs {
			i := g.maker[id] - 1
			if i < 0 || uses[id] != 1 || !g.acceptsBias(i, u.wide) {
				continue
			}
			t := &g.Tasks[i]
			bias := g.perColumn(t.Node, n.Inputs[1-k], u.wide)
			if bias < 0 {
				continue
			}
			m := *t.Node
			m.Inputs = append(slices.Clone(m.Inputs[:2]), bias)
			m.Outputs = n.Outputs
			g.replace(i, &m, j)
			t.Lowered = true
			break
		}
	}
	g.InferAll()
}

// acceptsBias reports whether task i is a convolution or MatMul with constant weights and no bias
// yet.
func (g *Graph) acceptsBias(i int, wide bool) bool {
	t := &g.Tasks[i]
	n := t.Node
	return t.State == Runs && !t.final && !t.act.On && t.wide == wide && (!t.Lowered || t.wide) && !t.Dynamic && n.Domain == graph.ONNX &&
		(n.Op == "Conv" || n.Op == "MatMul") && (len(n.Inputs) == 2 || len(n.Inputs) == 3 && n.Inputs[2] < 0) && n.Inputs[0] >= 0 && n.Inputs[1] >= 0 && g.floatConstants(n.Inputs[1:2], wide)
}

// perColumn returns a one-dimensional constant with one number per output channel of a
// convolution, or per column of a MatMul with one matrix. It returns -1 for anything else, or if
// the addition adds axes to the result.
func (g *Graph) perColumn(n *graph.Node, id int, wide bool) int {
	if !g.floatConstants([]int{id}, wide) {
		return -1
	}
	x, w, y := g.Values[id], g.Values[n.Inputs[1]], g.Values[n.Outputs[0]]
	if y == nil || y.Type == tensor.Invalid || len(x.Shape) > len(y.Shape) || len(w.Shape) < 2 {
		return -1
	}
	channels, behind := w.Shape[0], len(y.Shape)-2 // spatial axes
	if n.Op == "MatMul" {
		if channels, behind = w.Shape[1], 0; len(w.Shape) != 2 {
			return -1
		}
	}
	at := len(x.Shape) - 1 - behind
	if at < 0 || x.Shape[at] != channels || x.Len() != channels || g.compute(id, g.opts.FoldBytes, 0) != nil {
		return -1
	}
	b := &tensor.Tensor{Type: x.Type, Shape: []int{channels}, Data: g.Values[id].Data}
	return g.add(&graph.Value{Type: b.Type, Shape: b.Shape, HasShape: true, Const: b, Offset: -1}, b)
}
