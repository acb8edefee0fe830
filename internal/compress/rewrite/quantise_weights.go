package rewrite

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// maxCode is the largest value of a symmetric integer type; the smallest is its negative.
func maxCode(bits int) float64 { return math.Ldexp(1, bits-1) - 1 }

// outputAxis returns the output axis of a layer's constant, and each row's index on it; -1 and
// nil where no axis distinguishes rows.
func outputAxis(l *weights.Layer) (axis int, at []int) {
	axis = -1
	strides := tensor.Strides(l.Const.Shape)
	for a, d := range l.Const.Shape {
		if d < 2 || axis >= 0 && d <= l.Const.Shape[axis] {
			continue
		}
		in := func(list []int) bool {
			return slices.ContainsFunc(list, func(e int) bool { return e/strides[a]%d != 0 })
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

// quantWeights are symmetrically quantised weights: the zero point is 0.
type quantWeights struct {
	c     *tensor.Tensor // of the shape of the layer's constant
	scale []float32      // one, or one per index along axis
	axis  int
	at    []int // index of each row, 0 for one scale
}

// quantiseSymmetric quantises weights so that the largest magnitude becomes the largest integer,
// with a scale per output where perChannel. A scale is at least that of least for the row (nil
// for none). Rounding is half to even.
func quantiseSymmetric(l *weights.Layer, mat []float32, t tensor.Type, perChannel bool, least []float32) *quantWeights {
	q := &quantWeights{scale: []float32{0}}
	if q.axis, q.at = outputAxis(l); q.at != nil && perChannel {
		q.scale = make([]float32, l.Const.Shape[q.axis])
	} else {
		q.axis, q.at = 0, make([]int, l.Rows)
	}
	limit := maxCode(t.Bits())
	for r := range l.Rows {
		k := q.at[r]
		for _, x := range mat[r*l.Cols:][:l.Cols] {
			q.scale[k] = max(q.scale[k], float32(math.Abs(float64(x))))
		}
		if least != nil {
			q.scale[k] = max(q.scale[k], float32(limit)*least[r])
		}
	}
	for i, s := range q.scale {
		// The reciprocal of a subnormal scale would be infinite.
		if s = float32(float64(s) / limit); s < math.SmallestNonzeroFloat32*(1<<24) {
			s = 1
		}
		q.scale[i] = s
	}
	all := make([]uint8, l.Const.Len())
	for r := range l.Rows {
		s := float64(q.scale[q.at[r]])
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

// quant returns the quantisation parameters.
func (q *quantWeights) quant() *tensor.Quant {
	return &tensor.Quant{Scale: q.scale, Zero: make([]int64, len(q.scale)), Axis: q.axis}
}

// isLookup reports whether all operators of a layer look up rows of its constant directly.
func isLookup(e *edit, l *weights.Layer, op string) bool {
	return l.Const.Type == tensor.Float32 && !slices.ContainsFunc(l.Nodes, func(at int) bool {
		n := e.g.Nodes[at]
		return n.Op != op || n.Inputs[0] != l.Value
	})
}

// addQuantisedOutput adds an int8 value before the dequantised output of a lookup.
func addQuantisedOutput(e *edit, out int) *graph.Value {
	from := e.g.Values[out]
	v := e.addValue(e.freshName(from.Name, "_quantized"), tensor.Int8, from.Shape)
	v.HasShape, v.Placeholder, v.DimNames = from.HasShape, from.Placeholder, from.DimNames
	return v
}

// toFloat16 converts weights to float16, nil where one is too large.
func toFloat16(l *weights.Layer, mat []float32) *tensor.Tensor {
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

// AffineParams returns the scale and zero point of an int8 activation. The range is extended to
// include zero, which is then exactly representable.
func AffineParams(r Range) (scale float32, zero int64) {
	lo, hi := min(float64(r.Lo), 0), max(float64(r.Hi), 0)
	scale = float32((hi - lo) / 255)
	if !(scale >= math.SmallestNonzeroFloat32*(1<<24)) {
		return 1, 0
	}
	return scale, int64(min(max(math.RoundToEven(-128-lo/float64(scale)), -128), 127))
}

// raiseMinScales raises the minimum weight scales so that the quantised bias fits into 30 bits
// for data of the given scale. Weights of a row that needs this are negligible beside the bias.
func raiseMinScales(least, bias []float32, scale float32) {
	for i, x := range bias {
		least[i] = max(least[i], float32(math.Abs(float64(x))/float64(scale)/(1<<30)))
	}
}

// quantiseBias quantises a bias to int32 with the scales of the products, nil where one does not
// fit.
func quantiseBias(b []float32, scale func(i int) float64) *tensor.Tensor {
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
