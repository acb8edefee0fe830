package layer

import (
	"math"
	"slices"
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

// Hybrid operators have float activations and integer weights of up to 8 bits. A row of
// activations is quantised at run time, the dot products are integers and are dequantised. The
// rules are those of TFLite's reference kernels.

// Hybrid is a matrix of integer weights [n, k] that is multiplied by rows of floats.
type Hybrid struct {
	n, k   int
	scales []float32 // one, or one a row of weights
	asym   bool
	sum    []float32

	// With SIMD: packed weights, and their zero point.
	packed *gemm.PackedInt8
	table  [1]gemm.ByteTable
	back   quantise.FloatScale // with the bias and the limits of the run
	many   *hybridRows

	// Without SIMD.
	w, q  []float32 // weights and a row as integers
	chunk int       // number of products whose sum float32 holds exactly
	whole []int32
}

// hybridRows is scratch memory for rows that are multiplied together.
type hybridRows struct {
	q, scales []float32
	zeros     []int32
	stored    []uint8
	tables    []gemm.ByteTable
	whole     []int32

	// Of a block, whose closures are allocated once.
	x, y            []float32
	quantise, scale func(lo, hi int)
}

// withoutSign is the offset that converts int8 values to uint8, which the kernels read directly.
const withoutSign = 128

// together is the maximum number of rows that are multiplied together.
const together = 32

// Together allocates memory for rows rows, which [Hybrid.Rows] then multiplies together where
// that is faster.
func (h *Hybrid) Together(rows int) {
	if n := min(rows, together); h.packed != nil && (n > 1 || h.many == nil) {
		h.many = &hybridRows{
			q: make([]float32, n*h.k), scales: make([]float32, n), zeros: make([]int32, n), stored: make([]uint8, n*h.k), tables: make([]gemm.ByteTable, n), whole: make([]int32, n*h.n),
			quantise: h.quantiseRows, scale: h.scaleRows,
		}
	}
}

// Rows writes the results y of rows rows of x: dequantised sums, plus the bias if present, clamped.
func (h *Hybrid) Rows(p *workers.Pool, rows int, y, x, bias []float32, act activation.Clamp) {
	for most := 1; rows > 0; rows, x, y = rows-most, x[most*h.k:], y[most*h.n:] {
		if h.packed == nil {
			sums, scale := h.Row(p, x)
			copy(y[:h.n], sums)
			ScaleBack(y[:h.n], scale, h.scales, bias, act)
			continue
		}
		most = min(rows, len(h.many.scales))
		h.block(p, most, y, x, bias, act)
	}
}

// block is Rows for rows that are multiplied together.
func (h *Hybrid) block(p *workers.Pool, rows int, y, x, bias []float32, act activation.Clamp) {
	h.multiply(p, rows, x)
	m := h.many
	m.y, h.back.Bias, h.back.Act = y, bias, act
	p.For(rows, max(1, Grain/(1+h.n)), m.scale)
	m.y, h.back.Bias = nil, nil
}

// multiply computes the integer sums of rows, with SIMD.
func (h *Hybrid) multiply(p *workers.Pool, rows int, x []float32) {
	m := h.many
	m.x = x
	p.For(rows, max(1, Grain/(1+h.k)), m.quantise)
	m.x = nil
	tables := h.table[:] // of all rows, where they have one zero point
	if h.asym {
		tables = m.tables[:rows]
	}
	gemm.MultiplyInt8(p, rows, m.stored, tables, h.packed, m.whole)
}

// quantiseRows quantises rows lo to hi of a block.
func (h *Hybrid) quantiseRows(lo, hi int) {
	m := h.many
	h.quantiseAll(m.stored[lo*h.k:], m.q[lo*h.k:], m.x[lo*h.k:], m.scales[lo:hi], m.zeros[lo:hi])
	for r := lo; h.asym && r < hi; r++ {
		m.tables[r].Fill(false, m.zeros[r]+withoutSign)
	}
}

// quantiseAll quantises as many rows as there are scales; workspace is scratch memory of the same
// size.
func (h *Hybrid) quantiseAll(dst []uint8, workspace, x, scales []float32, zeros []int32) {
	e := simd.ElementKernels()
	for r := 0; r < len(scales); r++ {
		if r += e.QuantiseRows(dst[r*h.k:], x[r*h.k:], h.k, !h.asym, scales[r:], zeros[r:], withoutSign); r < len(scales) {
			scales[r], zeros[r] = QuantiseBytes(dst[r*h.k:][:h.k], workspace[r*h.k:][:h.k], x[r*h.k:][:h.k], h.asym, withoutSign)
		}
	}
}

// scaleRows dequantises the sums of rows lo to hi.
func (h *Hybrid) scaleRows(lo, hi int) {
	m := h.many
	h.back.Rows(m.y[lo*h.n:], h.n, m.whole[lo*h.n:], h.n, hi-lo, h.n, 0, m.scales[lo:hi], 0)
}

// IsHybrid reports whether the type is a weight type for which float activations are quantised.
func IsHybrid(t tensor.Type) bool {
	return t == tensor.Int8 || t == tensor.Uint8 || t == tensor.Int4
}

// HybridWeights returns integer weights as int8, in place if possible. Files of the first hybrid
// models declare uint8 and mean the bits of int8; their zero points are ignored.
func HybridWeights(t *tensor.Tensor) ([]int8, error) {
	switch t.Type {
	case tensor.Int8:
		return tensor.Of[int8](t), nil
	case tensor.Uint8:
		return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data)), nil
	case tensor.Int4:
		return tensor.All[int8](t)
	}
	return nil, op.Unsupported("%v values", t.Type)
}

// NewHybrid prepares quantised weights [n, k]; alone says that a run has a single row, for which
// weights are read from memory, see [kernel.PackedQ.Rows]; asym selects the quantisation of rows,
// see [QuantiseRow].
func NewHybrid(t *tensor.Tensor, n, k int, alone, asym bool) (*Hybrid, error) {
	if !Quantised(t) {
		return nil, op.Unsupported("%v weights without quantisation", t.Type)
	}
	if s := len(t.Quant.Scale); s != 1 && s != n {
		return nil, op.Unsupported("%d scales for %d rows", s, n)
	}
	w, err := HybridWeights(t)
	if err != nil {
		return nil, err
	}
	return HybridOf(w, n, k, k, 1, t.Quant.Scale, alone, asym), nil
}

// HybridOf prepares weights of which step i of channel j is w[j*vec+i*elem], with one scale for
// all or one per channel.
func HybridOf(w []int8, n, k, vec, elem int, scales []float32, alone, asym bool) *Hybrid {
	h := &Hybrid{n: n, k: k, asym: asym, scales: scales, sum: make([]float32, n)}
	if packed := gemm.NewPackedInt8(n, k).SetRows(1, alone); packed.UsesSIMD() {
		gemm.FillInt8(nil, packed, w, 0, vec, elem)
		if h.back = (quantise.FloatScale{Weights: scales, Together: true}); len(scales) == 1 {
			h.back.Weights = slices.Repeat(scales, n)
		}
		if h.table[0].Fill(false, withoutSign); !asym {
			packed = packed.PrepareZero(&h.table[0])
		}
		h.packed = packed
		h.Together(1)
		return h
	}
	h.w, h.q = make([]float32, n*k), make([]float32, k)
	for j := range n {
		for i := range k {
			h.w[j*k+i] = float32(w[j*vec+i*elem])
		}
	}
	// float32 represents every integer up to 2^24 exactly: 255·128·512 and 127·128·1024 are below.
	if h.chunk = 1024; asym {
		h.chunk = 512
	}
	if k > h.chunk {
		h.whole = make([]int32, n)
	}
	return h
}

// Row quantises x and returns the sums of its products with every row of weights, and the scale
// of x. The sums are integers, exact up to their rounding to float32; they are valid until the
// next call.
func (h *Hybrid) Row(p *workers.Pool, x []float32) (sums []float32, scale float32) {
	if h.packed != nil {
		h.multiply(p, 1, x)
		element.Int32ToFloat32(h.sum, h.many.whole[:h.n])
		return h.sum, h.many.scales[0]
	}
	scale, _ = QuantiseRow(h.q, x[:h.k], h.asym)
	if h.whole == nil {
		gemm.Multiply(p, gemm.Params{M: 1, N: h.n, K: h.k, TransB: true, Exact: true}, h.q, h.w, h.sum)
		return h.sum, scale
	}
	clear(h.whole)
	for at := 0; at < h.k; at += h.chunk {
		n := min(h.chunk, h.k-at)
		gemm.Multiply(p, gemm.Params{M: 1, N: h.n, K: n, LDB: h.k, TransB: true, Exact: true}, h.q[at:][:n], h.w[at:], h.sum)
		for i, v := range h.sum {
			h.whole[i] += int32(v)
		}
	}
	for i, v := range h.whole {
		h.sum[i] = float32(v)
	}
	return h.sum, scale
}

// Scales returns the scales of the weights: one, or one per row.
func (h *Hybrid) Scales() []float32 { return h.scales }

// ScaleBack dequantises sums of a row that [QuantiseRow] has quantised, one per channel, in
// place: times the row's scale and the weights' scale (one, or one per channel), plus the bias if
// present, clamped.
func ScaleBack(y []float32, scale float32, weights, bias []float32, act activation.Clamp) {
	if e := simd.ElementKernels(); e != nil && len(weights) == 1 {
		e.MulScalar(y, y, scale*weights[0])
		if bias != nil {
			e.Add(y, y, bias)
		}
		if act.On {
			element.Bound(y, act.Min, act.Max)
		}
		return
	}
	for o, v := range y {
		f := weights[0]
		if len(weights) > 1 {
			f = weights[o]
		}
		v *= scale * f
		if bias != nil {
			v += bias[o]
		}
		if act.On {
			v = min(max(v, act.Min), act.Max)
		}
		y[o] = v
	}
}

// QuantiseRow writes x as integers, minus their zero point, to q and returns the scale and the
// zero point. Symmetric: scale max|x|/127, zero point 0. Asymmetric: the range of x and 0 over
// 255 steps.
func QuantiseRow(q, x []float32, asym bool) (scale float32, zero int32) {
	s := stepsOf(x, asym)
	if s.none {
		clear(q)
		return 1, 0
	}
	n := 0
	if s.e != nil {
		n = s.e.RoundAway(q[:len(x)], x, s.inv, s.lo, s.hi)
	}
	// Values are rounded before the zero point is added: ties go away from the real zero.
	for i := n; i < len(x); i++ {
		q[i] = float32(min(max(Round(x[i]*s.inv), int32(s.lo)), int32(s.hi)))
	}
	return s.scale, s.zero
}

// QuantiseBytes is [QuantiseRow] for 8-bit values: integers plus their zero point and plus.
// workspace is scratch memory of the same size.
func QuantiseBytes(dst []uint8, workspace, x []float32, asym bool, plus int32) (scale float32, zero int32) {
	s := stepsOf(x, asym)
	if !s.none && s.e.QuantiseRow(dst[:len(x)], x, s.inv, s.lo, s.hi, s.zero+plus) {
		return s.scale, s.zero
	}
	scale, zero = QuantiseRow(workspace, x, asym)
	n := 0
	if e := simd.ElementKernels(); e != nil {
		n = e.Quantise(dst, workspace, 1, float32(-128-zero), float32(127-zero), zero+plus)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = uint8(int32(workspace[i]) + zero + plus)
	}
	return scale, zero
}

// steps holds the quantisation of a row: multiply by inv, clamp between lo and hi.
type steps struct {
	scale, inv, lo, hi float32
	zero               int32
	none               bool // the row has zeros only
	// nil without SIMD, and for infinities and NaN, which plain Go handles
	e *simd.Elements
}

func stepsOf(x []float32, asym bool) (s steps) {
	var lo, hi float32
	e := simd.ElementKernels()
	if e != nil {
		lo, hi = e.Extent(x, 0, 0)
		if d := hi - lo; d-d != 0 {
			e = nil
		}
	} else {
		for _, v := range x {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if !asym {
		m := max(-lo, hi)
		s = steps{scale: m / 127, inv: 127 / m, lo: -127, hi: 127, none: m == 0}
	} else if s.none = lo == hi; !s.none {
		// As in the reference: the range is a float32, and the scale that the zero point is
		// derived from is not rounded yet. For a symmetric range the zero point is half-way
		// between two integers, and this decides. It is moved to an integer within the type.
		scale := float64(float32(hi-lo)) / 255
		fromMin, fromMax := -128-float64(lo)/scale, 127-float64(hi)/scale
		z := fromMin
		if 128+math.Abs(float64(lo)/scale) >= 127+math.Abs(float64(hi)/scale) {
			z = fromMax
		}
		s.zero = int32(min(max(math.Round(z), -128), 127))
		s.scale = float32(scale)
		s.inv, s.lo, s.hi = 1/s.scale, float32(-128-s.zero), float32(127-s.zero)
	}
	if s.inv-s.inv == 0 {
		s.e = e
	}
	return s
}
