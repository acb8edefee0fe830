package kernel

import (
	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// PairQ computes sums, differences or products of two operands of 8-bit codes in vectors.
type PairQ struct {
	f       *simd.Pairs
	kind    simd.PairKind
	swapped bool // the operands change places
	signed  bool
	q       simd.Pair
}

// NewProductQ multiplies codes less their zero points, by m, and adds the zero point of the result; ok is false where
// vectors have no loop for that.
func NewProductQ(signed bool, zeroA, zeroB int32, m fixed.Multiplier, zero, lo, hi int32) (p *PairQ, ok bool) {
	p = &PairQ{kind: simd.PairProduct, signed: signed, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Zero: zero, Lo: lo, Hi: hi}}
	return p, p.finish(m)
}

// NewSumQ adds or subtracts codes less their zero points, moved up by shift, at most 20, and multiplied by mA and mB, one
// of which is a half; the result is multiplied by m and gets its zero point. See [NewProductQ] for ok.
func NewSumQ(signed, subtract bool, shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *PairQ, ok bool) {
	half := fixed.Multiplier{M: 1 << 30}
	p = &PairQ{kind: simd.PairSum, signed: signed, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Shift: int32(shift), Zero: zero, Lo: lo, Hi: hi}}
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
	if p.q.B, ok = simd.NewScaling(mB.M, -mB.Shift); !ok || mA != half || shift < 1 || shift > 20 {
		return nil, false
	}
	return p, p.finish(m)
}

// NewSquareQ is NewSumQ for squares of differences; shift is at most 7, so that they stay below 2^30.
func NewSquareQ(signed bool, shift int, zeroA, zeroB int32, mA, mB, m fixed.Multiplier, zero, lo, hi int32) (p *PairQ, ok bool) {
	if p, ok = NewSumQ(signed, true, shift, zeroA, zeroB, mA, mB, m, zero, lo, hi); !ok || shift > 7 {
		return nil, false
	}
	p.kind = simd.PairSquare // of a difference or of its reverse
	return p, true
}

// NewPReluQ multiplies codes less their zero point by up, where they are negative by codes of slopes less theirs and by down, and adds the
// zero point of the result. See [NewProductQ] for ok.
func NewPReluQ(signed bool, zeroA, zeroB int32, up, down fixed.Multiplier, zero, lo, hi int32) (p *PairQ, ok bool) {
	p = &PairQ{kind: simd.PairPRelu, signed: signed, q: simd.Pair{ZeroA: zeroA, ZeroB: zeroB, Zero: zero, Lo: lo, Hi: hi}}
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

// finish tells whether the loops can do it.
func (p *PairQ) finish(m fixed.Multiplier) (ok bool) {
	if p.f = simd.PairKernels(); p.f == nil {
		return false
	}
	for _, z := range []int32{p.q.ZeroA, p.q.ZeroB} {
		if z < -128 || z > 255 {
			return false
		}
	}
	p.q.Result, ok = simd.NewScaling(m.M, -m.Shift)
	return ok
}

// Run writes the results of the bits a and b.
func (p *PairQ) Run(dst, a, b []uint8) {
	if p.swapped {
		a, b = b, a
	}
	p.f.Combine(p.kind, dst, a, b, &p.q, p.signed)
}
