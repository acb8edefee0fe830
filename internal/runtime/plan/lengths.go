package plan

import (
	"maps"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// lengths finds sums of squares, and their roots, that files write as a magnitude, a power, a sum and a root, and lets the last of these
// compute them in one pass.
func lengths(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	for i := range g.Tasks {
		if m.is(i, "Sqrt", 1) || m.is(i, "Pow", 2) {
			m.length(i, "ReduceL2")
		}
	}
	for i := range g.Tasks {
		if m.is(i, "ReduceSum", 1) || m.is(i, "ReduceSum", 2) {
			m.length(i, "ReduceSumSquare")
		}
	}
	g.Settle()
}

// length lets task i run an operator of the name if it ends what that computes.
func (m *matcher) length(i int, name string) {
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
		if sum = m.made(n.Inputs[0], "ReduceSum", 1); sum == nil {
			sum = m.made(n.Inputs[0], "ReduceSum", 2)
		}
		if sum == nil {
			return
		}
	}
	x := m.squared(sum.Inputs[0])
	if x < 0 || m.floats(x) == nil {
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

// squared is the value whose square, or whose magnitude's, another is; -1 for something else.
func (m *matcher) squared(id int) int {
	x := -1
	m.x = id
	if p := m.made(id, "Pow", 2); p != nil {
		if by, ok := m.number(p.Inputs[1]); ok && by == 2 {
			x = p.Inputs[0]
		}
	} else if p := m.made(id, "Mul", 2); p != nil && p.Inputs[0] == p.Inputs[1] {
		return p.Inputs[0]
	}
	if x >= 0 && m.g.maker[x] > 0 {
		if a := m.made(x, "Abs", 1); a != nil {
			return a.Inputs[0]
		}
	}
	return x
}
