package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ln2Rest is math.Ln2, exactly, less its float64.
const ln2Rest = 2.3190468138462996e-17

// expTerms are the coefficients of Taylor's series of e^r from r¹³ down to r².
func expTerms() (c []float64) {
	factorial := 6227020800.0 // 13!
	for i := 13; i >= 2; i-- {
		c = append(c, 1/factorial)
		factorial /= float64(i)
	}
	return c
}

// expDoubles writes the exponentials of n float64 less a shift, and returns their sum. What is
// left of x beside the logarithm of a power of two, r, at most 0.347 in size, goes into Taylor's
// series up to r¹³, whose next term is 4e-18.
func (a *asm) expDoubles() {
	a.function("expDoublesAVX512", "func(dst, src *float64, n int, shift float64) float64")
	dst, src, n := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	low, shift := a.XMM(), a.ZMM()
	a.Load(a.Param("shift"), low)
	a.VBROADCASTSD(low, shift)
	// Beyond this all are infinite or zero, and NaN passes.
	most, least := a.double512(1000), a.double512(-1000)
	perPower, power, rest := a.double512(math.Log2E), a.double512(math.Ln2), a.double512(ln2Rest)
	one := a.double512(1)
	var terms []reg.VecVirtual
	for _, c := range expTerms() {
		terms = append(terms, a.double512(c))
	}
	sum := a.ZMM()
	a.zero(zmm, sum)
	a.masked("values", n, 8, func(mask reg.Register) {
		x, k, p := a.ZMM(), a.ZMM(), a.ZMM()
		if mask != nil {
			a.VMOVUPD_Z(at(src, 0), mask, x)
		} else {
			a.VMOVUPD(at(src, 0), x)
		}
		a.VSUBPD(shift, x, x)
		a.VMINPD(x, most, x)
		a.VMAXPD(x, least, x)
		a.VMULPD(perPower, x, k)
		a.VRNDSCALEPD(operand.U8(8), k, k)
		a.VFNMADD231PD(power, k, x)
		a.VFNMADD231PD(rest, k, x)
		a.VMOVAPD(terms[0], p)
		for _, c := range terms[1:] {
			a.VFMADD213PD(c, x, p)
		}
		// 1 + (r + r²·p), so that only the last sum rounds what counts.
		square := a.ZMM()
		a.VMULPD(x, x, square)
		a.VFMADD213PD(x, square, p)
		a.VADDPD(one, p, p)
		a.VSCALEFPD(k, p, p)
		if mask != nil {
			a.VMOVUPD(p, mask, at(dst, 0))
			a.VADDPD(p, sum, mask, sum)
		} else {
			a.VMOVUPD(p, at(dst, 0))
			a.VADDPD(p, sum, sum)
		}
	}, step{src, 64}, step{dst, 64})
	half, two := a.YMM(), a.XMM()
	a.VEXTRACTF64X4(operand.U8(1), sum, half)
	a.VADDPD(half, sum.AsY(), sum.AsY())
	a.VEXTRACTF128(operand.U8(1), sum.AsY(), two)
	a.VADDPD(two, sum.AsX(), sum.AsX())
	a.VPERMILPD(operand.U8(1), sum.AsX(), two)
	a.VADDPD(two, sum.AsX(), sum.AsX())
	a.Store(sum.AsX(), a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// double512 is a float64 in all lanes.
func (a *asm) double512(v float64) reg.VecVirtual {
	g, z := a.GP64(), a.ZMM()
	a.MOVQ(operand.U64(math.Float64bits(v)), g)
	a.VPBROADCASTQ(g, z)
	return z
}
