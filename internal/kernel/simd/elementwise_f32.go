package simd

import (
	"math"
	"sync"
	"unsafe"
)

// Elements holds elementwise float32 kernels. They are bit-exact to the same operation in Go.
type Elements struct {
	Set                        Set
	addVV, subVV, mulVV, divVV func(dst, a, b *float32, n int)
	addVS, mulVS, divVS        func(dst, a *float32, b float32, n int)
	preluVV, maxVV, minVV      func(dst, a, b *float32, n int) // nil if absent
	ints                       [intOps][intKinds]func(dst, a, b *float32, n int)
	// float64, for twice n words; nil if absent
	maxDD, minDD func(dst, a, b *float32, n int)
	limitDoubles func(dst, src *float64, n int, lo, hi float64) // nil if absent
	// By [Doubles]; nil if absent.
	wholeDoubles     [4]func(dst, src *float64, n int)
	xorAll           func(dst, a *float32, b float32, n int) // nil if absent
	preluVS          func(dst, a *float32, b float32, n int) // nil if absent
	subSV, divSV     func(dst *float32, a float32, b *float32, n int)
	clamp            func(dst, src *float32, n int, lo, hi, plus float32)
	addClamp         func(dst, a, b *float32, n int, lo, hi float32)
	scale            func(dst, src *float32, n int, s, t float32)
	magnitude        func(dst, src *float32, n int)                      // nil if absent
	softsign, signum func(dst, src *float32, n int)                      // nil if absent
	above            func(dst, src *float32, n int, limit float32)       // nil if absent
	shrink           func(dst, src *float32, n int, limit, bias float32) // nil if absent
	// To the nearest even, down, up; nil if absent.
	rounding               [3]func(dst, src *float32, n int)
	roundAway              func(dst, src *float32, n int, mul, lo, hi float32)
	extent                 func(src *float32, n int) (least, most float32)
	nibbles                func(dst *float32, src *byte, n int, zero, scale float32)
	dot                    func(a, b *float32, n int) float32
	dots                   func(sums, a, b *float32, offs *int, n int) // nil if absent
	dotNibbles             func(x *float32, w *byte, groups, blocks int, scales, zeros, sums *float32) float32
	rectifyHalf            func(dst, src *uint16, n int, inf uint16)
	fromHalf               func(dst *float32, src *uint16, n int)
	fromBrain              func(dst *float32, src *uint16, n int) // nil if absent
	toHalf                 func(dst *uint16, src *float32, n int)
	lostBits               func(src *float32, n int) (half, brain uint32) // nil if absent
	toFloats               func(dst *float32, src *int32, n int)
	quantise, quantiseAway func(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)
	rescale                func(dst *byte, src *int32, n int, scale, lo, hi float32, zero, bias int32)
	// The second kernel is for scales below 1/2. If they are nil, rescale is used.
	rescaleRows    [2]rescaleKernel
	rescaleColumns [2]rescaleKernel                                        // nil if absent
	transpose8     func(dst *byte, stepDst int, src *byte, stepSrc, n int) // nil if absent
	// transpose8Tail reports that transpose8 takes any number of columns, not only multiples of 16.
	transpose8Tail bool
	limitBytes     [2]func(dst, src *byte, n int, lo, hi int32)
	maxBytes       [2]func(dst, a, b *byte, n int)
	transpose      func(dst *uint32, stepDst int, src *uint32, stepSrc, n int)
	// nil if absent
	transpose16  func(dst *uint16, stepDst int, src *uint16, stepSrc, n int)
	sum, product [2]func(dst, a, b *byte, n int, q *Codes)
	// The following kernels are nil if absent.
	dequantise                 [2]func(dst *float32, src *byte, n int, zero int32, scale float32)
	addScaled                  func(dst, w, scales *float32, n int, x *float32, places *int32, count, step int, scale float32)
	curve16                    func(dst, src *int16, n int, table *uint32, mul, round, shift, bits, mask, above, below, out int32)
	quantiseRow                func(dst *byte, src *float32, n int, mul, lo, hi float32, zero int32)
	lessTimes                  func(dst, b *int32, n int, by int32)
	nonzeros                   func(values *float32, places *int32, x *float32, n int) int
	dequantise16               [2]func(dst *float32, src *uint16, n int, zero int32, scale float32)
	quantise16, quantiseAway16 func(dst *uint16, src *float32, n int, scale, lo, hi float32, zero int32)
	pairs                      [rowOps][2]rowPairKernel // two rows, or a row and one value
	quantiseRows               func(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)
	quantiseEvenRows           func(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)
	scaleRows                  [2]scaleKernel
	// anyLength reports that quantise, sum and product take any number of elements.
	anyLength bool
}

// ElementKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func ElementKernels() *Elements { return elementKernels.pick() }

// wholeRegisters rounds n down to a multiple of 8, the number of elements of a register.
func wholeRegisters(n int) int { return n / 8 * 8 }

// wholeQuantised returns the number of n elements that kernels of quantised values take.
func (e *Elements) wholeQuantised(n int) int {
	if e.anyLength {
		return n
	}
	return wholeRegisters(n)
}

func vectorVector(dst, a, b []float32, kernel func(dst, a, b *float32, n int)) int {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		kernel(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func vectorScalar(dst, a []float32, b float32, kernel func(dst, a *float32, b float32, n int)) int {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = a[n-1]
		kernel(&dst[0], &a[0], b, n)
	}
	return n
}

func scalarVector(dst []float32, a float32, b []float32, kernel func(dst *float32, a float32, b *float32, n int)) int {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = b[n-1]
		kernel(&dst[0], a, &b[0], n)
	}
	return n
}

// apply runs a kernel for the first n elements. It returns n, or 0 if the kernel is absent.
func apply[D, S any](dst []D, src []S, n int, kernel func(dst *D, src *S, n int)) int {
	if kernel == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	kernel(&dst[0], &src[0], n)
	return n
}

// Add writes a+b. As in the following methods, dst may be an operand.
func (e *Elements) Add(dst, a, b []float32) {
	for i := vectorVector(dst, a, b, e.addVV); i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

// AddScalar writes a+b.
func (e *Elements) AddScalar(dst, a []float32, b float32) {
	for i := vectorScalar(dst, a, b, e.addVS); i < len(dst); i++ {
		dst[i] = a[i] + b
	}
}

// Sub writes a-b.
func (e *Elements) Sub(dst, a, b []float32) {
	for i := vectorVector(dst, a, b, e.subVV); i < len(dst); i++ {
		dst[i] = a[i] - b[i]
	}
}

// ScalarSub writes a-b.
func (e *Elements) ScalarSub(dst []float32, a float32, b []float32) {
	for i := scalarVector(dst, a, b, e.subSV); i < len(dst); i++ {
		dst[i] = a - b[i]
	}
}

// Mul writes a·b.
func (e *Elements) Mul(dst, a, b []float32) {
	for i := vectorVector(dst, a, b, e.mulVV); i < len(dst); i++ {
		dst[i] = a[i] * b[i]
	}
}

// MulScalar writes a·b.
func (e *Elements) MulScalar(dst, a []float32, b float32) {
	for i := vectorScalar(dst, a, b, e.mulVS); i < len(dst); i++ {
		dst[i] = a[i] * b
	}
}

// Div writes a/b.
func (e *Elements) Div(dst, a, b []float32) {
	for i := vectorVector(dst, a, b, e.divVV); i < len(dst); i++ {
		dst[i] = a[i] / b[i]
	}
}

// DivScalar writes a/b.
func (e *Elements) DivScalar(dst, a []float32, b float32) {
	for i := vectorScalar(dst, a, b, e.divVS); i < len(dst); i++ {
		dst[i] = a[i] / b
	}
}

// ScalarDiv writes a/b.
func (e *Elements) ScalarDiv(dst []float32, a float32, b []float32) {
	for i := scalarVector(dst, a, b, e.divSV); i < len(dst); i++ {
		dst[i] = a / b[i]
	}
}

// Clamp writes min(max(src, lo), hi).
func (e *Elements) Clamp(dst, src []float32, lo, hi float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		// Adding plus changes only a negative zero, which must become the positive zero of lo.
		plus := float32(math.Copysign(0, -1))
		if lo == 0 && !math.Signbit(float64(lo)) {
			plus = 0
		}
		e.clamp(&dst[0], &src[0], n, lo, hi, plus)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = min(max(src[i], lo), hi)
	}
}

// Limit limits src to lo and hi. NaN stays NaN, and a zero keeps its sign.
func (e *Elements) Limit(dst, src []float32, lo, hi float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.clamp(&dst[0], &src[0], n, lo, hi, float32(math.Copysign(0, -1)))
	}
	for i := n; i < len(dst); i++ {
		v := src[i]
		if v < lo {
			v = lo
		}
		if v > hi {
			v = hi
		}
		dst[i] = v
	}
}

// HasAddLimit reports whether AddLimit is available.
func (e *Elements) HasAddLimit() bool { return e != nil && e.addClamp != nil }

// AddLimit is Limit of a+b. It requires [Elements.HasAddLimit].
func (e *Elements) AddLimit(dst, a, b []float32, lo, hi float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		e.addClamp(&dst[0], &a[0], &b[0], n, lo, hi)
	}
	if n < len(dst) {
		e.Add(dst[n:], a[n:], b[n:])
		e.Limit(dst[n:], dst[n:], lo, hi)
	}
}

// Abs writes the magnitudes of src.
func (e *Elements) Abs(dst, src []float32) {
	n := 0
	if e.magnitude != nil {
		if n = wholeRegisters(len(dst)); n > 0 {
			_ = src[n-1]
			e.magnitude(&dst[0], &src[0], n)
		}
	}
	for i := n; i < len(dst); i++ {
		dst[i] = math.Float32frombits(math.Float32bits(src[i]) &^ (1 << 31))
	}
}

// ToEven rounds to the nearest integer, ties to even. As Floor and Ceil do, it returns the number
// of values written.
func (e *Elements) ToEven(dst, src []float32) int { return e.round(dst, src, 0) }

// Floor rounds down to integers.
func (e *Elements) Floor(dst, src []float32) int { return e.round(dst, src, 1) }

// Ceil rounds up to integers.
func (e *Elements) Ceil(dst, src []float32) int { return e.round(dst, src, 2) }

func (e *Elements) round(dst, src []float32, mode int) int {
	return apply(dst, src, wholeRegisters(len(dst)), e.rounding[mode])
}

// Doubles is an operation of [Elements.WholeDoubles].
type Doubles uint8

// The operations: rounding to the nearest integer (ties to even), down and up; and the sign.
const (
	DoublesToEven Doubles = iota
	DoublesFloor
	DoublesCeil
	DoublesSign // 1 above zero, -1 below zero, else the value
)

// WholeDoubles applies an operation to float64 values. It returns the number of values written.
func (e *Elements) WholeDoubles(k Doubles, dst, src []float64) int {
	n := len(dst) / 4 * 4
	if e == nil || e.wholeDoubles[k] == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.wholeDoubles[k](&dst[0], &src[0], 2*n)
	return n
}

// LimitDoubles is [Elements.Limit] for float64. It returns the number of values written.
func (e *Elements) LimitDoubles(dst, src []float64, lo, hi float64) int {
	n := len(dst) / 4 * 4
	if e == nil || e.limitDoubles == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.limitDoubles(&dst[0], &src[0], 2*n, lo, hi)
	return n
}

// MaxDoubles is [Elements.Max] for float64. As MinDoubles does, it returns the number of values
// written.
func (e *Elements) MaxDoubles(dst, a, b []float64) int { return vectorVectorF64(dst, a, b, e.maxDD) }

// MinDoubles is [Elements.Min] for float64.
func (e *Elements) MinDoubles(dst, a, b []float64) int { return vectorVectorF64(dst, a, b, e.minDD) }

func vectorVectorF64(dst, a, b []float64, kernel func(dst, a, b *float32, n int)) int {
	n := len(dst) / 4 * 4
	if kernel == nil || n == 0 {
		return 0
	}
	_, _ = a[n-1], b[n-1]
	kernel(words(dst), words(a), words(b), 2*n)
	return n
}

// Scale writes src·s + t, rounded twice.
func (e *Elements) Scale(dst, src []float32, s, t float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.scale(&dst[0], &src[0], n, s, t)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(src[i]*s) + t
	}
}

// Quantise quantises src to 8 bits: src/scale, limited to the integers lo and hi, rounded to the
// nearest, ties to even, plus zero. NaN becomes lo. It returns the number of values written; the
// caller computes the rest.
func (e *Elements) Quantise(dst []uint8, src []float32, scale, lo, hi float32, zero int32) int {
	n := e.wholeQuantised(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.quantise(&dst[0], &src[0], n, scale, lo, hi, zero)
	}
	return n
}

// QuantiseAway is [Elements.Quantise] with ties away from zero. NaN becomes 0 plus the zero
// point.
func (e *Elements) QuantiseAway(dst []uint8, src []float32, scale, lo, hi float32, zero int32) int {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.quantiseAway(&dst[0], &src[0], n, scale, lo, hi, zero)
	}
	return n
}

// RoundAway writes src·mul, rounded to float32 and then to the nearest integer, ties away from
// zero, limited to lo and hi. Magnitudes must be below 2^22. It returns the number of values
// written.
func (e *Elements) RoundAway(dst, src []float32, mul, lo, hi float32) int {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.roundAway(&dst[0], &src[0], n, mul, lo, hi)
	}
	return n
}

// Extent returns the smallest and the largest of src, lo and hi. Both are NaN if one value is
// NaN.
func (e *Elements) Extent(src []float32, lo, hi float32) (least, most float32) {
	n := wholeRegisters(len(src))
	if n > 0 {
		least, most = e.extent(&src[0], n)
		lo, hi = min(lo, least), max(hi, most)
	}
	for _, v := range src[n:] {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// Nibbles dequantises 4-bit values q to (q - zero)·scale, the lower half of each byte first. It
// returns the number of values written.
func (e *Elements) Nibbles(dst []float32, src []uint8, zero, scale float32) int {
	n := len(dst) / 16 * 16
	if n > 0 {
		_ = src[n/2-1]
		e.nibbles(&dst[0], &src[0], n, zero, scale)
	}
	return n
}

// Dot returns the dot product. It uses 32 partial sums, which are rounded once for each product.
func (e *Elements) Dot(a, b []float32) float32 {
	n := len(a) / 32 * 32
	var s float32
	if n > 0 {
		_ = b[n-1]
		s = e.dot(&a[0], &b[0], n)
	}
	b = b[:len(a)]
	for i := n; i < len(a); i++ {
		s += a[i] * b[i]
	}
	return s
}

// Dots writes the dot products of a with len(a) values of b from each of the first eight offsets
// on. len(a) is a multiple of 8. It returns false if no kernel is available.
func (e *Elements) Dots(sums, a, b []float32, from []int) bool {
	n := len(a)
	if e.dots == nil || n == 0 || n%8 != 0 {
		return false
	}
	for _, f := range from[:8] {
		_ = b[f:][:n]
	}
	_ = sums[7]
	e.dots(&sums[0], &a[0], &b[0], &from[0], n)
	return true
}

// SpreadNibbles packs a row x, padded with zeros, for [Elements.DotNibbles]: each group of 16
// values has the values with even indices first. The length of dst is a multiple of the block
// length, which is a multiple of 16. sums receives the sum of each block.
func SpreadNibbles(dst, sums, x []float32) {
	block := len(dst) / len(sums)
	clear(dst)
	for i, v := range x {
		dst[i/16*16+i%2*8+i%16/2] = v
	}
	for b := range sums {
		s := float32(0)
		for _, v := range dst[b*block:][:block] {
			s += v
		}
		sums[b] = s
	}
}

// DotNibbles returns the dot product of a row that [SpreadNibbles] packed with the weights (q -
// zero)·scale. The 4-bit values q have the lower half of each byte first. Each block has one
// scale and one zero.
func (e *Elements) DotNibbles(x []float32, w []uint8, scales, zeros, sums []float32) float32 {
	n, blocks := len(x), len(sums)
	_, _, _ = w[n/2-1], scales[blocks-1], zeros[blocks-1]
	return e.dotNibbles(&x[0], &w[0], n/blocks/16, blocks, &scales[0], &zeros[0], &sums[0])
}

// ReluHalf is ReLU for 16-bit floats: it writes 0 for negative values, except zeros and NaN.
// inf is the bit pattern of infinity of the format. It returns the number of values written.
func (e *Elements) ReluHalf(dst, src []uint16, inf uint16) int {
	n := len(dst) / 16 * 16
	if n > 0 {
		_ = src[n-1]
		e.rectifyHalf(&dst[0], &src[0], n, inf)
	}
	return n
}

// FromHalf converts float16 to float32. As the next two methods, it returns the number of values
// written; the caller converts the rest.
func (e *Elements) FromHalf(dst []float32, src []uint16) int {
	return apply(dst, src, wholeRegisters(len(dst)), e.fromHalf)
}

// FromBFloat16 converts bfloat16 to float32.
func (e *Elements) FromBFloat16(dst []float32, src []uint16) int {
	return apply(dst, src, wholeRegisters(len(dst)), e.fromBrain)
}

// ToHalf rounds to float16, ties to even.
func (e *Elements) ToHalf(dst []uint16, src []float32) int {
	return apply(dst, src, wholeRegisters(len(dst)), e.toHalf)
}

// halfBuffer is a workspace for the values that do not fill a register.
type halfBuffer struct {
	codes   [8]uint16
	numbers [8]float32
}

var halfBuffers = sync.Pool{New: func() any { return new(halfBuffer) }}

// FromHalves converts all of src from float16 to float32.
func (e *Elements) FromHalves(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	n := e.FromHalf(dst, src)
	if n < len(src) {
		r := halfBuffers.Get().(*halfBuffer)
		copy(r.codes[:], src[n:])
		e.FromHalf(r.numbers[:], r.codes[:])
		copy(dst[n:], r.numbers[:])
		halfBuffers.Put(r)
	}
}

// ToHalves rounds all of src to float16, ties to even.
func (e *Elements) ToHalves(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	n := e.ToHalf(dst, src)
	if n < len(src) {
		r := halfBuffers.Get().(*halfBuffer)
		copy(r.numbers[:], src[n:])
		e.ToHalf(r.codes[:], r.numbers[:])
		copy(dst[n:], r.codes[:])
		halfBuffers.Put(r)
	}
}

// LostBits returns the bits that conversions of v lose. half has each bit in which some value
// differs from the value rounded to float16. brain has each lower bit of a value that bfloat16
// cannot hold. A zero means that the type holds all values exactly.
func (e *Elements) LostBits(v []float32) (half, brain uint32) {
	if n := wholeRegisters(len(v)); e.lostBits != nil && n > 0 {
		half, brain = e.lostBits(&v[0], n)
		v = v[n:]
	}
	var codes [256]uint16
	var wide [len(codes)]float32
	for len(v) > 0 {
		n := min(len(v), len(codes))
		e.ToHalves(codes[:n], v[:n])
		e.FromHalves(wide[:n], codes[:n])
		for i, x := range v[:n] {
			bits := math.Float32bits(x)
			half |= bits ^ math.Float32bits(wide[i])
			brain |= bits & 0xffff
		}
		v = v[n:]
	}
	return half, brain
}

// ToFloats rounds integers to float32, ties to even. It returns the number of values written.
func (e *Elements) ToFloats(dst []float32, src []int32) int {
	return apply(dst, src, wholeRegisters(len(dst)), e.toFloats)
}

// Rescale is [Elements.Quantise] for (src + bias)·scale.
func (e *Elements) Rescale(dst []uint8, src []int32, scale, lo, hi float32, zero, bias int32) int {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.rescale(&dst[0], &src[0], n, scale, lo, hi, zero, bias)
	}
	return n
}

// Dequantise writes (src - zero)·scale for quantised values, signed or not. It returns the number
// of values written.
func (e *Elements) Dequantise(dst []float32, src []uint8, zero int32, scale float32, signed bool) int {
	n := e.wholeQuantised(len(dst))
	if n == 0 || e.dequantise[0] == nil {
		return 0
	}
	_ = src[n-1]
	e.dequantise[boolIndex(signed)](&dst[0], &src[0], n, zero, scale)
	return n
}

// Dequantise16 is [Elements.Dequantise] for 16-bit quantised values.
func (e *Elements) Dequantise16(dst []float32, src []uint16, zero int32, scale float32, signed bool) int {
	n := e.wholeQuantised(len(dst))
	if n == 0 || e.dequantise16[0] == nil {
		return 0
	}
	_ = src[n-1]
	e.dequantise16[boolIndex(signed)](&dst[0], &src[0], n, zero, scale)
	return n
}

// Quantise16 is [Elements.Quantise] for 16-bit quantised values.
func (e *Elements) Quantise16(dst []uint16, src []float32, scale, lo, hi float32, zero int32) int {
	n := len(dst)
	if n == 0 || e.quantise16 == nil {
		return 0
	}
	_ = src[n-1]
	e.quantise16(&dst[0], &src[0], n, scale, lo, hi, zero)
	return n
}

// QuantiseAway16 is [Elements.QuantiseAway] for 16-bit quantised values. The magnitudes of lo and
// hi are below 2^17.
func (e *Elements) QuantiseAway16(dst []int16, src []float32, scale, lo, hi float32, zero int32) int {
	n := len(dst)
	if n == 0 || e == nil || e.quantiseAway16 == nil {
		return 0
	}
	_ = src[n-1]
	e.quantiseAway16((*uint16)(unsafe.Pointer(&dst[0])), &src[0], n, scale, lo, hi, zero)
	return n
}

// scaleKernel is a kernel of [Elements.ScaleRows]. Steps are in bytes.
type scaleKernel func(dst *float32, stepDst int, sums *int32, stepSums, rows, n int, weights, bias, scales *float32, scale float32)

// ScaleRows converts rows of len(weights) integer sums to float32: sum·weight·scale, rounded in
// this order or, if together is set, sum·(weight·scale). It adds the bias of the column if bias
// is not nil. If scales is not nil, each row has its own scale. Rows are step and line elements
// apart. It returns false if no kernel is available.
func (e *Elements) ScaleRows(dst []float32, step int, sums []int32, line, rows int, weights, bias, scales []float32, scale float32, together bool) bool {
	kernel := e.scaleRows[0]
	if together {
		kernel = e.scaleRows[1]
	}
	if kernel == nil {
		return false
	}
	n := len(weights)
	if n == 0 || rows <= 0 {
		return true
	}
	_, _ = dst[(rows-1)*step+n-1], sums[(rows-1)*line+n-1]
	var b, s *float32
	if bias != nil {
		b = &bias[:n][0]
	}
	if scales != nil {
		s = &scales[:rows][0]
	}
	kernel(&dst[0], 4*step, &sums[0], 4*line, rows, n, &weights[0], b, s, scale)
	return true
}

// Codes holds the quantisation parameters of two 8-bit operands and a result, in the layout that
// the assembly reads.
type Codes struct {
	zeroA, scaleA, zeroB, scaleB, scale, lo, hi float32
	zero                                        int32
	guess                                       guess
}

// NewCodes takes scale and zero point of the operands and of the result, and the limits of the
// result. Zero points are integers. The result is a product if product is set, else a sum.
func NewCodes(scaleA, zeroA, scaleB, zeroB, scale, zero, lo, hi float32, product bool) Codes {
	q := Codes{zeroA: zeroA, scaleA: scaleA, zeroB: zeroB, scaleB: scaleB, scale: scale, lo: lo - zero, hi: hi - zero, zero: int32(zero)}
	if product {
		q.guess.ofProduct(scaleA, scaleB, zeroB, scale)
	} else {
		q.guess.ofSum(scaleA, zeroA, scaleB, zeroB, scale)
	}
	return q
}

// guess holds the coefficients of an approximation of the result before rounding: a·a + b·b + c
// for a sum, (a - zeroA)·(b·b + c) for a product. If the approximation is farther than doubt from
// an integer, the exact computation may round to another value.
type guess struct{ a, b, c, doubt float32 }

// ofSum sets the coefficients for a sum. With u = 2^-24 and m the largest magnitude of both terms
// together, the definition has an error of u·m for the terms and 2u·m for their sum and its
// division. The approximation has u·m for its factors, u·m for c, and 2u·m for its two steps.
func (g *guess) ofSum(scaleA, zeroA, scaleB, zeroB, scale float32) {
	g.a, g.b = scaleA/scale, scaleB/scale
	g.c = float32(-float64(zeroA)*float64(g.a) - float64(zeroB)*float64(g.b))
	if !normalScale(scaleA) || !normalScale(scaleB) || !normalScale(scale) {
		return
	}
	g.setDoubt(255 * (math.Abs(float64(g.a)) + math.Abs(float64(g.b))))
}

// ofProduct sets the coefficients for a product. The definition has an error of 4u·m. The
// approximation has u·m for its factor, u·m for c, and 2u·m for its two steps. The factors of a
// product have two roundings.
func (g *guess) ofProduct(scaleA, scaleB, zeroB, scale float32) {
	g.b = float32(float64(scaleA) * float64(scaleB) / float64(scale))
	g.c = float32(-float64(zeroB) * float64(g.b))
	if !normalScale(scaleA) || !normalScale(scaleB) || !normalScale(scale) {
		return
	}
	g.setDoubt(255 * 255 * math.Abs(float64(g.b)))
}

// normalScale reports whether products with a scale are rounded as normal numbers: no step leaves
// the range of full precision.
func normalScale(scale float32) bool {
	size := math.Abs(float64(scale))
	return size >= 0x1p-50 && size <= 0x1p50
}

// setDoubt sets doubt for results of magnitude up to m, with a margin for its own rounding. All
// results are in doubt if an approximation might not fit 32 bits.
func (g *guess) setDoubt(m float64) {
	if m < 1<<20 {
		g.doubt = float32(max(0, 0.5-10*m*0x1p-24-0x1p-24))
	}
}

func boolIndex(signed bool) int {
	if signed {
		return 1
	}
	return 0
}

// Combine adds or multiplies 8-bit quantised values and quantises the results as
// [Elements.Quantise] does. It returns the number of values written.
func (e *Elements) Combine(dst, a, b []uint8, q *Codes, signed, product bool) int {
	n := e.wholeQuantised(len(dst))
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		kernel := &e.sum
		if product {
			kernel = &e.product
		}
		kernel[boolIndex(signed)](&dst[0], &a[0], &b[0], n, q)
	}
	return n
}

// LimitBytes limits src, signed or not, to lo and hi; hi wins if lo is above hi. It returns the
// number of values written.
func (e *Elements) LimitBytes(dst, src []uint8, lo, hi uint8, signed bool) int {
	n := len(dst) / 32 * 32
	if n > 0 {
		_ = src[n-1]
		e.limitBytes[boolIndex(signed)](&dst[0], &src[0], n, int32(lo), int32(hi))
	}
	return n
}

// MaxBytes writes the larger of a and b, signed or not. It returns the number of values written.
func (e *Elements) MaxBytes(dst, a, b []uint8, signed bool) int {
	n := len(dst) / 32 * 32
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		e.maxBytes[boolIndex(signed)](&dst[0], &a[0], &b[0], n)
	}
	return n
}

// Transpose transposes a matrix of 32-bit words: word j of row i of dst is word i of row j of src.
// Rows are stepDst and stepSrc words apart. dst and src must not overlap. It returns false, and
// does nothing, for fewer than 8 rows or columns.
func (e *Elements) Transpose(dst []uint32, stepDst int, src []uint32, stepSrc, rows, cols int) bool {
	return transpose(e.transpose, dst, stepDst, src, stepSrc, rows, cols)
}

// Transpose16 is [Elements.Transpose] for 16-bit words. It also returns false if
// [Elements.HasTranspose16] does.
func (e *Elements) Transpose16(dst []uint16, stepDst int, src []uint16, stepSrc, rows, cols int) bool {
	return e.transpose16 != nil && transpose(e.transpose16, dst, stepDst, src, stepSrc, rows, cols)
}

// transpose transposes with a kernel for 8 rows of dst and a given number of 8-column blocks. If a
// size is not a multiple of 8, the last block overlaps the one before.
func transpose[T uint16 | uint32](kernel func(dst *T, stepDst int, src *T, stepSrc, n int), dst []T, stepDst int, src []T, stepSrc, rows, cols int) bool {
	if rows < 8 || cols < 8 {
		return false
	}
	_, _ = dst[(rows-1)*stepDst+cols-1], src[(cols-1)*stepSrc+rows-1]
	size := int(unsafe.Sizeof(T(0)))
	for i := 0; i < rows; i += 8 {
		i := min(i, rows-8)
		kernel(&dst[i*stepDst], size*stepDst, &src[i], size*stepSrc, cols/8)
		if cols%8 > 0 {
			kernel(&dst[i*stepDst+cols-8], size*stepDst, &src[(cols-8)*stepSrc+i], size*stepSrc, 1)
		}
	}
	return true
}

// HasTranspose16 reports whether [Elements.Transpose16] is available.
func (e *Elements) HasTranspose16() bool { return e != nil && e.transpose16 != nil }
