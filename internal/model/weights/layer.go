package weights

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// Layer is a constant and how its operators read it.
type Layer struct {
	study.Layer
	// Value is the id of the constant in the layer's graph. Const is the constant as in the file.
	Value int
	Const *tensor.Tensor
	// Quant has the scales and zero points of integers, nil for other types. Its axis refers to
	// the shape of Const; blocks lie along that axis.
	Quant *tensor.Quant
	// Element (r,c) of the matrix is element Row[r]+Col[c] of Const; for weights packed into
	// bytes it is the index of the low-bit element.
	Row, Col []int
	// Channels is the number of input channels of a group. Tap t of channel c is column c*Taps+t.
	Channels int
	// Data is the id of the value that is multiplied with the weights, -1 where it is internal to
	// the operator.
	Data int
	// Sources are the paths from the constant to each of Nodes.
	Sources []*Source
	// MixedLayouts says that the operators read the weights as different matrices; the fields
	// describe the first operator's. Only unstructured weights mean the same to all operators.
	MixedLayouts bool
	// MainNodes are the operators of the main graph that run the layer: its own ones, or the
	// control flow operators around it. GlobalNodes are its own operators, by their positions in
	// the concatenated node lists of all graphs, main graph first.
	MainNodes, GlobalNodes []int
	// Twins are the same constant as read by other graphs, one layer each.
	Twins []*Layer

	// elems has the elements that Row and Col index: Const, or an unpacked view of its low-bit
	// values
	elems *tensor.Tensor
	q     scaler
}

// Bits is the number of bits of a stored weight.
func (l *Layer) Bits() int { return l.elems.Type.Bits() }

// CoversConstant reports whether the weights are all elements of the constant.
func (l *Layer) CoversConstant() bool { return l.Rows*l.Cols == l.elems.Len() }

// Readings returns the layer and its twins: the constant as read by each graph.
func (l *Layer) Readings() []*Layer { return append([]*Layer{l}, l.Twins...) }

// scaler finds the scale of an element.
type scaler struct {
	q *tensor.Quant
	v view // the axis of q refers to it
}

// index returns the index of an element's scale and zero point.
func (s *scaler) index(e int) int {
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

// valid reports whether there is a scale for every element.
func (s *scaler) valid() bool {
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

// dequantise converts the quantised values of all elements to real numbers in place.
func (s *scaler) dequantise(codes []float32) {
	if s.q == nil {
		return
	}
	// run: adjacent elements with one scale; the scales repeat after the last one
	run, all := 1, len(s.q.Scale)
	switch {
	case all == 1:
		run = max(1, len(codes))
	case s.q.Block == 0:
		run = s.v[s.q.Axis].stride
	}
	k := 0
	for e := 0; e < len(codes); e += run {
		if s.q.Block > 0 {
			k = s.index(e)
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

// Scale returns the scale and zero point of element (r,c) of the matrix, 1 and 0 without
// quantisation.
func (l *Layer) Scale(r, c int) (scale float32, zero int64) {
	if l.q.q == nil {
		return 1, 0
	}
	k := l.q.index(l.Row[r] + l.Col[c])
	return l.q.q.Scale[k], l.q.q.Zero[k]
}

// Read stores the weights in dst[:0] as real numbers in row-major order, and returns them. Where
// the operator leaves scaling to other operators the scale is 1.
func (l *Layer) Read(dst []float32) []float32 {
	n := l.Rows * l.Cols
	if cap(dst) < n {
		dst = make([]float32, n)
	}
	dst = dst[:n]
	all := make([]float32, l.elems.Len())
	tensor.Read(all, l.elems, 0)
	l.q.dequantise(all)
	i := 0
	for _, r := range l.Row {
		for _, c := range l.Col {
			dst[i] = all[r+c]
			i++
		}
	}
	return dst
}

// Write returns the constant with these weights. Unchanged weights keep their bits; zeros become
// the zero point; others are rounded (half to even) to the nearest number that the constant's
// type and scales can represent.
func (l *Layer) Write(mat []float32) *tensor.Tensor {
	all := make([]float32, l.elems.Len())
	tensor.Read(all, l.elems, 0)
	l.q.dequantise(all)
	out := l.elems.Clone()
	bits := out.Type.Bits()
	lo, hi := codeRange(out.Type)
	var codes []uint8
	if bits < 8 {
		codes = make([]uint8, len(all))
		tensor.Unpack(codes, l.elems, 0)
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
			k := l.q.index(e)
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
	if l.elems != l.Const {
		packed := *l.Const
		packed.Data = out.Data
		return &packed
	}
	return out
}

// codeRange returns the smallest and the largest value of an integer type.
func codeRange(t tensor.Type) (lo, hi float64) {
	if t.IsSigned() {
		return -math.Ldexp(1, t.Bits()-1), math.Ldexp(1, t.Bits()-1) - 1
	}
	return 0, math.Ldexp(1, t.Bits()) - 1
}

// WithConstants returns the model with constants of its main graph replaced, by value id.
// Everything else is shared with m.
func WithConstants(m *graph.Model, consts map[int]*tensor.Tensor) *graph.Model {
	g := *m.Main()
	g.Values = append([]*graph.Value(nil), g.Values...)
	for id, c := range consts {
		v := *g.Values[id]
		v.Const, v.Type, v.Sparse, v.Offset = c, c.Type, nil, -1
		v.Shape, v.HasShape = c.Shape, true
		g.Values[id] = &v
	}
	return WithMain(m, &g)
}

// WithMain returns the model with another main graph, which its subgraphs get as parent.
func WithMain(m *graph.Model, g *graph.Graph) *graph.Model {
	out := *m
	out.Content, out.Close = nil, nil
	out.Graphs = append([]*graph.Graph(nil), m.Graphs...)
	out.Graphs[0] = g
	Reparent(out.Graphs, m.Main(), g)
	return &out
}

// MACs sums the known multiply-accumulates of layers.
func MACs(layers []*Layer) (sum float64) {
	for _, l := range layers {
		if l.MACs != nil {
			sum += float64(*l.MACs)
		}
	}
	return sum
}
