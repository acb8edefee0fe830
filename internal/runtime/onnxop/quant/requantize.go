package quant

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Requantize writes round((sums+bias)*scale)+zero, saturated to the type of y (int8 or uint8),
// from position at on. Ties go to even, as in QuantizeLinear.
func Requantize(y *tensor.Tensor, at int, sums []int32, bias int32, scale float32, zero int32) {
	if y.Type == tensor.Int8 {
		requantizeTo(tensor.Of[int8](y)[at:], sums, bias, scale, zero, -128, 127)
		return
	}
	requantizeTo(tensor.Of[uint8](y)[at:], sums, bias, scale, zero, 0, 255)
}

func requantizeTo[T int8 | uint8](y []T, sums []int32, bias int32, scale float32, zero int32, lo, hi float64) {
	y = y[:len(sums)]
	z := float64(zero)
	if e := simd.ElementKernels(); e != nil && !math.IsNaN(float64(scale)) && !math.IsInf(float64(scale), 0) {
		n := e.Rescale(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(y))), len(y)), sums, scale, float32(lo-z), float32(hi-z), zero, bias)
		y, sums = y[n:], sums[n:]
	}
	for i, s := range sums {
		v := math.RoundToEven(float64(float32(s+bias)*scale)) + z
		y[i] = T(int32(min(max(v, lo), hi)))
	}
}

// PrepareRescale prepares r for an 8-bit type, with the whole type as limits.
func PrepareRescale(t tensor.Type, r *quantise.Rescale, zero int32) {
	r.Signed, r.Zero = t == tensor.Int8, zero
	r.Lo, r.Hi = Limits(t, activation.Clamp{})
	r.Prepare()
}

// Pack packs 8-bit weights from position at on, minus their zero point: see [kernel.FillQ].
func Pack(p *workers.Pool, w *gemm.PackedInt8, x *tensor.Tensor, at int, zero int32, vec, elem int) {
	if x.Type == tensor.Int8 {
		gemm.FillInt8(p, w, tensor.Of[int8](x)[at:], zero, vec, elem)
		return
	}
	gemm.FillInt8(p, w, tensor.Of[uint8](x)[at:], zero, vec, elem)
}

// Translate fills a table that requantises from one 8-bit type, scale and zero point to another.
func Translate(table *[256]uint8, from tensor.Type, xs float32, xz int32, to tensor.Type, ys float32, yz int32) {
	x, y := affine{xs, float32(xz)}, affine{ys, float32(yz)}
	var reals [256]float32
	x.realTable(&reals, from)
	for q, v := range reals {
		table[q] = y.code(v, to)
	}
}

// Limits returns the range of y's type, restricted to a clamp of quantised values.
func Limits(y tensor.Type, act activation.Clamp) (lo, hi float32) {
	lo, hi = 0, 255
	if y == tensor.Int8 {
		lo, hi = -128, 127
	}
	if act.On {
		lo, hi = max(lo, act.Min), min(hi, act.Max)
	}
	return lo, hi
}

// QuantizeReal rounds real values to the type of y with scale and zero point.
func QuantizeReal(y *tensor.Tensor, at int, v []float32, scale float32, zero int32) {
	lo, hi := Limits(y.Type, activation.Clamp{})
	toCodes(y.Data[at:][:len(v)], v, scale, lo-float32(zero), hi-float32(zero), zero)
}

// toCodes writes the bit patterns of quantised values between lo and hi relative to the zero
// point; NaN gives the lower bound.
func toCodes(dst []uint8, x []float32, scale, lo, hi float32, zero int32) {
	n := 0
	if e := simd.ElementKernels(); e != nil {
		n = e.Quantise(dst, x, scale, lo, hi, zero)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = uint8(int32(quantizeOne(x[i]/scale, lo, hi)) + zero)
	}
}

// toReals dequantises.
func toReals(dst []float32, src []uint8, signed bool, zero int32, scale float32) {
	n := 0
	if e := simd.ElementKernels(); e != nil {
		n = e.Dequantise(dst, src, zero, scale, signed)
	}
	if signed {
		for i := n; i < len(dst); i++ {
			dst[i] = float32(int32(int8(src[i]))-zero) * scale
		}
		return
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(int32(src[i])-zero) * scale
	}
}

// QuantizeOne is QuantizeReal for one value.
func QuantizeOne(y *tensor.Tensor, at int, v, scale float32, zero int32) {
	q := math.RoundToEven(float64(v/scale)) + float64(zero)
	if y.Type == tensor.Int8 {
		y.Data[at] = uint8(int32(min(max(q, -128), 127)))
		return
	}
	y.Data[at] = uint8(int32(min(max(q, 0), 255)))
}

// ScalarScale reads a scalar scale and zero point.
func ScalarScale(c *op.Call, i int) (float32, int32) {
	return float32(tensor.At(c.In[i], 0)), Zero(c.Input(i + 1))
}

// IsByte reports whether a tensor holds 8-bit quantised values.
func IsByte(x *tensor.Tensor) bool {
	return x != nil && (x.Type == tensor.Uint8 || x.Type == tensor.Int8)
}

// Zero returns a scalar zero point, 0 for nil or an empty tensor.
func Zero(x *tensor.Tensor) int32 {
	if x == nil || x.Len() == 0 {
		return 0
	}
	return int32(tensor.At(x, 0))
}

// Zeros reads a zero-point tensor: nil when absent, one value or one per channel.
func Zeros(x *tensor.Tensor) []int32 { return ZerosIn(nil, x) }

// ZerosIn is [Zeros] in an existing buffer, if that is large enough.
func ZerosIn(workspace []int32, x *tensor.Tensor) []int32 {
	if x == nil {
		return nil
	}
	if cap(workspace) < x.Len() {
		workspace = make([]int32, x.Len())
	}
	workspace = workspace[:x.Len()]
	tensor.Read(workspace, x, 0)
	return workspace
}

// Lift widens integers to int32 and subtracts a zero point.
func Lift(dst []int32, x *tensor.Tensor, zero int32) {
	tensor.Read(dst, x, 0)
	if zero != 0 {
		for i := range dst {
			dst[i] -= zero
		}
	}
}

// First returns the first element of a zero-point list, 0 if it is empty.
func First(z []int32) int32 {
	if len(z) == 0 {
		return 0
	}
	return z[0]
}

// granularity maps elements of a quantised tensor to scales: one for all, one for each index
// along an axis, or one for each block along it. A tensor is walked in rows within which the
// scale is constant or advances by one.
type granularity struct {
	rows, row int // number of rows and elements of each but perhaps the last
	total     int // elements
	scales    int // number of scales
	vector    bool
	outer     int // rows for each step of the leading dimensions
	block     int // rows or elements that share a scale
	inner     int // blocked along an inner axis: scales of one row, else 0
	perAxis   bool
}

// tensorRow is the row length if one scale applies to all elements.
const tensorRow = 4096

func newGranularity(x, scale []int, axis, block int) (granularity, error) {
	n, ns := tensor.Elements(x), tensor.Elements(scale)
	g := granularity{total: n, scales: ns}
	if ns == 1 && len(scale) <= max(1, len(x)) {
		g.row, g.rows = tensorRow, (n+tensorRow-1)/tensorRow
		return g, nil
	}
	axis, err := op.Axis(axis, len(x))
	if err != nil {
		return g, op.Malformed("%d scales, and %v", ns, err)
	}
	outer, dim, inner := tensor.Elements(x[:axis]), x[axis], tensor.Elements(x[axis+1:])
	if len(scale) == 1 && block == 0 {
		if ns != dim {
			return g, fmt.Errorf("%d scales for axis %d of shape %s", ns, axis, tensor.FormatShape(x))
		}
		if inner == 1 {
			g.row, g.rows, g.vector = dim, outer, true
		} else {
			g.row, g.rows, g.outer, g.perAxis = inner, outer*dim, dim, true
		}
		return g, nil
	}
	if len(scale) != len(x) {
		return g, fmt.Errorf("scale of shape %s for shape %s", tensor.FormatShape(scale), tensor.FormatShape(x))
	}
	blocks := scale[axis]
	if block == 0 && blocks > 0 {
		block = (dim + blocks - 1) / blocks
	}
	for i, d := range scale {
		if i != axis && d != x[i] || i == axis && (block <= 0 || d != (dim+block-1)/block) {
			return g, fmt.Errorf("scale of shape %s with blocks of %d along axis %d for shape %s", tensor.FormatShape(scale), block, axis, tensor.FormatShape(x))
		}
	}
	// Rows are the lines along the axis if it is the last one, whose blocks get a scale each,
	// else the lines of the trailing dimensions.
	g.block = block
	if inner == 1 {
		g.row, g.rows, g.outer = block, outer*blocks, blocks
		g.perAxis = false
		g.inner = -dim
		return g, nil
	}
	g.row, g.rows, g.outer, g.vector, g.inner = inner, outer*dim, dim, true, inner
	return g, nil
}

// at returns the elements of row r, and its first scale. Within the row the scale advances with
// the element if g.vector is set.
func (g *granularity) at(r int) (lo, hi, scale int) {
	switch {
	case g.inner < 0: // blocks along the last axis; the last block may be short
		dim := -g.inner
		line, b := r/g.outer, r%g.outer
		lo = line*dim + b*g.row
		return lo, min(lo+g.row, (line+1)*dim), r
	case g.inner > 0:
		blocks := (g.outer + g.block - 1) / g.block
		return r * g.row, (r + 1) * g.row, (r/g.outer*blocks + r%g.outer/g.block) * g.inner
	case g.perAxis:
		return r * g.row, (r + 1) * g.row, r % g.outer
	}
	return r * g.row, min((r+1)*g.row, g.total), 0
}

// grain is the number of rows for which another thread pays off.
func (g *granularity) grain() int { return max(1, element.Grain/max(1, g.row)) }
