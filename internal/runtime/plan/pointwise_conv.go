package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxTransposed bounds the weights that are transposed for convolutions, in elements.
const maxTransposed = 1 << 20

// pointwiseConvs finds a MatMul over an axis that the file transposes to the end and back to
// position 1, where images have their channels. Such a MatMul is a 1×1 convolution without any
// transposition.
func pointwiseConvs(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if !m.is(i, "Transpose", 1) {
			continue
		}
		in := m.pointwise(i)
		if in == nil {
			continue
		}
		n := g.Tasks[i].Node
		g.replace(i, &graph.Node{Index: n.Index, Name: n.Name, Function: n.Function, Op: "Conv", Version: 11, Inputs: in, Outputs: n.Outputs, Attrs: graph.Attrs{}}, m.taken...)
		g.Tasks[i].Lowered = true
	}
	g.InferAll()
}

// pointwise returns input, weights and optional bias of the convolution that Transpose i ends.
func (m *matcher) pointwise(i int) []int {
	g := m.g
	m.begin(i)
	n := g.Tasks[i].Node
	id, bias := n.Inputs[0], -1
	if add := m.producer(id, "Add", 2); add != nil {
		k := slices.IndexFunc(add.Inputs, func(id int) bool { return g.Fixed[id] })
		if k < 0 || !m.perColumnConstant(add.Inputs[k], add.Inputs[1-k]) {
			return nil
		}
		id, bias = add.Inputs[1-k], add.Inputs[k]
	}
	product := m.producer(id, "MatMul", 2)
	if product == nil {
		return nil
	}
	to := m.producer(product.Inputs[0], "Transpose", 1)
	if to == nil {
		return nil
	}
	x, w := m.float32Value(to.Inputs[0]), m.float32Value(product.Inputs[1])
	if x == nil || w == nil || x.Rank() < 3 || x.Rank() > 4 || w.Rank() != 2 || w.Len() > maxTransposed || !g.floatConstants(product.Inputs[1:], false) || g.compute(product.Inputs[1], 4*maxTransposed, 0) != nil {
		return nil
	}
	// Axis 1 moves to the end, and back.
	last, first := []int{0}, []int{0, x.Rank() - 1}
	for a := 2; a < x.Rank(); a++ {
		last, first = append(last, a), append(first, a-1)
	}
	last = append(last, 1)
	if !slices.Equal(to.Attrs.Ints("perm"), last) || !slices.Equal(n.Attrs.Ints("perm"), first) {
		return nil
	}
	t := tensor.New(tensor.Float32, slices.Concat([]int{w.Shape[1], w.Shape[0]}, slices.Repeat([]int{1}, x.Rank()-2))...)
	turned, c := tensor.Of[float32](t), w.Shape[0]
	for k, v := range tensor.Of[float32](w) {
		turned[k%w.Shape[1]*c+k/w.Shape[1]] = v
	}
	in := []int{to.Inputs[0], g.add(&graph.Value{Type: t.Type, Shape: t.Shape, HasShape: true, Const: t, Offset: -1}, t)}
	if bias >= 0 {
		in = append(in, bias)
	}
	return in
}
