package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// cancelTransposes computes an element-wise operator between a transposition and its inverse in
// the order before the first.
func cancelTransposes(g *Graph) {
	uses := g.readers()
	for i := range g.Tasks {
		back := g.permutation(i)
		if back == nil {
			continue
		}
		x := g.Tasks[i].Node.Inputs[0]
		j := g.maker[x] - 1
		if j < 0 || uses[x] != 1 {
			continue
		}
		k := g.elementwiseInput(j)
		if k < 0 {
			continue
		}
		n := *g.Tasks[j].Node
		y := n.Inputs[k]
		first := g.maker[y] - 1
		if first < 0 || uses[y] != 1 || !graph.Inverse(g.permutation(first), back) {
			continue
		}
		n.Inputs, n.Outputs = slices.Clone(n.Inputs), slices.Clone(g.Tasks[i].Node.Outputs)
		n.Inputs[k] = g.Tasks[first].Node.Inputs[0]
		g.replace(j, &n, first, i)
		g.Tasks[j].Lowered = true
	}
	g.InferAll()
}

// permutation returns how task i permutes the axes of its input; nil if it is not a transposition
// or the permutation is unknown.
func (g *Graph) permutation(i int) []int {
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.Dynamic || t.final || t.wide || len(n.Inputs) == 0 || len(n.Outputs) != 1 || n.Inputs[0] < 0 || n.Outputs[0] < 0 {
		return nil
	}
	x, y := g.value(n.Inputs[0]), g.value(n.Outputs[0])
	if !known(x) || !known(y) || !sameQuant(x.Quant, y.Quant) || x.Quant != nil && len(x.Quant.Scale) > 1 {
		return nil
	}
	var perm []int
	switch {
	case n.Domain == graph.ONNX && n.Op == "Transpose":
		if perm = n.Attrs.Ints("perm"); perm == nil {
			for a := range x.Rank() {
				perm = append(perm, x.Rank()-1-a)
			}
		}
	case n.Domain == graph.TFLite && n.Op == "TRANSPOSE" && len(n.Inputs) == 2:
		perm, _ = g.integers(n, 1)
	}
	if len(perm) != x.Rank() {
		return nil
	}
	return perm
}

// elementwiseInput returns the input of an element-wise task whose other inputs are constants of
// one element, -1 if it is none.
func (g *Graph) elementwiseInput(i int) int {
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.Dynamic || t.final || t.wide || t.act.On || !n.Elementwise() || n.Outputs[0] < 0 {
		return -1
	}
	at := -1
	for k, id := range n.Inputs {
		switch x := g.value(id); {
		case id < 0:
		case !known(x):
			return -1
		case g.Fixed[id] && x.Len() == 1:
		case at >= 0:
			return -1
		default:
			at = k
		}
	}
	// Constants of more axes than the input would add axes.
	if at < 0 || !slices.Equal(g.value(n.Inputs[at]).Shape, g.value(n.Outputs[0]).Shape) {
		return -1
	}
	return at
}
