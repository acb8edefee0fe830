package simd

import (
	"math"
	"sync"
	"unsafe"
)

// Elements are loops over float32 that give the bits of the same loop in Go.
type Elements struct {
	Set                        Set
	addVV, subVV, mulVV, divVV func(dst, a, b *float32, n int)
	addVS, mulVS, divVS        func(dst, a *float32, b float32, n int)
	preluVV, maxVV, minVV      func(dst, a, b *float32, n int) // nil for none
	ints                       [intOps][intKinds]func(dst, a, b *float32, n int)
	maxDD, minDD               func(dst, a, b *float32, n int)                // of float64, two of n each; nil for none
	limitDoubles               func(dst, src *float64, n int, lo, hi float64) // nil for none
	wholeDoubles               [4]func(dst, src *float64, n int)              // as toWhole; nil for none
	xorAll                     func(dst, a *float32, b float32, n int)        // nil for none
	preluVS                    func(dst, a *float32, b float32, n int)        // nil for none
	subSV, divSV               func(dst *float32, a float32, b *float32, n int)
	clamp                      func(dst, src *float32, n int, lo, hi, plus float32)
	scale                      func(dst, src *float32, n int, s, t float32)
	magnitude                  func(dst, src *float32, n int)                      // nil for none
	softsign, signum           func(dst, src *float32, n int)                      // nil for none
	above                      func(dst, src *float32, n int, limit float32)       // nil for none
	shrink                     func(dst, src *float32, n int, limit, bias float32) // nil for none
	toWhole                    [3]func(dst, src *float32, n int)                   // to the nearest even, down, up; nil for none
	roundAway                  func(dst, src *float32, n int, mul, lo, hi float32)
	extent                     func(src *float32, n int) (least, most float32)
	nibbles                    func(dst *float32, src *byte, n int, zero, scale float32)
	dot                        func(a, b *float32, n int) float32
	dots                       func(sums, a, b *float32, offs *int, n int) // nil for none
	dotNibbles                 func(x *float32, w *byte, groups, blocks int, scales, zeros, sums *float32) float32
	rectifyHalf                func(dst, src *uint16, n int, inf uint16)
	fromHalf                   func(dst *float32, src *uint16, n int)
	fromBrain                  func(dst *float32, src *uint16, n int) // nil where the set has none
	toHalf                     func(dst *uint16, src *float32, n int)
	lost                       func(src *float32, n int) (half, brain uint32) // nil for none
	toFloats                   func(dst *float32, src *int32, n int)
	quantise, quantiseAway     func(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)
	rescale                    func(dst *byte, src *int32, n int, scale, lo, hi float32, zero, bias int32)
	rescaleRows                [2]rescaleLoop                                          // nil: rescale; the second for scales below a half
	rescaleColumns             [2]rescaleLoop                                          // nil for none
	turnBytes                  func(dst *byte, stepDst int, src *byte, stepSrc, n int) // nil for none
	limitBytes                 [2]func(dst, src *byte, n int, lo, hi int32)
	maxBytes                   [2]func(dst, a, b *byte, n int)
	turn                       func(dst *uint32, stepDst int, src *uint32, stepSrc, n int)
	turnHalves                 func(dst *uint16, stepDst int, src *uint16, stepSrc, n int) // nil for none
	sum, product               [2]func(dst, a, b *byte, n int, q *Codes)
	dequantise                 [2]func(dst *float32, src *byte, n int, zero int32, scale float32)                                  // nil for none
	addScaled                  func(dst, w, scales *float32, n int, x *float32, places *int32, count, step int, scale float32)     // nil for none
	curve16                    func(dst, src *int16, n int, table *uint32, mul, round, shift, bits, mask, above, below, out int32) // nil for none
	quantiseRow                func(dst *byte, src *float32, n int, mul, lo, hi float32, zero int32)                               // nil for none
	lessTimes                  func(dst, b *int32, n int, by int32)                                                                // nil for none
	nonzeros                   func(values *float32, places *int32, x *float32, n int) int                                         // nil for none
	dequantise16               [2]func(dst *float32, src *uint16, n int, zero int32, scale float32)                                // nil for none
	quantise16, quantiseAway16 func(dst *uint16, src *float32, n int, scale, lo, hi float32, zero int32)                           // nil for none
	pairs                      [rowOps][2]rowPair                                                                                  // with two rows, and with a row and a number; nil for none
	quantiseRows               func(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)    // nil for none
	quantiseEvenRows           func(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)    // nil for none
	scaleRows                  [2]scaleLoop                                                                                        // nil for none
	every                      bool                                                                                                // quantise, sum and product take any number of elements
}

// ElementKernels of the current set; nil where plain Go is all there is.
func ElementKernels() *Elements { return elements.pick() }

// whole is the number of elements that loops take: registers of 8.
func whole(n int) int { return n / 8 * 8 }

// codes is whole for loops over codes.
func (e *Elements) codes(n int) int {
	if e.every {
		return n
	}
	return whole(n)
}

func both(dst, a, b []float32, loop func(dst, a, b *float32, n int)) int {
	n := whole(len(dst))
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		loop(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func withScalar(dst, a []float32, b float32, loop func(dst, a *float32, b float32, n int)) int {
	n := whole(len(dst))
	if n > 0 {
		_ = a[n-1]
		loop(&dst[0], &a[0], b, n)
	}
	return n
}

func scalarWith(dst []float32, a float32, b []float32, loop func(dst *float32, a float32, b *float32, n int)) int {
	n := whole(len(dst))
	if n > 0 {
		_ = b[n-1]
		loop(&dst[0], a, &b[0], n)
	}
	return n
}

// Add writes a+b; dst may be an operand here and below.
func (e *Elements) Add(dst, a, b []float32) {
	for i := both(dst, a, b, e.addVV); i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

// AddScalar writes a+b.
func (e *Elements) AddScalar(dst, a []float32, b float32) {
	for i := withScalar(dst, a, b, e.addVS); i < len(dst); i++ {
		dst[i] = a[i] + b
	}
}

// Sub writes a-b.
func (e *Elements) Sub(dst, a, b []float32) {
	for i := both(dst, a, b, e.subVV); i < len(dst); i++ {
		dst[i] = a[i] - b[i]
	}
}

// ScalarSub writes a-b.
func (e *Elements) ScalarSub(dst []float32, a float32, b []float32) {
	for i := scalarWith(dst, a, b, e.subSV); i < len(dst); i++ {
		dst[i] = a - b[i]
	}
}

// Mul writes a·b.
func (e *Elements) Mul(dst, a, b []float32) {
	for i := both(dst, a, b, e.mulVV); i < len(dst); i++ {
		dst[i] = a[i] * b[i]
	}
}

// MulScalar writes a·b.
func (e *Elements) MulScalar(dst, a []float32, b float32) {
	for i := withScalar(dst, a, b, e.mulVS); i < len(dst); i++ {
		dst[i] = a[i] * b
	}
}

// Div writes a/b.
func (e *Elements) Div(dst, a, b []float32) {
	for i := both(dst, a, b, e.divVV); i < len(dst); i++ {
		dst[i] = a[i] / b[i]
	}
}

// DivScalar writes a/b.
func (e *Elements) DivScalar(dst, a []float32, b float32) {
	for i := withScalar(dst, a, b, e.divVS); i < len(dst); i++ {
		dst[i] = a[i] / b
	}
}

// ScalarDiv writes a/b.
func (e *Elements) ScalarDiv(dst []float32, a float32, b []float32) {
	for i := scalarWith(dst, a, b, e.divSV); i < len(dst); i++ {
		dst[i] = a / b[i]
	}
}

// Clamp writes min(max(src, lo), hi).
func (e *Elements) Clamp(dst, src []float32, lo, hi float32) {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		// Adding this changes no number but a negative zero that lo, a positive one, beats.
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

// Limit writes src where it is neither less than lo nor greater than hi, else the limit:
// what is no number stays, and so does the sign of a zero.
func (e *Elements) Limit(dst, src []float32, lo, hi float32) {
	n := whole(len(dst))
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

// Abs writes src without its signs.
func (e *Elements) Abs(dst, src []float32) {
	n := 0
	if e.magnitude != nil {
		if n = whole(len(dst)); n > 0 {
			_ = src[n-1]
			e.magnitude(&dst[0], &src[0], n)
		}
	}
	for i := n; i < len(dst); i++ {
		dst[i] = math.Float32frombits(math.Float32bits(src[i]) &^ (1 << 31))
	}
}

// ToEven writes the whole numbers that are nearest, ties to even; it returns for how many values it did so, as Floor and Ceil do.
func (e *Elements) ToEven(dst, src []float32) int { return e.whole(dst, src, 0) }

// Floor writes the greatest whole numbers that are not greater.
func (e *Elements) Floor(dst, src []float32) int { return e.whole(dst, src, 1) }

// Ceil writes the least whole numbers that are not less.
func (e *Elements) Ceil(dst, src []float32) int { return e.whole(dst, src, 2) }

func (e *Elements) whole(dst, src []float32, mode int) int {
	n := whole(len(dst))
	if n == 0 || e.toWhole[mode] == nil {
		return 0
	}
	_ = src[n-1]
	e.toWhole[mode](&dst[0], &src[0], n)
	return n
}

// Doubles is a loop over float64.
type Doubles uint8

// The loops: the whole numbers next to others, to the nearest even, down and up.
const (
	DoublesToEven Doubles = iota
	DoublesFloor
	DoublesCeil
	DoublesSign // 1 and -1 for what is above and below zero, others as they are
)

// WholeDoubles writes whole numbers; it returns for how many values it did so.
func (e *Elements) WholeDoubles(k Doubles, dst, src []float64) int {
	n := len(dst) / 4 * 4
	if e == nil || e.wholeDoubles[k] == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.wholeDoubles[k](&dst[0], &src[0], 2*n)
	return n
}

// LimitDoubles is [Elements.Limit] of float64; it returns for how many values it did so.
func (e *Elements) LimitDoubles(dst, src []float64, lo, hi float64) int {
	n := len(dst) / 4 * 4
	if e == nil || e.limitDoubles == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.limitDoubles(&dst[0], &src[0], 2*n, lo, hi)
	return n
}

// MaxDoubles is [Elements.Max] of float64; it returns for how many values it did so, as MinDoubles does.
func (e *Elements) MaxDoubles(dst, a, b []float64) int { return bothDoubles(dst, a, b, e.maxDD) }

// MinDoubles is [Elements.Min] of float64.
func (e *Elements) MinDoubles(dst, a, b []float64) int { return bothDoubles(dst, a, b, e.minDD) }

func bothDoubles(dst, a, b []float64, loop func(dst, a, b *float32, n int)) int {
	n := len(dst) / 4 * 4
	if loop == nil || n == 0 {
		return 0
	}
	_, _ = a[n-1], b[n-1]
	loop(words(dst), words(a), words(b), 2*n)
	return n
}

// Scale writes src·s + t, rounded twice.
func (e *Elements) Scale(dst, src []float32, s, t float32) {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.scale(&dst[0], &src[0], n, s, t)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(src[i]*s) + t
	}
}

// Quantise writes the 8-bit codes of src/scale, limited to lo and hi, rounded to the
// nearest, ties to even, plus zero. lo and hi are whole; what is no number becomes lo. It
// returns for how many it did so: the caller does the rest.
func (e *Elements) Quantise(dst []uint8, src []float32, scale, lo, hi float32, zero int32) int {
	n := e.codes(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.quantise(&dst[0], &src[0], n, scale, lo, hi, zero)
	}
	return n
}

// QuantiseAway is [Elements.Quantise] with ties away from zero; what is no number becomes
// 0, and gets the zero point.
func (e *Elements) QuantiseAway(dst []uint8, src []float32, scale, lo, hi float32, zero int32) int {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.quantiseAway(&dst[0], &src[0], n, scale, lo, hi, zero)
	}
	return n
}

// RoundAway writes src·mul, rounded to float32 and then to the nearest whole number, ties
// away from zero, limited to lo and hi. Below 2^22 only; it returns for how many it did so.
func (e *Elements) RoundAway(dst, src []float32, mul, lo, hi float32) int {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.roundAway(&dst[0], &src[0], n, mul, lo, hi)
	}
	return n
}

// Extent is the smallest and the largest of src, lo and hi: what is no number if one is
// none.
func (e *Elements) Extent(src []float32, lo, hi float32) (least, most float32) {
	n := whole(len(src))
	if n > 0 {
		least, most = e.extent(&src[0], n)
		lo, hi = min(lo, least), max(hi, most)
	}
	for _, v := range src[n:] {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// Nibbles writes (q - zero)·scale of codes of 4 bits, the lower half of each byte first;
// it returns for how many values it did so.
func (e *Elements) Nibbles(dst []float32, src []uint8, zero, scale float32) int {
	n := len(dst) / 16 * 16
	if n > 0 {
		_ = src[n/2-1]
		e.nibbles(&dst[0], &src[0], n, zero, scale)
	}
	return n
}

// Dot is the inner product, in 32 sums that are rounded once a product.
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

// Dots writes the inner products of a, a multiple of 8 long, with as many values of b from each of the first eight places on. It
// returns false where there is no such loop.
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

// SpreadNibbles arranges a row x for [Elements.DotNibbles], with zeros behind it: of 16 values those with even
// places first. dst has a whole number of blocks, a multiple of 16 long, of which sums gets the sums.
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

// DotNibbles is the inner product of a row that [SpreadNibbles] arranged with (q - zero)·scale of codes q of 4
// bits, the lower half of each byte first; scale and zero are those of a block.
func (e *Elements) DotNibbles(x []float32, w []uint8, scales, zeros, sums []float32) float32 {
	n, blocks := len(x), len(sums)
	_, _, _ = w[n/2-1], scales[blocks-1], zeros[blocks-1]
	return e.dotNibbles(&x[0], &w[0], n/blocks/16, blocks, &scales[0], &zeros[0], &sums[0])
}

// RectifyHalf writes 0 for negative halves, zeros and what is no number excepted; inf is
// the code of infinity in their format. It returns for how many it did so.
func (e *Elements) RectifyHalf(dst, src []uint16, inf uint16) int {
	n := len(dst) / 16 * 16
	if n > 0 {
		_ = src[n-1]
		e.rectifyHalf(&dst[0], &src[0], n, inf)
	}
	return n
}

// FromHalf widens float16 numbers; it returns how many it did, as Quantise does, and so
// do the next three.
func (e *Elements) FromHalf(dst []float32, src []uint16) int {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.fromHalf(&dst[0], &src[0], n)
	}
	return n
}

// FromBrain widens bfloat16 numbers.
func (e *Elements) FromBrain(dst []float32, src []uint16) int {
	n := whole(len(dst))
	if e.fromBrain == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.fromBrain(&dst[0], &src[0], n)
	return n
}

// ToHalf rounds to float16, ties to even.
func (e *Elements) ToHalf(dst []uint16, src []float32) int {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.toHalf(&dst[0], &src[0], n)
	}
	return n
}

// halfRoom is what is left of a register.
type halfRoom struct {
	codes   [8]uint16
	numbers [8]float32
}

var halfRooms = sync.Pool{New: func() any { return new(halfRoom) }}

// FromHalves widens all of src.
func (e *Elements) FromHalves(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	n := e.FromHalf(dst, src)
	if n < len(src) {
		r := halfRooms.Get().(*halfRoom)
		copy(r.codes[:], src[n:])
		e.FromHalf(r.numbers[:], r.codes[:])
		copy(dst[n:], r.numbers[:])
		halfRooms.Put(r)
	}
}

// ToHalves rounds all of src, ties to even.
func (e *Elements) ToHalves(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	n := e.ToHalf(dst, src)
	if n < len(src) {
		r := halfRooms.Get().(*halfRoom)
		copy(r.numbers[:], src[n:])
		e.ToHalf(r.codes[:], r.numbers[:])
		copy(dst[n:], r.codes[:])
		halfRooms.Put(r)
	}
}

// Lost gives the bits that differ between some number of v and that number rounded to float16, and those that bfloat16 does not have: 0 where all of v are
// such numbers.
func (e *Elements) Lost(v []float32) (half, brain uint32) {
	if n := whole(len(v)); e.lost != nil && n > 0 {
		half, brain = e.lost(&v[0], n)
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

// ToFloats rounds integers to float32, ties to even.
func (e *Elements) ToFloats(dst []float32, src []int32) int {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.toFloats(&dst[0], &src[0], n)
	}
	return n
}

// Rescale is [Elements.Quantise] for (src + bias)·scale.
func (e *Elements) Rescale(dst []uint8, src []int32, scale, lo, hi float32, zero, bias int32) int {
	n := whole(len(dst))
	if n > 0 {
		_ = src[n-1]
		e.rescale(&dst[0], &src[0], n, scale, lo, hi, zero, bias)
	}
	return n
}

// Dequantise writes (src - zero)·scale of codes, signed or not. It returns for how many it did so.
func (e *Elements) Dequantise(dst []float32, src []uint8, zero int32, scale float32, signed bool) int {
	n := len(dst)
	if n == 0 || e.dequantise[0] == nil {
		return 0
	}
	_ = src[n-1]
	e.dequantise[sign(signed)](&dst[0], &src[0], n, zero, scale)
	return n
}

// Dequantise16 is [Elements.Dequantise] for codes of 16 bits.
func (e *Elements) Dequantise16(dst []float32, src []uint16, zero int32, scale float32, signed bool) int {
	n := len(dst)
	if n == 0 || e.dequantise16[0] == nil {
		return 0
	}
	_ = src[n-1]
	e.dequantise16[sign(signed)](&dst[0], &src[0], n, zero, scale)
	return n
}

// Quantise16 is [Elements.Quantise] for codes of 16 bits.
func (e *Elements) Quantise16(dst []uint16, src []float32, scale, lo, hi float32, zero int32) int {
	n := len(dst)
	if n == 0 || e.quantise16 == nil {
		return 0
	}
	_ = src[n-1]
	e.quantise16(&dst[0], &src[0], n, scale, lo, hi, zero)
	return n
}

// QuantiseAway16 is [Elements.QuantiseAway] for codes of 16 bits, lo and hi of which are below 2^17 in size.
func (e *Elements) QuantiseAway16(dst []int16, src []float32, scale, lo, hi float32, zero int32) int {
	n := len(dst)
	if n == 0 || e == nil || e.quantiseAway16 == nil {
		return 0
	}
	_ = src[n-1]
	e.quantiseAway16((*uint16)(unsafe.Pointer(&dst[0])), &src[0], n, scale, lo, hi, zero)
	return n
}

// scaleLoop is a loop of [Elements.ScaleRows]; steps are in bytes.
type scaleLoop func(dst *float32, stepDst int, sums *int32, stepSums, rows, n int, weights, bias, scales *float32, scale float32)

// ScaleRows writes rows of as many sums as there are weights: sum·weight·scale, rounded in this order, or (together)
// sum·(weight·scale), plus the bias of the column if bias is not nil. Each row has its scale where scales is not nil. Rows lie step and
// line elements apart. It returns false where the set has no loop.
func (e *Elements) ScaleRows(dst []float32, step int, sums []int32, line, rows int, weights, bias, scales []float32, scale float32, together bool) bool {
	loop := e.scaleRows[0]
	if together {
		loop = e.scaleRows[1]
	}
	if loop == nil {
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
	loop(&dst[0], 4*step, &sums[0], 4*line, rows, n, &weights[0], b, s, scale)
	return true
}

// Codes says what 8-bit codes of two operands and of a result mean, as the assembly reads it.
type Codes struct {
	zeroA, scaleA, zeroB, scaleB, scale, lo, hi float32
	zero                                        int32
	guess                                       guess
}

// NewCodes takes scale and zero point of the operands, those of the result, and the limits
// of its codes; zero points are whole. The codes are those of sums, or of products.
func NewCodes(scaleA, zeroA, scaleB, zeroB, scale, zero, lo, hi float32, product bool) Codes {
	q := Codes{zeroA: zeroA, scaleA: scaleA, zeroB: zeroB, scaleB: scaleB, scale: scale, lo: lo - zero, hi: hi - zero, zero: int32(zero)}
	if product {
		q.guess.ofProduct(scaleA, scaleB, zeroB, scale)
	} else {
		q.guess.ofSum(scaleA, zeroA, scaleB, zeroB, scale)
	}
	return q
}

// guess says about what a result is before it is rounded: a·a + b·b + c of a sum, (a - zeroA)·(b·b + c) of a product. Where it lies farther than
// doubt from a whole number, the code may be another one.
type guess struct{ a, b, c, doubt float32 }

// ofSum: with u = 2^-24 and m the largest size that both terms may have together, the definition is off by u·m for the terms and 2u·m for their sum
// and its division; the guess by u·m for its factors, u·m for c, and 2u·m for its two steps.
func (g *guess) ofSum(scaleA, zeroA, scaleB, zeroB, scale float32) {
	g.a, g.b = scaleA/scale, scaleB/scale
	g.c = float32(-float64(zeroA)*float64(g.a) - float64(zeroB)*float64(g.b))
	if !usual(scaleA) || !usual(scaleB) || !usual(scale) {
		return
	}
	g.within(255 * (math.Abs(float64(g.a)) + math.Abs(float64(g.b))))
}

// ofProduct: the definition is off by 4u·m, the guess by u·m for its factor, u·m for c, and 2u·m for its two steps; factors of a product have two roundings.
func (g *guess) ofProduct(scaleA, scaleB, zeroB, scale float32) {
	g.b = float32(float64(scaleA) * float64(scaleB) / float64(scale))
	g.c = float32(-float64(zeroB) * float64(g.b))
	if !usual(scaleA) || !usual(scaleB) || !usual(scale) {
		return
	}
	g.within(255 * 255 * math.Abs(float64(g.b)))
}

// usual tells whether products with a scale are rounded like any numbers: no step leaves those with all their bits.
func usual(scale float32) bool {
	size := math.Abs(float64(scale))
	return size >= 0x1p-50 && size <= 0x1p50
}

// within sets the doubt for results of a size of m at most, with something for its own rounding. All is in doubt where a guess might not fit 32 bits.
func (g *guess) within(m float64) {
	if m < 1<<20 {
		g.doubt = float32(max(0, 0.5-10*m*0x1p-24-0x1p-24))
	}
}

func sign(signed bool) int {
	if signed {
		return 1
	}
	return 0
}

// Combine writes the codes of the sums, or products, of what codes of 8 bits mean, rounded as
// [Elements.Quantise] does. It returns for how many it did so.
func (e *Elements) Combine(dst, a, b []uint8, q *Codes, signed, product bool) int {
	n := e.codes(len(dst))
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		loop := &e.sum
		if product {
			loop = &e.product
		}
		loop[sign(signed)](&dst[0], &a[0], &b[0], n, q)
	}
	return n
}

// LimitBytes writes src where it lies between lo and hi, else the limit, hi where they cross;
// numbers are signed or not. It returns for how many it did so.
func (e *Elements) LimitBytes(dst, src []uint8, lo, hi uint8, signed bool) int {
	n := len(dst) / 32 * 32
	if n > 0 {
		_ = src[n-1]
		e.limitBytes[sign(signed)](&dst[0], &src[0], n, int32(lo), int32(hi))
	}
	return n
}

// MaxBytes writes the larger of a and b, numbers that are signed or not. It returns for how many it did so.
func (e *Elements) MaxBytes(dst, a, b []uint8, signed bool) int {
	n := len(dst) / 32 * 32
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		e.maxBytes[sign(signed)](&dst[0], &a[0], &b[0], n)
	}
	return n
}

// Turn writes a matrix of words with rows and columns exchanged: word j of row i of dst is word i of row j of
// src. Rows are stepDst and stepSrc words apart. dst is not src. It does nothing and returns false for less than 8 rows or columns.
func (e *Elements) Turn(dst []uint32, stepDst int, src []uint32, stepSrc, rows, cols int) bool {
	return turn(e.turn, dst, stepDst, src, stepSrc, rows, cols)
}

// TurnHalves is [Elements.Turn] for words of 16 bits, false also where [Elements.Halves] is.
func (e *Elements) TurnHalves(dst []uint16, stepDst int, src []uint16, stepSrc, rows, cols int) bool {
	return e.turnHalves != nil && turn(e.turnHalves, dst, stepDst, src, stepSrc, rows, cols)
}

// turn runs a loop that turns 8 rows of dst of 8 columns each, as often as it is told. The last 8 of a number that is no multiple of 8 begin
// where others have been done.
func turn[T uint16 | uint32](loop func(dst *T, stepDst int, src *T, stepSrc, n int), dst []T, stepDst int, src []T, stepSrc, rows, cols int) bool {
	if rows < 8 || cols < 8 {
		return false
	}
	_, _ = dst[(rows-1)*stepDst+cols-1], src[(cols-1)*stepSrc+rows-1]
	size := int(unsafe.Sizeof(T(0)))
	for i := 0; i < rows; i += 8 {
		i := min(i, rows-8)
		loop(&dst[i*stepDst], size*stepDst, &src[i], size*stepSrc, cols/8)
		if cols%8 > 0 {
			loop(&dst[i*stepDst+cols-8], size*stepDst, &src[(cols-8)*stepSrc+i], size*stepSrc, 1)
		}
	}
	return true
}

// Halves tells whether [Elements.TurnHalves] does anything.
func (e *Elements) Halves() bool { return e != nil && e.turnHalves != nil }
