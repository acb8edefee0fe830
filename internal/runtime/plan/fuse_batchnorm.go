package plan

import (
	"maps"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fuseBatchNorms folds a batch normalisation into the convolution before it, whose weights and
// bias absorb its factors and offsets when they are prepared. The inputs of the normalisation
// follow the inputs of the convolution, and epsilon becomes an attribute. If several convolutions
// are concatenated along the channels and then normalised, each absorbs its own part.
func fuseBatchNorms(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	uses := g.readers()
	for j := range g.Tasks {
		u := &g.Tasks[j]
		n := u.Node
		if u.State != Runs || u.final || u.Lowered && !u.wide || n.Domain != graph.ONNX || n.Op != "BatchNormalization" || n.Version < 7 ||
			len(n.Inputs) != 5 || len(n.Outputs) != 1 || n.Attrs.Bool("training_mode", false) || !g.floatConstants(n.Inputs[1:], u.wide) {
			continue
		}
		i := g.maker[n.Inputs[0]] - 1
		if i < 0 || uses[n.Inputs[0]] != 1 {
			continue
		}
		if g.normalisable(i, u.wide) {
			m := normalised(g.Tasks[i].Node, n, n.Inputs[1:])
			m.Outputs = n.Outputs
			g.replace(i, m, j)
			g.Tasks[i].Lowered = true
			continue
		}
		g.normaliseParts(i, j, uses)
	}
	g.InferAll()
}

// normalisable reports whether task i is a convolution that can absorb the factors of a
// normalisation.
func (g *Graph) normalisable(i int, wide bool) bool {
	t := &g.Tasks[i]
	c := t.Node
	return t.State == Runs && !t.final && !t.act.On && t.wide == wide && (!t.Lowered || t.wide) && !t.Dynamic && c.Domain == graph.ONNX && c.Op == "Conv" &&
		len(c.Inputs) <= 3 && g.floatConstants(c.Inputs[1:], wide)
}

// normalised returns convolution c with the normalisation n; of holds the value ids of scale,
// shift, mean and variance.
func normalised(c, n *graph.Node, of []int) *graph.Node {
	m := *c
	m.Inputs = append([]int{c.Inputs[0], c.Inputs[1], -1}, of...)
	if len(c.Inputs) > 2 {
		m.Inputs[2] = c.Inputs[2]
	}
	if m.Attrs = maps.Clone(c.Attrs); m.Attrs == nil {
		m.Attrs = graph.Attrs{}
	}
	m.Attrs["epsilon"] = n.Attrs.Float("epsilon", 1e-5)
	return &m
}

// normaliseParts folds the normalisation j into the convolutions whose channels task i
// concatenates.
func (g *Graph) normaliseParts(i, j int, uses []int) {
	t, n := &g.Tasks[i], g.Tasks[j].Node
	c := t.Node
	y := g.value(n.Inputs[0])
	if t.State != Runs || t.final || t.wide != g.Tasks[j].wide || t.Lowered && !t.wide || t.Dynamic || c.Domain != graph.ONNX || c.Op != "Concat" ||
		y == nil || y.Rank() < 3 || c.Attrs.Int("axis", 0) != 1 && c.Attrs.Int("axis", 0) != 1-y.Rank() {
		return
	}
	var parts, sizes []int
	all := 0
	for _, id := range c.Inputs {
		if id < 0 || uses[id] != 1 || g.maker[id] == 0 || !g.normalisable(g.maker[id]-1, t.wide) {
			return
		}
		k := g.maker[id] - 1
		w := g.value(g.Tasks[k].Node.Inputs[1])
		if w == nil || w.Rank() < 3 {
			return
		}
		parts, sizes = append(parts, k), append(sizes, w.Shape[0])
		all += w.Shape[0]
	}
	for _, id := range n.Inputs[1:] {
		if g.compute(id, g.opts.FoldBytes, 0) != nil || g.Values[id].Rank() != 1 || g.Values[id].Len() != all {
			return
		}
	}
	at := 0
	for k, p := range parts {
		of := make([]int, 4)
		for r := range of {
			x := g.Values[n.Inputs[1+r]]
			w := x.Type.Bits() / 8
			b := &tensor.Tensor{Type: x.Type, Shape: []int{sizes[k]}, Data: x.Data[at*w : (at+sizes[k])*w]}
			of[r] = g.add(&graph.Value{Type: b.Type, Shape: b.Shape, HasShape: true, Const: b, Offset: -1}, b)
		}
		at += sizes[k]
		g.replace(p, normalised(g.Tasks[p].Node, n, of))
		// If one of them is reverted to the file's node, all are.
		g.Tasks[p].Lowered, g.Tasks[p].pair = true, i+1
		if k+1 < len(parts) {
			g.Tasks[p].pair = parts[k+1] + 1
		}
	}
	m := *c
	m.Outputs = n.Outputs
	g.replace(i, &m, j)
	t.Lowered, t.pair = true, parts[0]+1
}

// floatConstants reports whether values are float32 constants, or float16 ones of a task that
// computes in float32.
func (g *Graph) floatConstants(ids []int, wide bool) bool {
	for _, id := range ids {
		if id < 0 {
			continue
		}
		x := g.Values[id]
		if x == nil || !g.Fixed[id] || x.Type != tensor.Float32 && !(wide && x.Type.IsHalf()) {
			return false
		}
	}
	return true
}
