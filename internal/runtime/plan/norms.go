package plan

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// norms finds normalisations over the last axis that files write as several operators, and lets the last of these
// compute them row by row.
func norms(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	// Those with a mean have one without it inside.
	for i := range g.Tasks {
		if m.is(i, "Add", 2) {
			in, eps := m.layerNorm(i)
			m.become(i, function{"LayerNormalization", 17}, in, eps)
		}
	}
	for i := range g.Tasks {
		if m.is(i, "Mul", 2) {
			in, eps := m.rmsNorm(i)
			m.become(i, function{"RMSNormalization", 23}, in, eps)
		}
	}
	g.Settle()
}

// become lets task i run a normalisation, unless there are no inputs for it.
func (m *matcher) become(i int, f function, in []int, eps float64) {
	if in == nil {
		return
	}
	g := m.g
	n := g.Tasks[i].Node
	g.replace(i, &graph.Node{
		Index: n.Index, Name: n.Name, Function: n.Function, Op: f.name, Version: f.since, Inputs: in, Outputs: n.Outputs,
		Attrs: graph.Attrs{"axis": int64(-1), "epsilon": float32(eps)},
	}, m.taken...)
	g.Tasks[i].Lowered = true
}

// layerNorm matches (x - mean)/√(variance + ε)·scale + shift; it gives x, scale and shift, and ε.
func (m *matcher) layerNorm(i int) ([]int, float64) {
	in := m.g.Tasks[i].Node.Inputs
	for k := range 4 {
		m.begin(i)
		shift := in[k/2]
		mul := m.made(in[1-k/2], "Mul", 2)
		if mul == nil {
			continue
		}
		scale := mul.Inputs[k%2]
		div := m.made(mul.Inputs[1-k%2], "Div", 2)
		if div == nil {
			continue
		}
		d := div.Inputs[0]
		square, eps := m.variance(div.Inputs[1], d)
		if square == "" || m.g.maker[d] == 0 {
			continue
		}
		// What is above the mean is read twice here, or three times.
		readers := 2
		if square == "Mul" {
			readers = 3
		}
		j := m.g.maker[d] - 1
		if m.uses[d] != readers || !m.is(j, "Sub", 2) || m.g.Tasks[j].wide != m.wide {
			continue
		}
		m.taken = append(m.taken, j)
		sub := m.g.Tasks[j].Node
		x := sub.Inputs[0]
		if mean := m.lastMean(sub.Inputs[1]); mean == x && m.row(scale, x) && m.row(shift, x) {
			return []int{x, scale, shift}, eps
		}
	}
	return nil, 0
}

// rmsNorm matches x/√(mean of squares + ε)·scale; it gives x and scale, and ε.
func (m *matcher) rmsNorm(i int) ([]int, float64) {
	in := m.g.Tasks[i].Node.Inputs
	for k := range 2 {
		m.begin(i)
		scale := in[k]
		if n := m.made(in[1-k], "Div", 2); n != nil {
			x := n.Inputs[0]
			if square, eps := m.variance(n.Inputs[1], x); square != "" && m.row(scale, x) {
				return []int{x, scale}, eps
			}
			continue
		}
		n := m.made(in[1-k], "Mul", 2)
		for j := range 2 {
			if n == nil {
				break
			}
			m.taken = m.taken[:1]
			x, inverse := n.Inputs[j], n.Inputs[1-j]
			m.x = x
			var root int
			if r := m.made(inverse, "Reciprocal", 1); r != nil {
				root = r.Inputs[0]
			} else if d := m.made(inverse, "Div", 2); d != nil && m.about(d.Inputs[0], 1) {
				root = d.Inputs[1]
			} else {
				continue
			}
			if square, eps := m.variance(root, x); square != "" && m.row(scale, x) {
				return []int{x, scale}, eps
			}
		}
	}
	return nil, 0
}

// variance tells by which operator a value is the root of the mean of squares of d along the last axis, plus ε;
// none for something else.
func (m *matcher) variance(id, d int) (square string, eps float64) {
	m.x = d
	root := m.made(id, "Sqrt", 1)
	if root == nil {
		return "", 0
	}
	sum := m.made(root.Inputs[0], "Add", 2)
	for k := range 2 {
		if sum == nil {
			return "", 0
		}
		e, ok := m.number(sum.Inputs[k])
		if !ok || !(e >= 0) {
			continue
		}
		squares := m.lastMean(sum.Inputs[1-k])
		if squares < 0 {
			return "", 0
		}
		if p := m.made(squares, "Pow", 2); p != nil && p.Inputs[0] == d && m.about(p.Inputs[1], 2) {
			return "Pow", e
		}
		if p := m.made(squares, "Mul", 2); p != nil && p.Inputs[0] == d && p.Inputs[1] == d {
			return "Mul", e
		}
		return "", 0
	}
	return "", 0
}

// lastMean is the value whose mean along the last axis, which stays with length one, another is; -1 for something
// else.
func (m *matcher) lastMean(id int) int {
	n := m.made(id, "ReduceMean", 1)
	if n == nil {
		n = m.made(id, "ReduceMean", 2)
	}
	if n == nil || !n.Attrs.Bool("keepdims", true) {
		return -1
	}
	axes := n.Attrs.Ints("axes")
	if len(n.Inputs) == 2 {
		if !m.g.Fixed[n.Inputs[1]] || m.g.compute(n.Inputs[1], m.g.opts.FoldBytes, 0) != nil {
			return -1
		}
		t := m.g.Values[n.Inputs[1]]
		if t.Len() != 1 || !t.Type.IsInteger() {
			return -1
		}
		axes = []int{int(tensor.At(t, 0))}
	}
	x := m.g.Values[n.Inputs[0]]
	if len(axes) != 1 || axes[0] != -1 && (x == nil || x.Type == tensor.Invalid || axes[0] != x.Rank()-1) {
		return -1
	}
	return n.Inputs[0]
}

// row tells whether a value is a constant with one number for each element of the last axis of x.
func (m *matcher) row(id, x int) bool {
	t, v := m.g.Values[id], m.g.Values[x]
	return m.g.scales([]int{id}, m.wide) && v != nil && v.Type != tensor.Invalid && t.Rank() == 1 && v.Rank() > 0 && t.Shape[0] == v.Shape[v.Rank()-1]
}
