package weights

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// Layer is a constant with how its operators read it.
type Layer struct {
	study.Layer
	// Value is the id of the constant in the layer's graph, Const the constant as the file has
	// it.
	Value int
	Const *tensor.Tensor
	// Quant are the scales and zero points of integers, nil for plain numbers. Its axis counts
	// in the shape of Const; blocks lie along that axis.
	Quant *tensor.Quant
	// Element (r,c) of the matrix is element Row[r]+Col[c] of Const, in codes of a few bits
	// for weights that are packed into bytes.
	Row, Col []int
	// Channels is the number of input channels of a group: the column of a channel's tap is
	// channel*Taps+tap.
	Channels int
	// Data is the id of the value that is multiplied with the weights, -1 where that is made
	// within the operator.
	Data int
	// Sources are the ways from the constant to each of Nodes.
	Sources []*Source
	// Mixed says that the operators read the weights as different matrices, of which this is
	// the first one's: only single weights mean the same to all.
	Mixed bool
	// Main are the operators of the main graph that run the layer: its own ones, or those around the bodies that they
	// are in. Steps are its own ones by their positions among those of all graphs, the main one's first.
	Main, Steps []int
	// Twins are the same constant as other graphs read it, a layer of each.
	Twins []*Layer

	// codes are the elements that Row and Col count: Const, or a view of its packed codes.
	codes *tensor.Tensor
	q     scaler
}

// Bits are those of a weight as it is stored.
func (l *Layer) Bits() int { return l.codes.Type.Bits() }

// Whole reports whether the weights are all elements of the constant.
func (l *Layer) Whole() bool { return l.Rows*l.Cols == l.codes.Len() }

// Readings are the layer and its twins: the constant as each graph reads it.
func (l *Layer) Readings() []*Layer { return append([]*Layer{l}, l.Twins...) }

// scaler finds the scale of an element.
type scaler struct {
	q *tensor.Quant
	v view // that the axis counts in
}

// at is the position of an element's scale and zero point.
func (s *scaler) at(e int) int {
	if len(s.q.Scale) == 1 {
		return 0
	}
	if s.q.Block == 0 {
		d := s.v[s.q.Axis]
		return e / d.stride % d.size
	}
	at := 0
	for i, d := range s.v {
		k, n := e/d.stride%d.size, d.size
		if i == s.q.Axis {
			k, n = k/s.q.Block, (n+s.q.Block-1)/s.q.Block
		}
		at = at*n + k
	}
	return at
}

// fits reports whether there is a scale for every element.
func (s *scaler) fits() bool {
	if s.q == nil || len(s.q.Scale) == 1 {
		return true
	}
	if s.q.Axis < 0 || s.q.Axis >= len(s.v) {
		return false
	}
	n := s.v[s.q.Axis].size
	if s.q.Block > 0 {
		n = 1
		for i, d := range s.v {
			if i == s.q.Axis {
				n *= (d.size + s.q.Block - 1) / s.q.Block
			} else {
				n *= d.size
			}
		}
	}
	return len(s.q.Scale) == n
}

// reals turns the codes of all elements into the numbers that they stand for.
func (s *scaler) reals(codes []float32) {
	if s.q == nil {
		return
	}
	run, all := 1, len(s.q.Scale) // elements side by side that share a scale; the scales come again after the last one
	switch {
	case all == 1:
		run = max(1, len(codes))
	case s.q.Block == 0:
		run = s.v[s.q.Axis].stride
	}
	k := 0
	for e := 0; e < len(codes); e += run {
		if s.q.Block > 0 {
			k = s.at(e)
		}
		scale, zero := s.q.Scale[k], float32(s.q.Zero[k])
		part := codes[e:min(e+run, len(codes))]
		for i, c := range part {
			part[i] = scale * (c - zero)
		}
		if k++; k == all {
			k = 0
		}
	}
}

// Scale is the scale and zero point of element (r,c) of the matrix, 1 and 0 for plain numbers.
func (l *Layer) Scale(r, c int) (scale float32, zero int64) {
	if l.q.q == nil {
		return 1, 0
	}
	k := l.q.at(l.Row[r] + l.Col[c])
	return l.q.q.Scale[k], l.q.q.Zero[k]
}

// Read appends the weights to dst[:0] as real numbers, row by row, and returns them. Where
// the operator leaves the scale to others it is 1.
func (l *Layer) Read(dst []float32) []float32 {
	n := l.Rows * l.Cols
	if cap(dst) < n {
		dst = make([]float32, n)
	}
	dst = dst[:n]
	all := make([]float32, l.codes.Len())
	tensor.Read(all, l.codes, 0)
	l.q.reals(all)
	i := 0
	for _, r := range l.Row {
		for _, c := range l.Col {
			dst[i] = all[r+c]
			i++
		}
	}
	return dst
}

// Write makes the constant with these weights. Those that have not changed keep their
// bits; zeros become the zero point; others are rounded to the nearest number that the
// constant's type and scales have, halves to even.
func (l *Layer) Write(mat []float32) *tensor.Tensor {
	all := make([]float32, l.codes.Len())
	tensor.Read(all, l.codes, 0)
	l.q.reals(all)
	out := l.codes.Clone()
	bits := out.Type.Bits()
	lo, hi := bounds(out.Type)
	var codes []uint8
	if bits < 8 {
		codes = make([]uint8, len(all))
		tensor.Unpack(codes, l.codes, 0)
	}
	i := 0
	for _, r := range l.Row {
		for _, c := range l.Col {
			e, x := r+c, mat[i]
			i++
			if all[e] == x {
				continue
			}
			if l.q.q == nil {
				tensor.WriteFloat32(out, e, []float32{x})
				continue
			}
			k := l.q.at(e)
			code := math.RoundToEven(float64(x)/float64(l.q.q.Scale[k])) + float64(l.q.q.Zero[k])
			code = min(max(code, lo), hi)
			if codes != nil {
				codes[e] = uint8(int64(code))
				continue
			}
			tensor.WriteInt64(out, e, []int64{int64(code)})
		}
	}
	if codes != nil {
		tensor.Pack(out, codes)
	}
	if l.codes != l.Const {
		packed := *l.Const
		packed.Data = out.Data
		return &packed
	}
	return out
}

// bounds are the least and the largest code of an integer type.
func bounds(t tensor.Type) (lo, hi float64) {
	if t.IsSigned() {
		return -math.Ldexp(1, t.Bits()-1), math.Ldexp(1, t.Bits()-1) - 1
	}
	return 0, math.Ldexp(1, t.Bits()) - 1
}

// With is the model with other constants in its main graph, by value. All else is shared
// with m.
func With(m *graph.Model, consts map[int]*tensor.Tensor) *graph.Model {
	out := *m
	out.Content, out.Close = nil, nil
	out.Graphs = append([]*graph.Graph(nil), m.Graphs...)
	g := *m.Main()
	g.Values = append([]*graph.Value(nil), g.Values...)
	for id, c := range consts {
		v := *g.Values[id]
		v.Const, v.Type, v.Sparse, v.Offset = c, c.Type, nil, -1
		v.Shape, v.HasShape = c.Shape, true
		g.Values[id] = &v
	}
	out.Graphs[0] = &g
	Adopt(out.Graphs, m.Main(), &g)
	return &out
}

// MACs are the multiply-accumulates of layers, as far as they are known.
func MACs(layers []*Layer) (sum float64) {
	for _, l := range layers {
		if l.MACs != nil {
			sum += float64(*l.MACs)
		}
	}
	return sum
}
