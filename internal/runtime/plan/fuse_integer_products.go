package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fuseIntegerProducts fuses what dynamic quantisation writes behind a MatMulInteger: the Cast of
// the sums to float32, the Mul by the scales of activation and weights, and the Add of a bias. The
// fused node rounds like these operators.
func fuseIntegerProducts(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if m.is(i, "Mul", 2) {
			m.begin(i)
			m.fuseScaledSums(i)
		}
	}
	for i := range g.Tasks {
		if m.is(i, "Add", 2) {
			m.fuseSumsBias(i)
		}
	}
	g.InferAll()
}

// fuseScaledSums replaces task i by a MatMulIntegerToFloat if it multiplies integer sums with the
// product of a scalar and constant scales.
func (m *matcher) fuseScaledSums(i int) {
	g, n := m.g, m.g.Tasks[i].Node
	for k, id := range n.Inputs {
		m.begin(i)
		cast := m.producer(id, "Cast", 1)
		if cast == nil || cast.Attrs.Int("to", 0) != float32Code {
			continue
		}
		product, scales := m.integerProduct(cast.Inputs[0]), m.producer(n.Inputs[1-k], "Mul", 2)
		if product == nil || scales == nil {
			return
		}
		a, b := scales.Inputs[0], scales.Inputs[1]
		if !m.scalesOf(product, a, b) {
			if a, b = b, a; !m.scalesOf(product, a, b) {
				return
			}
		}
		in := []int{product.Inputs[0], product.Inputs[1], a, b, -1, -1}
		copy(in[4:], product.Inputs[2:])
		// The node keeps its position: its inputs are made before the scales.
		g.replace(i, &graph.Node{
			Index: n.Index, Name: n.Name, Function: n.Function, Domain: graph.Microsoft, Op: "MatMulIntegerToFloat", Version: 1, Inputs: in, Outputs: n.Outputs,
		}, m.taken...)
		g.Tasks[i].Lowered = true
		return
	}
}

// float32Code is the code of float32 in ONNX files.
const float32Code = 1

// integerProduct returns the MatMulInteger that makes a value for the match alone. Its activation
// has one zero point, and its weights are a constant matrix.
func (m *matcher) integerProduct(id int) *graph.Node {
	g := m.g
	i := g.maker[id] - 1
	if i < 0 || m.uses[id] != 1 {
		return nil
	}
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.final || t.Lowered || n.Domain != graph.ONNX || n.Op != "MatMulInteger" || len(n.Inputs) < 2 || len(n.Inputs) > 4 || slices.Contains(n.Inputs[:2], -1) {
		return nil
	}
	w := g.Values[n.Inputs[1]]
	if w == nil || !g.Fixed[n.Inputs[1]] || len(w.Shape) != 2 {
		return nil
	}
	if len(n.Inputs) > 2 && n.Inputs[2] >= 0 && !g.isScalar(n.Inputs[2]) {
		return nil
	}
	m.taken = append(m.taken, i)
	return n
}

// isScalar reports whether a value is known to have one element and at most one axis.
func (g *Graph) isScalar(id int) bool {
	x := g.Values[id]
	return x != nil && x.Type != tensor.Invalid && len(x.Shape) <= 1 && x.Len() == 1
}

// scalesOf reports whether a is a float32 scalar, and b has constant scales: one, or one for each
// column of a product.
func (m *matcher) scalesOf(product *graph.Node, a, b int) bool {
	g := m.g
	if !g.isScalar(a) || g.Values[a].Type != tensor.Float32 || !g.floatConstants([]int{b}, false) {
		return false
	}
	s, w := g.Values[b], g.Values[product.Inputs[1]]
	return len(s.Shape) <= 1 && (s.Len() == 1 || s.Len() == w.Shape[1])
}

// fuseSumsBias fuses task i into a MatMulIntegerToFloat before it if it adds a constant for each
// column.
func (m *matcher) fuseSumsBias(i int) {
	g, n := m.g, m.g.Tasks[i].Node
	for k, id := range n.Inputs {
		j := g.maker[id] - 1
		if j < 0 || m.uses[id] != 1 {
			continue
		}
		t := &g.Tasks[j]
		if t.State != Runs || t.final || t.act.On || t.Node.Op != "MatMulIntegerToFloat" || !t.Lowered || len(t.Node.Inputs) != 6 {
			continue
		}
		bias := n.Inputs[1-k]
		if !g.floatConstants([]int{bias}, false) {
			continue
		}
		if x, w := g.Values[bias], g.Values[t.Node.Inputs[1]]; len(x.Shape) != 1 || x.Len() != w.Shape[1] {
			continue
		}
		p := *t.Node
		p.Inputs, p.Outputs = append(slices.Clone(p.Inputs), bias), n.Outputs
		g.replace(j, &p, i)
		return
	}
}
