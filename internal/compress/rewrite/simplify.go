package rewrite

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// transposePair is a transposition whose effect a later one cancels.
type transposePair struct {
	first, last int   // node positions
	between     []int // element-wise operators between the two, in order
}

// CancellingTransposes returns the positions of the nodes that [CancelTransposes] removes from the
// main graph.
func CancellingTransposes(m *graph.Model) []int {
	_, removed := CancelTransposes(m)
	return removed
}

// CancelTransposes removes pairs of transpositions of the main graph that cancel. Operators that
// work on each element alone may lie between the two. It also returns the positions of the removed
// nodes. The outputs are bit-exact. Without such a pair the model is returned as it is.
func CancelTransposes(m *graph.Model) (out *graph.Model, removed []int) {
	e := newEdit(m)
	for at := range e.g.Nodes {
		if p, ok := e.pairFrom(at); ok {
			removed = append(removed, e.cancel(p)...)
		}
	}
	if len(removed) == 0 {
		return m, nil
	}
	slices.Sort(removed)
	return e.finish(), removed
}

// remaining returns the positions of nodes that read a value and were not removed.
func (e *edit) remaining(id int) []int {
	return slices.DeleteFunc(e.readers(id), func(at int) bool { return e.removed[e.g.Nodes[at]] })
}

// permutation returns the axes of a transposition, nil for other nodes and unknown axes.
func permutation(g *graph.Graph, n *graph.Node) []int {
	var perm []int
	switch {
	case n.Op == "Transpose" && n.Domain == graph.ONNX:
		if perm = n.Attrs.Ints("perm"); perm == nil {
			v := g.Values[n.Inputs[0]]
			if !v.HasShape {
				return nil
			}
			for d := range v.Shape {
				perm = append(perm, len(v.Shape)-1-d)
			}
		}
	case n.Op == "TRANSPOSE" && len(n.Inputs) == 2 && n.Inputs[1] >= 0:
		c := g.Values[n.Inputs[1]].Const
		if c == nil || !c.Known() || !c.Type.IsInteger() {
			return nil
		}
		list, err := tensor.All[int64](c)
		if err != nil {
			return nil
		}
		for _, d := range list {
			perm = append(perm, int(d))
		}
	}
	seen := make([]bool, len(perm))
	for _, d := range perm {
		if d < 0 || d >= len(perm) || seen[d] {
			return nil
		}
		seen[d] = true
	}
	return perm
}

// pairFrom finds the pair that begins with a node.
func (e *edit) pairFrom(at int) (p transposePair, ok bool) {
	n := e.g.Nodes[at]
	perm := permutation(e.g, n)
	if perm == nil || e.removed[n] || e.quantisedByAxis(n.Inputs[0]) {
		return p, false
	}
	p.first = at
	id := n.Outputs[0]
	for {
		readers := e.remaining(id)
		for _, r := range readers {
			last := e.g.Nodes[r]
			if !graph.Inverse(perm, permutation(e.g, last)) {
				continue
			}
			p.last = r
			if len(p.between) == 0 {
				return p, !e.visibleOutside(last.Outputs[0])
			}
			return p, len(readers) == 1 && !e.visibleOutside(id)
		}
		if len(readers) != 1 || e.visibleOutside(id) || !e.mapsElements(e.g.Nodes[readers[0]], id) {
			return p, false
		}
		p.between = append(p.between, readers[0])
		id = e.g.Nodes[readers[0]].Outputs[0]
		if e.quantisedByAxis(id) {
			return p, false
		}
	}
}

// quantisedByAxis reports whether a value has a scale for each channel: its axis would move.
func (e *edit) quantisedByAxis(id int) bool {
	q := e.g.Values[id].Quant
	return q != nil && len(q.Scale) > 1
}

// mapsElements reports whether a node maps each element of a value on its own.
func (e *edit) mapsElements(n *graph.Node, id int) bool {
	if !n.Elementwise() {
		return false
	}
	data := 0
	for _, in := range n.Inputs {
		switch {
		case in < 0:
		case in == id:
			data++
		case e.g.Values[in].Const == nil || e.g.Values[in].Const.Len() != 1:
			return false
		}
	}
	return data == 1
}

// cancel removes a pair and returns the positions of the removed nodes.
func (e *edit) cancel(p transposePair) (removed []int) {
	first, last := e.g.Nodes[p.first], e.g.Nodes[p.last]
	from, out := first.Inputs[0], last.Outputs[0]
	removed = []int{p.last}
	if len(e.remaining(first.Outputs[0])) == 1 && !e.visibleOutside(first.Outputs[0]) {
		removed = append(removed, p.first)
	}
	if len(p.between) == 0 {
		e.redirect(out, from)
	}
	shape := e.g.Values[from]
	for k, at := range p.between {
		n := e.mutableNode(at)
		if k == 0 {
			for i, id := range n.Inputs {
				if id == first.Outputs[0] {
					n.Inputs[i] = from
				}
			}
		}
		if k == len(p.between)-1 {
			n.Outputs[0] = out
			e.made[out] = n
			continue
		}
		v := e.mutableValue(n.Outputs[0])
		v.Shape, v.HasShape, v.DimNames = slices.Clone(shape.Shape), shape.HasShape, slices.Clone(shape.DimNames)
	}
	for _, at := range removed {
		e.removed[e.g.Nodes[at]] = true
	}
	return removed
}

// FoldBatchNorm folds batch normalisation into the convolution or matrix multiplication before it,
// in the main graph of an ONNX model. It also returns the positions of the folded nodes. After a
// MatMul an addition of the bias remains in their place. Outputs differ by rounding alone. Without
// such a node the model is returned as it is.
func FoldBatchNorm(m *graph.Model) (out *graph.Model, folded []int) {
	if m.Format != "onnx" {
		return m, nil
	}
	e := newEdit(m)
	for at, n := range e.g.Nodes {
		if n.Op == "BatchNormalization" && n.Domain == graph.ONNX && e.foldInto(at) {
			folded = append(folded, at)
		}
	}
	if len(folded) == 0 {
		return m, nil
	}
	return e.finish(), folded
}

// channelAxis is the axis of the outputs in the weights of a node, -1 where it cannot be scaled.
func channelAxis(g *graph.Graph, n *graph.Node) int {
	plain := func(name string) bool { return n.Attrs.Float(name, 1) == 1 }
	switch n.Op {
	case "Conv":
		return 0
	case "ConvTranspose":
		if n.Attrs.Int("group", 1) == 1 {
			return 1
		}
	case "MatMul":
		if v := g.Values[n.Outputs[0]]; v.HasShape && len(v.Shape) == 2 {
			return 1
		}
	case "Gemm":
		if plain("alpha") && plain("beta") {
			if n.Attrs.Bool("transB", false) {
				return 0
			}
			return 1
		}
	}
	return -1
}

// floats returns the elements of a constant operand, nil unless it is a float32 constant.
func (e *edit) floats(n *graph.Node, input int) []float32 {
	id := operandAt(n.Inputs, input)
	if id < 0 {
		return nil
	}
	c := e.g.Values[id].Const
	if !c.Known() || c.Type != tensor.Float32 {
		return nil
	}
	return tensor.Of[float32](c)
}

// foldInto folds a batch normalisation into the node before it.
func (e *edit) foldInto(at int) bool {
	bn := e.g.Nodes[at]
	if len(bn.Inputs) != 5 || bn.Attrs.Bool("training_mode", false) || len(bn.Outputs) != 1 {
		return false
	}
	x := bn.Inputs[0]
	p := e.made[x]
	i := slices.Index(e.g.Nodes, p)
	if p == nil || i < 0 || p.Domain != graph.ONNX || len(e.readers(x)) != 1 || e.visibleOutside(x) {
		return false
	}
	axis, w := channelAxis(e.g, p), e.floats(p, 1)
	scale, shift, mean, variance := e.floats(bn, 1), e.floats(bn, 2), e.floats(bn, 3), e.floats(bn, 4)
	if axis < 0 || w == nil || scale == nil || shift == nil || mean == nil || variance == nil {
		return false
	}
	c := e.g.Values[p.Inputs[1]].Const
	if len(c.Shape) <= axis {
		return false
	}
	n := c.Shape[axis]
	bias := make([]float32, n)
	if id := operandAt(p.Inputs, 2); id >= 0 {
		b := e.floats(p, 2)
		if len(b) != n {
			return false
		}
		copy(bias, b)
	}
	if len(scale) != n || len(shift) != n || len(mean) != n || len(variance) != n || p.Op == "MatMul" && len(c.Shape) != 2 {
		return false
	}
	factor := make([]float64, n)
	for k := range factor {
		factor[k] = float64(scale[k]) / math.Sqrt(float64(variance[k])+float64(bn.Attrs.Float("epsilon", 1e-5)))
		bias[k] = float32((float64(bias[k])-float64(mean[k]))*factor[k] + float64(shift[k]))
		if math.IsNaN(factor[k]) || math.IsInf(factor[k], 0) {
			return false
		}
	}
	name := e.g.Values[x].Name
	scaled := e.addConst(e.freshName(name, "_folded"), scaledAxis(c, axis, factor))
	shifts := e.addConst(e.freshName(name, "_bias"), tensor.From(tensor.Float32, []int{n}, bias))
	p = e.mutableNode(i)
	p.Inputs[1] = scaled
	if p.Op == "MatMul" {
		add := e.mutableNode(at)
		add.Op, add.Attrs, add.Inputs, add.Version = "Add", nil, []int{x, shifts}, e.m.Opsets[graph.ONNX]
		return true
	}
	p.Inputs = append(p.Inputs[:2], shifts)
	p.Outputs[0] = bn.Outputs[0]
	e.made[p.Outputs[0]] = p
	e.removed[bn] = true
	return true
}

// scaledAxis returns a constant with its elements multiplied by a factor for each index of an axis.
func scaledAxis(c *tensor.Tensor, axis int, factor []float64) *tensor.Tensor {
	inner := 1
	for _, d := range c.Shape[axis+1:] {
		inner *= d
	}
	out := tensor.New(tensor.Float32, c.Shape...)
	out.Alloc()
	dst := tensor.Of[float32](out)
	for k, x := range tensor.Of[float32](c) {
		dst[k] = float32(float64(x) * factor[k/inner%len(factor)])
	}
	return out
}
