package rewrite

import (
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// top is the largest code of symmetric integers of so many bits; the least is its negative.
func top(bits int) float64 { return math.Ldexp(1, bits-1) - 1 }

// axisOf is the axis of a layer's constant along which its outputs lie, and each row's place there: -1
// and nil where no axis tells rows apart.
func axisOf(l *weights.Layer) (axis int, at []int) {
	axis = -1
	strides := tensor.Strides(l.Const.Shape)
	for a, d := range l.Const.Shape {
		if d < 2 || axis >= 0 && d <= l.Const.Shape[axis] {
			continue
		}
		in := func(list []int) bool {
			for _, e := range list {
				if e/strides[a]%d != 0 {
					return true
				}
			}
			return false
		}
		if in(l.Row) && !in(l.Col) {
			axis = a
		}
	}
	if axis < 0 {
		return -1, nil
	}
	at = make([]int, len(l.Row))
	for i, r := range l.Row {
		at[i] = r / strides[axis] % l.Const.Shape[axis]
	}
	return axis, at
}

// codes are weights as symmetric integers: zero is code 0.
type codes struct {
	c     *tensor.Tensor // of the shape of the layer's constant
	scale []float32      // one, or one for each place along axis
	axis  int
	at    []int // place of each row
}

// real are the weights that the codes stand for, row by row.
func (q *codes) of(r int) float32 {
	if len(q.scale) == 1 {
		return q.scale[0]
	}
	return q.scale[q.at[r]]
}

// symmetric makes codes of weights: a scale for each output where perChannel, so that the largest magnitude
// is the largest code, and at least as large as least has it for the row, nil for none. Halves are rounded to even.
func symmetric(l *weights.Layer, mat []float32, t tensor.Type, perChannel bool, least []float32) *codes {
	q := &codes{scale: []float32{0}}
	if q.axis, q.at = axisOf(l); q.at != nil && perChannel {
		q.scale = make([]float32, l.Const.Shape[q.axis])
	} else {
		q.axis, q.at = 0, make([]int, l.Rows)
	}
	limit := top(t.Bits())
	for r := range l.Rows {
		k := 0
		if len(q.scale) > 1 {
			k = q.at[r]
		}
		for _, x := range mat[r*l.Cols:][:l.Cols] {
			q.scale[k] = max(q.scale[k], float32(math.Abs(float64(x))))
		}
		if least != nil {
			q.scale[k] = max(q.scale[k], float32(limit)*least[r])
		}
	}
	for i, s := range q.scale {
		// A scale below the normal numbers would be infinite where it is divided by.
		if s = float32(float64(s) / limit); s < math.SmallestNonzeroFloat32*(1<<24) {
			s = 1
		}
		q.scale[i] = s
	}
	all := make([]uint8, l.Const.Len())
	for r := range l.Rows {
		s := float64(q.of(r))
		for c, x := range mat[r*l.Cols:][:l.Cols] {
			code := min(max(math.RoundToEven(float64(x)/s), -limit), limit)
			all[l.Row[r]+l.Col[c]] = uint8(int8(code))
		}
	}
	q.c = tensor.New(t, l.Const.Shape...)
	if t.Bits() < 8 {
		tensor.Pack(q.c, all)
	} else {
		copy(q.c.Data, all)
	}
	return q
}

// quant is the quantisation of codes.
func (q *codes) quant() *tensor.Quant {
	return &tensor.Quant{Scale: q.scale, Zero: make([]int64, len(q.scale)), Axis: q.axis}
}

// lookedUp reports whether all operators of a layer fetch from it, as it lies.
func lookedUp(e *edit, l *weights.Layer, op string) bool {
	for _, at := range l.Nodes {
		if n := e.g.Nodes[at]; n.Op != op || n.Inputs[0] != l.Value {
			return false
		}
	}
	return l.Const.Type == tensor.Float32
}

// fetched adds the value of 8-bit codes from which a fetched one comes.
func fetched(e *edit, out int) *graph.Value {
	from := e.g.Values[out]
	v := e.add(e.name(from.Name, "_quantized"), tensor.Int8, from.Shape)
	v.HasShape, v.Placeholder, v.DimNames = from.HasShape, from.Placeholder, from.DimNames
	return v
}

// half are weights as float16, nil where one is too large.
func half(l *weights.Layer, mat []float32) *tensor.Tensor {
	out := tensor.New(tensor.Float16, l.Const.Shape...)
	for r := range l.Rows {
		for c, x := range mat[r*l.Cols:][:l.Cols] {
			h := tensor.F32ToF16(x)
			if h&0x7fff == 0x7c00 {
				return nil
			}
			tensor.Words[uint16](out)[l.Row[r]+l.Col[c]] = h
		}
	}
	return out
}

// affine is the scale and zero point of 8-bit codes that reach over a range, zero included: zero is a code.
func affine(r Range) (scale float32, zero int64) {
	lo, hi := min(float64(r.Lo), 0), max(float64(r.Hi), 0)
	scale = float32((hi - lo) / 255)
	if !(scale >= math.SmallestNonzeroFloat32*(1<<24)) {
		return 1, 0
	}
	return scale, int64(min(max(math.RoundToEven(-128-lo/float64(scale)), -128), 127))
}

// leastScales raises the least scales of weights with which the codes of a bias fit into 30 bits beside data
// of a scale. A row that needs it has weights so small that they count for nothing beside the bias.
func leastScales(least, bias []float32, scale float32) {
	for i, x := range bias {
		least[i] = max(least[i], float32(math.Abs(float64(x))/float64(scale)/(1<<30)))
	}
}

// biasCodes are numbers as 32-bit codes with the scales of products, nil where one does not fit.
func biasCodes(b []float32, scale func(i int) float64) *tensor.Tensor {
	out := tensor.New(tensor.Int32, len(b))
	for i, x := range b {
		code := math.RoundToEven(float64(x) / scale(i))
		if !(math.Abs(code) <= math.MaxInt32) {
			return nil
		}
		tensor.Of[int32](out)[i] = int32(code)
	}
	return out
}
