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
	if !g.model.ONNX() {
		return
	}
	if !g.any(func(t *Task) bool { return t.State == Runs && t.Node.Op == "MatMulInteger" }) {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if m.is(i, "Mul", 2) {
			m.fuseScaledSums(i)
		}
	}
	g.InferAll() // products make the scaled values now
	for i := range g.Tasks {
		if m.is(i, "Add", 2) {
			m.fuseSumsBias(i)
		}
	}
	g.InferAll()
}

// fuseScaledSums fuses task i into the MatMulInteger before it if it multiplies integer sums with
// the product of a scalar and constant scales.
func (m *matcher) fuseScaledSums(i int) {
	g, n := m.g, m.g.Tasks[i].Node
	for k, id := range n.Inputs {
		m.begin(i)
		cast := m.producer(id, "Cast", 1)
		if cast == nil || cast.Attrs.Int("to", 0) != float32Code {
			continue
		}
		at := m.integerProduct(cast.Inputs[0])
		scales := m.producer(n.Inputs[1-k], "Mul", 2)
		if at < 0 || scales == nil {
			return
		}
		product := g.Tasks[at].Node
		a, b := scales.Inputs[0], scales.Inputs[1]
		if !g.scalesOf(product, a, b) {
			if a, b = b, a; !g.scalesOf(product, a, b) {
				return
			}
		}
		if g.maker[a]-1 > at { // the scalar is computed too late
			return
		}
		in := []int{product.Inputs[0], product.Inputs[1], a, b, -1, -1}
		copy(in[4:], product.Inputs[2:])
		g.replace(at, &graph.Node{
			Index: product.Index, Name: product.Name, Function: product.Function, Domain: graph.Microsoft, Op: "MatMulIntegerToFloat", Version: 1, Inputs: in, Outputs: n.Outputs,
		}, append(m.taken, i)...)
		g.Tasks[at].Lowered = true
		return
	}
}

// float32Code is the code of float32 in ONNX files.
const float32Code = 1

// integerProduct returns the task of the MatMulInteger that makes a value for the match alone, -1
// for none. Its activation has one zero point, and its weights are a constant matrix.
func (m *matcher) integerProduct(id int) int {
	g := m.g
	i := g.maker[id] - 1
	if i < 0 || m.uses[id] != 1 {
		return -1
	}
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.final || t.Lowered || n.Domain != graph.ONNX || n.Op != "MatMulInteger" || len(n.Inputs) < 2 || len(n.Inputs) > 4 || slices.Contains(n.Inputs[:2], -1) {
		return -1
	}
	w := g.Values[n.Inputs[1]]
	if w == nil || !g.Fixed[n.Inputs[1]] || len(w.Shape) != 2 {
		return -1
	}
	if len(n.Inputs) > 2 && n.Inputs[2] >= 0 && !g.isScalar(n.Inputs[2]) {
		return -1
	}
	return i
}

// isScalar reports whether a value is known to have one element and at most one axis.
func (g *Graph) isScalar(id int) bool {
	x := g.Values[id]
	return x != nil && x.Type != tensor.Invalid && len(x.Shape) <= 1 && x.Len() == 1
}

// scalesOf reports whether a is a float32 scalar, and b has constant scales: one, or one for each
// column of a product.
func (g *Graph) scalesOf(product *graph.Node, a, b int) bool {
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
