package quantise

import (
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Integer is an integer type of quantised values.
type Integer interface{ int8 | uint8 | int16 }

// Binary computes sums, differences or products of two quantised operands with SIMD kernels.
type Binary[T Integer] struct {
	f       *simd.Pairs
	kind    simd.PairKind
	swapped bool // the operands are swapped
	q       simd.Pair
}

// NewMul multiplies values minus their zero points, scales by m, and adds the output zero point.
// ok is false if no SIMD kernel supports the parameters.
func NewMul[T Integer](zeroA, zeroB int32, m fixed.Multiplier, zero, lo, hi int32) (p *Binary[T], ok bool) {
	p = &Binary[T]{kind: simd.PairProduct, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Zero: zero, Lo: lo, Hi: hi}}
	if ok = p.finish(m); ok && unsafe.Sizeof(T(0)) == 1 && p.f.Scales() {
		var same bool
		if p.q.Scale, p.q.Bias, same = floatScale(m, mostProduct, lo-zero, hi-zero); same {
			p.kind = simd.PairScaled
		}
	}
	return p, ok
}

// mostProduct is at least the magnitude of a product of two 8-bit values minus their zero points.
const mostProduct = 383 * 383

// floatScale finds float32 numbers for [simd.PairScaled] that give the same integers as m, clamped
// to lo and hi, for products of at most the given magnitude. Both rise with the product, so that
// they are the same if they step at the same products.
func floatScale(m fixed.Multiplier, most, lo, hi int32) (scale, bias float32, ok bool) {
	exact := math.Ldexp(float64(m.M), m.Shift-31)
	var steps []int32 // the least product for each result above lo
	for v := lo + 1; v <= hi; v++ {
		p := int32(min(max(math.Ceil((float64(v)-0.5)/exact)-1, -float64(most)), float64(most)))
		for p > -most && m.Apply(p-1) >= v {
			p--
		}
		for p < most && m.Apply(p) < v {
			p++
		}
		steps = append(steps, p)
	}
	same := func() bool {
		for i, p := range steps {
			v := lo + 1 + int32(i)
			if p > -most && scaledProduct(p-1, scale, bias) >= v || (scaledProduct(p, scale, bias) >= v) != (m.Apply(p) >= v) {
				return false
			}
		}
		return true
	}
	half := 0.0
	if m.Shift < 0 {
		half = math.Ldexp(0.5, m.Shift) // the first of two roundings moves the border by half of its unit
	}
	for ulps := range int32(32) {
		away := (ulps + 1) / 2 * (2*(ulps&1) - 1)
		scale = math.Float32frombits(uint32(int32(math.Float32bits(float32(exact))) + away))
		for _, more := range []float64{0, 0x1p-12, -0x1p-12} {
			if bias = float32(half * (1 + more)); same() {
				return scale, bias, true
			}
		}
	}
	return 0, 0, false
}

// scaledProduct is what [simd.PairScaled] computes of a product. The sum in float64 is exact.
func scaledProduct(p int32, scale, bias float32) int32 {
	return int32(math.RoundToEven(float64(float32(float64(p)*float64(scale) + math.Copysign(float64(bias), float64(p))))))
}

// NewAdd adds or subtracts values minus their zero points, shifted left by shift, at most 20,
// and scaled by mA and mB, one of which is a half. The result is scaled by m, and the output zero
// point is added. See [NewMul] for ok.
func NewAdd[T Integer](subtract bool, shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *Binary[T], ok bool) {
	if p, ok = newAddQ[T](subtract, shift, zeroA, zeroB, mA, mB, m, zero, lo, hi); shift < 1 || shift > 20 {
		return nil, false
	}
	return p, ok
}

// newAddQ is NewAddQ for any shift.
func newAddQ[T Integer](subtract bool, shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *Binary[T], ok bool) {
	half := fixed.Multiplier{M: 1 << 30}
	p = &Binary[T]{kind: simd.PairSum, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Shift: int32(shift), Zero: zero, Lo: lo, Hi: hi}}
	if subtract {
		p.kind = simd.PairDifference
	}
	if mA != half {
		mA, mB = mB, mA
		p.swapped, p.q.ZeroA, p.q.ZeroB = true, zeroB, zeroA
		if subtract {
			p.kind = simd.PairReverse
		}
	}
	if p.q.B, ok = simd.NewScaling(mB.M, -mB.Shift); !ok || mA != half {
		return nil, false
	}
	return p, p.finish(m)
}

// NewSquaredDifference is [NewAdd] for squared differences. shift is at most 7, or 0 for 16-bit
// values, so that squares are at most 2^30.
func NewSquaredDifference[T Integer](shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *Binary[T], ok bool) {
	least, most := 1, 7
	if unsafe.Sizeof(T(0)) == 2 {
		least, most = 0, 0
	}
	if p, ok = newAddQ[T](true, shift, zeroA, zeroB, mA, mB, m, zero, lo, hi); !ok || shift < least || shift > most {
		return nil, false
	}
	p.kind = simd.PairSquare // of a difference or its negative
	return p, true
}

// NewPRelu multiplies values minus their zero point by up. Negative ones are multiplied by
// slopes minus their zero point and by down instead. It adds the output zero point. See [NewMul]
// for ok.
func NewPRelu[T int8 | uint8](zeroA, zeroB int32, up, down fixed.Multiplier, zero, lo, hi int32) (p *Binary[T], ok bool) {
	p = &Binary[T]{kind: simd.PairPRelu, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Zero: zero, Lo: lo, Hi: hi}}
	if up.Shift > 20 {
		return nil, false
	}
	if up.Shift > 0 {
		p.q.Shift = int32(up.Shift)
		up.Shift = 0
	}
	if p.q.B, ok = simd.NewScaling(up.M, -up.Shift); !ok {
		return nil, false
	}
	return p, p.finish(down)
}

// NewLeaky multiplies values minus their zero point by up, negative ones by down, and adds the
// output zero point. See [NewMul] for ok.
func NewLeaky(zeroA int32, up, down fixed.Multiplier, zero, lo, hi int32) (p *Binary[int16], ok bool) {
	p = &Binary[int16]{kind: simd.PairLeaky, q: simd.Pair{ZeroA: zeroA, Zero: zero, Lo: lo, Hi: hi}}
	// A difference of 16-bit values has 17 bits, and values have at most 30.
	if p.f = simd.PairKernels(); p.f == nil || max(up.Shift, down.Shift) > 13 {
		return nil, false
	}
	p.q.Shift, p.q.ZeroB = int32(max(0, up.Shift)), int32(max(0, down.Shift))
	if p.q.B, ok = simd.NewScaling(up.M, -min(0, up.Shift)); !ok {
		return nil, false
	}
	p.q.Result, ok = simd.NewScaling(down.M, -min(0, down.Shift))
	return p, ok
}

// finish reports whether the kernels support the parameters.
func (p *Binary[T]) finish(m fixed.Multiplier) (ok bool) {
	if p.f = simd.PairKernels(); p.f == nil {
		return false
	}
	least, most := int32(-128), int32(255)
	if unsafe.Sizeof(T(0)) == 2 {
		// so that products, and sums with 15 more bits of scale, are at most 2^30
		least, most = 0, 0
	}
	for _, z := range []int32{p.q.ZeroA, p.q.ZeroB} {
		if z < least || z > most {
			return false
		}
	}
	p.q.Result, ok = simd.NewScaling(m.M, -m.Shift)
	return ok
}

// Run computes dst from a and b.
func (p *Binary[T]) Run(dst, a, b []T) { p.Rows(dst, a, b, len(dst), 0, 0, 0) }

// Rows computes rows of n contiguous outputs. The rows of the operands are stepA and stepB values
// apart. The operand named by single (1 for a, 2 for b, 0 for neither) has one value per row.
func (p *Binary[T]) Rows(dst, a, b []T, n, stepA, stepB, single int) {
	if p.swapped {
		a, b, stepA, stepB = b, a, stepB, stepA
		if single != 0 {
			single = 3 - single
		}
	}
	if unsafe.Sizeof(T(0)) == 2 {
		p.f.CombineWords(p.kind, words(dst), words(a), words(b), n, stepA, stepB, single, &p.q)
		return
	}
	p.f.Combine(p.kind, codeBits(dst), codeBits(a), codeBits(b), n, stepA, stepB, single, &p.q, T(0)-1 < 0)
}

// RunUnary computes dst from a for functions without a second operand.
func (p *Binary[T]) RunUnary(dst, a []T) { p.Run(dst, a, a) }

// words views 16-bit values as such.
func words[T Integer](v []T) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// codeBits views 8-bit values as bytes.
func codeBits[T Integer](v []T) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
