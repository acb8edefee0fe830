package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// QuantInt is a number of 8 or 16 bits that stands for a real one.
type QuantInt interface{ int8 | uint8 | int16 }

// BinaryQ computes sums, differences or products of two operands of codes in vectors.
type BinaryQ[T QuantInt] struct {
	f       *simd.Pairs
	kind    simd.PairKind
	swapped bool // the operands change places
	q       simd.Pair
}

// NewMulQ multiplies codes less their zero points, by m, and adds the zero point of the result; ok is false where
// vectors have no loop for that.
func NewMulQ[T QuantInt](zeroA, zeroB int32, m fixed.Multiplier, zero, lo, hi int32) (p *BinaryQ[T], ok bool) {
	p = &BinaryQ[T]{kind: simd.PairProduct, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Zero: zero, Lo: lo, Hi: hi}}
	return p, p.finish(m)
}

// NewAddQ adds or subtracts codes less their zero points, moved up by shift, at most 20, and multiplied by mA and mB, one
// of which is a half; the result is multiplied by m and gets its zero point. See [NewProductQ] for ok.
func NewAddQ[T QuantInt](subtract bool, shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *BinaryQ[T], ok bool) {
	if p, ok = newAddQ[T](subtract, shift, zeroA, zeroB, mA, mB, m, zero, lo, hi); shift < 1 || shift > 20 {
		return nil, false
	}
	return p, ok
}

// newAddQ is NewSumQ for any shift.
func newAddQ[T QuantInt](subtract bool, shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *BinaryQ[T], ok bool) {
	half := fixed.Multiplier{M: 1 << 30}
	p = &BinaryQ[T]{kind: simd.PairSum, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Shift: int32(shift), Zero: zero, Lo: lo, Hi: hi}}
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

// NewSquaredDifferenceQ is NewSumQ for squares of differences; shift is at most 7, for codes of 16 bits 0, so that they are at most 2^30.
func NewSquaredDifferenceQ[T QuantInt](shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *BinaryQ[T], ok bool) {
	least, most := 1, 7
	if unsafe.Sizeof(T(0)) == 2 {
		least, most = 0, 0
	}
	if p, ok = newAddQ[T](true, shift, zeroA, zeroB, mA, mB, m, zero, lo, hi); !ok || shift < least || shift > most {
		return nil, false
	}
	p.kind = simd.PairSquare // of a difference or of its reverse
	return p, true
}

// NewPReluQ multiplies codes less their zero point by up, where they are negative by codes of slopes less theirs and by down, and adds the
// zero point of the result. See [NewProductQ] for ok.
func NewPReluQ[T int8 | uint8](zeroA, zeroB int32, up, down fixed.Multiplier, zero, lo, hi int32) (p *BinaryQ[T], ok bool) {
	p = &BinaryQ[T]{kind: simd.PairPRelu, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Zero: zero, Lo: lo, Hi: hi}}
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

// NewLeakyQ multiplies codes less their zero point by up, negative ones by down, and adds the zero point of the result. See [NewProductQ] for ok.
func NewLeakyQ(zeroA int32, up, down fixed.Multiplier, zero, lo, hi int32) (p *BinaryQ[int16], ok bool) {
	p = &BinaryQ[int16]{kind: simd.PairLeaky, q: simd.Pair{ZeroA: zeroA, Zero: zero, Lo: lo, Hi: hi}}
	// A difference of codes of 16 bits has 17, and 30 are as many as a number may have.
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

// finish tells whether the loops can do it.
func (p *BinaryQ[T]) finish(m fixed.Multiplier) (ok bool) {
	if p.f = simd.PairKernels(); p.f == nil {
		return false
	}
	least, most := int32(-128), int32(255)
	if unsafe.Sizeof(T(0)) == 2 {
		least, most = 0, 0 // so that products, and sums at a scale of 15 bits more, are at most 2^30
	}
	for _, z := range []int32{p.q.ZeroA, p.q.ZeroB} {
		if z < least || z > most {
			return false
		}
	}
	p.q.Result, ok = simd.NewScaling(m.M, -m.Shift)
	return ok
}

// Run writes the results of a and b.
func (p *BinaryQ[T]) Run(dst, a, b []T) { p.Rows(dst, a, b, len(dst), 0, 0, 0) }

// Rows writes results of rows of n codes side by side: those of the operands lie stepA and stepB codes apart, and of the operand that is single (1 for
// a, 2 for b, 0 for neither) they have one code.
func (p *BinaryQ[T]) Rows(dst, a, b []T, n, stepA, stepB, single int) {
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

// RunUnary writes the results of a where no second operand counts.
func (p *BinaryQ[T]) RunUnary(dst, a []T) { p.Run(dst, a, a) }

// words are codes of 16 bits as such.
func words[T QuantInt](v []T) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// codeBits are the bits of codes of 8 bits.
func codeBits[T QuantInt](v []T) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
