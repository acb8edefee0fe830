package plan

import (
	"maps"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// fuseSumsOfSquares finds sums of squares, and their roots, that the file writes as Abs, Pow,
// ReduceSum and Sqrt, and lets the last of these compute them in one pass.
func fuseSumsOfSquares(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if m.is(i, "Sqrt", 1) || m.is(i, "Pow", 2) {
			m.fuseLength(i, "ReduceL2")
		}
	}
	for i := range g.Tasks {
		if m.is(i, "ReduceSum", 1) || m.is(i, "ReduceSum", 2) {
			m.fuseLength(i, "ReduceSumSquare")
		}
	}
	g.InferAll()
}

// fuseLength replaces task i by the operator with the name if the task ends its pattern.
func (m *matcher) fuseLength(i int, name string) {
	m.begin(i)
	n := m.g.Tasks[i].Node
	sum := n
	if name == "ReduceL2" {
		m.x = n.Inputs[0]
		if n.Op == "Pow" {
			if by, ok := m.number(n.Inputs[1]); !ok || by != 0.5 {
				return
			}
		}
		if sum = m.producer(n.Inputs[0], "ReduceSum", 1); sum == nil {
			sum = m.producer(n.Inputs[0], "ReduceSum", 2)
		}
		if sum == nil {
			return
		}
	}
	x := m.squared(sum.Inputs[0])
	if x < 0 || m.float32Value(x) == nil {
		return
	}
	attrs := maps.Clone(sum.Attrs)
	in, version := []int{x}, 13
	if len(sum.Inputs) == 2 {
		in, version = append(in, sum.Inputs[1]), 18
	}
	m.g.replace(i, &graph.Node{
		Index: n.Index, Name: n.Name, Function: n.Function, Op: name, Version: version, Inputs: in, Outputs: n.Outputs, Attrs: attrs,
	}, m.taken...)
	m.g.Tasks[i].Lowered = true
}

// squared returns v for a value that is v² or |v|²; -1 for others.
func (m *matcher) squared(id int) int {
	x := -1
	m.x = id
	if p := m.producer(id, "Pow", 2); p != nil {
		if by, ok := m.number(p.Inputs[1]); ok && by == 2 {
			x = p.Inputs[0]
		}
	} else if p := m.producer(id, "Mul", 2); p != nil && p.Inputs[0] == p.Inputs[1] {
		return p.Inputs[0]
	}
	if x >= 0 && m.g.maker[x] > 0 {
		if a := m.producer(x, "Abs", 1); a != nil {
			return a.Inputs[0]
		}
	}
	return x
}
