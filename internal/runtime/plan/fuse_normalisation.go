package plan

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fuseNorms finds normalisations over the last axis that the file writes as several operators,
// and lets the last of these compute them row by row.
func fuseNorms(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	m := &matcher{g: g, uses: g.readers()}
	// Match LayerNormalization first: it contains the pattern of RMSNormalization.
	for i := range g.Tasks {
		if m.is(i, "Add", 2) {
			in, eps := m.layerNorm(i)
			m.replaceByNorm(i, function{"LayerNormalization", 17}, in, eps)
		}
	}
	for i := range g.Tasks {
		if m.is(i, "Mul", 2) {
			in, eps := m.rmsNorm(i)
			m.replaceByNorm(i, function{"RMSNormalization", 23}, in, eps)
		}
	}
	g.InferAll()
}

// replaceByNorm makes task i run a normalisation; without inputs it does nothing.
func (m *matcher) replaceByNorm(i int, f function, in []int, eps float64) {
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

// layerNorm matches (x - mean)/√(variance + ε)·scale + shift; it returns x, scale and shift, and
// ε.
func (m *matcher) layerNorm(i int) ([]int, float64) {
	in := m.g.Tasks[i].Node.Inputs
	for k := range 4 {
		m.begin(i)
		shift := in[k/2]
		mul := m.producer(in[1-k/2], "Mul", 2)
		if mul == nil {
			continue
		}
		scale := mul.Inputs[k%2]
		div := m.producer(mul.Inputs[1-k%2], "Div", 2)
		if div == nil {
			continue
		}
		d := div.Inputs[0]
		square, eps := m.variance(div.Inputs[1], d)
		if square == "" || m.g.maker[d] == 0 {
			continue
		}
		// x - mean has two readers here, or three.
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
		if mean := m.lastMean(sub.Inputs[1]); mean == x && m.perColumnConstant(scale, x) && m.perColumnConstant(shift, x) {
			return []int{x, scale, shift}, eps
		}
	}
	return nil, 0
}

// rmsNorm matches x/√(mean of squares + ε)·scale; it returns x and scale, and ε.
func (m *matcher) rmsNorm(i int) ([]int, float64) {
	in := m.g.Tasks[i].Node.Inputs
	for k := range 2 {
		m.begin(i)
		scale := in[k]
		if n := m.producer(in[1-k], "Div", 2); n != nil {
			x := n.Inputs[0]
			if square, eps := m.variance(n.Inputs[1], x); square != "" && m.perColumnConstant(scale, x) {
				return []int{x, scale}, eps
			}
			continue
		}
		n := m.producer(in[1-k], "Mul", 2)
		for j := range 2 {
			if n == nil {
				break
			}
			m.taken = m.taken[:1]
			x, inverse := n.Inputs[j], n.Inputs[1-j]
			m.x = x
			var root int
			if r := m.producer(inverse, "Reciprocal", 1); r != nil {
				root = r.Inputs[0]
			} else if d := m.producer(inverse, "Div", 2); d != nil && m.constantNear(d.Inputs[0], 1) {
				root = d.Inputs[1]
			} else {
				continue
			}
			if square, eps := m.variance(root, x); square != "" && m.perColumnConstant(scale, x) {
				return []int{x, scale}, eps
			}
		}
	}
	return nil, 0
}

// variance matches √(mean of d² along the last axis + ε). It returns the operator that squares d,
// "" for other values, and ε.
func (m *matcher) variance(id, d int) (square string, eps float64) {
	m.x = d
	root := m.producer(id, "Sqrt", 1)
	if root == nil {
		return "", 0
	}
	sum := m.producer(root.Inputs[0], "Add", 2)
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
		if p := m.producer(squares, "Pow", 2); p != nil && p.Inputs[0] == d && m.constantNear(p.Inputs[1], 2) {
			return "Pow", e
		}
		if p := m.producer(squares, "Mul", 2); p != nil && p.Inputs[0] == d && p.Inputs[1] == d {
			return "Mul", e
		}
		return "", 0
	}
	return "", 0
}

// lastMean returns the input of a mean along the last axis that keeps the axis; -1 for other
// values.
func (m *matcher) lastMean(id int) int {
	n := m.producer(id, "ReduceMean", 1)
	if n == nil {
		n = m.producer(id, "ReduceMean", 2)
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

// perColumnConstant reports whether a value is a constant with one number for each element of the
// last axis of x.
func (m *matcher) perColumnConstant(id, x int) bool {
	t, v := m.g.Values[id], m.g.Values[x]
	return m.g.floatConstants([]int{id}, m.wide) && v != nil && v.Type != tensor.Invalid && t.Rank() == 1 && v.Rank() > 0 && t.Shape[0] == v.Shape[v.Rank()-1]
}
