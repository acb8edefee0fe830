package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// biases joins the addition of a constant, one number for each output channel or column, to the convolution or
// the product of matrices before it. A product then has the constant as a third input.
func biases(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	uses := g.readers()
	for j := range g.Tasks {
		u := &g.Tasks[j]
		n := u.Node
		if u.State != Runs || u.asIs || u.Lowered && !u.wide || n.Domain != graph.ONNX || n.Op != "Add" || n.Version < 7 || len(n.Inputs) != 2 || slices.Contains(n.Inputs, -1) {
			continue
		}
		for k, id := range n.Inputs {
			i := g.maker[id] - 1
			if i < 0 || uses[id] != 1 || !g.unbiased(i, u.wide) {
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
	g.Settle()
}

// unbiased tells whether task i is a convolution or a product with constant weights that adds nothing yet.
func (g *Graph) unbiased(i int, wide bool) bool {
	t := &g.Tasks[i]
	n := t.Node
	return t.State == Runs && !t.asIs && !t.act.On && t.wide == wide && (!t.Lowered || t.wide) && !t.Dynamic && n.Domain == graph.ONNX &&
		(n.Op == "Conv" || n.Op == "MatMul") && (len(n.Inputs) == 2 || len(n.Inputs) == 3 && n.Inputs[2] < 0) && n.Inputs[0] >= 0 && n.Inputs[1] >= 0 && g.scales(n.Inputs[1:2], wide)
}

// perColumn is a constant with one number for each output channel of a convolution, or each column of a product
// with one matrix, as one axis; -1 for what is something else, or adds axes to the result.
func (g *Graph) perColumn(n *graph.Node, id int, wide bool) int {
	if !g.scales([]int{id}, wide) {
		return -1
	}
	x, w, y := g.Values[id], g.Values[n.Inputs[1]], g.Values[n.Outputs[0]]
	if y == nil || y.Type == tensor.Invalid || len(x.Shape) > len(y.Shape) || len(w.Shape) < 2 {
		return -1
	}
	channels, behind := w.Shape[0], len(y.Shape)-2 // axes behind that of the channels
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
