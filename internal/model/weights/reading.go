package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// Reading is how an operator reads the constant that it multiplies with.
type Reading struct {
	// Value is the constant's id; Input is the position of the operand that it becomes.
	Value, Input int
	// Shape is that of the matrix that the operator reads, its rows as the file stores them:
	// transposed where the operator reads it transposed. It is nil for other operators, and
	// where the matrix is not a plain matrix of the constant's elements.
	Shape []int

	q scaler
}

// ReadingOf finds the constant that an operator multiplies with, also where it is transposed,
// dequantised or otherwise moved before; nil if absent. made is the result of [Producers].
func ReadingOf(g *graph.Graph, made []*graph.Node, n *graph.Node) *Reading {
	f := &finder{g: g, made: made}
	for _, p := range multiplied(n) {
		if !hasInput(n, p.input) || n.Inputs[p.input] >= len(g.Values) {
			continue
		}
		if r := f.reading(n, p); r != nil {
			return r
		}
	}
	return nil
}

func (f *finder) reading(n *graph.Node, p operand) *Reading {
	r := &Reading{Input: p.input}
	s, at := follow(f.g, f.made, n.Inputs[p.input])
	if s == nil { // some moves cannot be traced, but keep all elements
		if s = SourceOf(f.g, f.made, n.Inputs[p.input]); s == nil {
			return nil
		}
		at.unknownQuant = true
	}
	v := f.g.Values[s.Value]
	if at.v != nil && at.v.count() != v.Const.Len() {
		return nil
	}
	r.Value, r.Shape = s.Value, at.v.stored()
	l := &Layer{Value: s.Value, Const: v.Const, elems: v.Const}
	switch {
	case v.Quant != nil:
		r.q = scaler{v.Quant, contiguous(v.Const.Shape)}
	case at.v == nil:
	case f.quantise(l, n, p, &at) && !at.unknownQuant && l.elems == l.Const:
		r.q = l.q
	}
	return r
}

// Zero returns the stored number that stands for zero, and for each element where they differ. It
// is false where it is unknown.
func (r *Reading) Zero() (all int64, each func(e int) int64, ok bool) {
	q := r.q.q
	switch {
	case q == nil || len(q.Zero) == 0:
		return 0, nil, false
	case !slices.ContainsFunc(q.Zero, func(z int64) bool { return z != q.Zero[0] }):
		return q.Zero[0], nil, true
	case len(q.Zero) != len(q.Scale) || !r.q.valid():
		return 0, nil, false
	}
	return 0, func(e int) int64 { return q.Zero[r.q.index(e)] }, true
}

// stored is the shape of a matrix in the order in which its elements are stored, nil for views
// of other dimensions and for those that skip elements.
func (v view) stored() []int {
	if len(v) != 2 || !v.regular() {
		return nil
	}
	inOrder := func(a, b dim) bool {
		return (b.size <= 1 || b.stride == 1) && (a.size <= 1 || a.stride == b.size)
	}
	switch {
	case inOrder(v[0], v[1]):
		return []int{v[0].size, v[1].size}
	case inOrder(v[1], v[0]):
		return []int{v[1].size, v[0].size}
	}
	return nil
}
