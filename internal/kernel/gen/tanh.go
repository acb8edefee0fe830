package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Numbers of libmTanh, in the order of its table.
var tanhNumbers = []uint32{
	0x80000000,                                                             // the sign
	math.Float32bits(22),                                                   // from which the result is 1
	math.Float32bits(1),                                                    //
	math.Float32bits(0.5),                                                  //
	math.Float32bits(1.4426950216),                                         // 1/ln 2
	math.Float32bits(6.9313812256e-01), math.Float32bits(9.0580006145e-06), // ln 2
	math.Float32bits(-2.0109921195e-07), math.Float32bits(4.0082177293e-06), math.Float32bits(-7.9365076090e-05),
	math.Float32bits(1.5873016091e-03), math.Float32bits(-3.3333335072e-02), // of the polynomial, the last first
	math.Float32bits(3), math.Float32bits(6), math.Float32bits(2),
	0x3eb17218, // ln 2 / 2
	0x3f851592, // 1.5 ln 2
	0xffffffff, // -1
	0x3f800000, 0x01000000,
	0x7f, 23,
	0x7fffffff, // all but the sign
}

const (
	tanhSign = iota
	tanhTop
	tanhOne
	tanhHalf
	tanhInvLn2
	tanhLn2hi
	tanhLn2lo
	tanhQ5
	tanhQ4
	tanhQ3
	tanhQ2
	tanhQ1
	tanhThree
	tanhSix
	tanhTwo
	tanhSmall
	tanhMiddle
	tanhMinus
	tanhExponent
	tanhUlp
	tanhBias
	tanhFar
	tanhNoSign
)

// libmTanh writes Tanh of package libm, branch by branch: 1 - 2/(e^2a - 1 + 2) or, for a = |x| below 1, -t/(t+2) with t =
// e^-2a - 1. What is cut off at 22 has 1 for a result as well.
func (a *asm) libmTanh() {
	table := a.StaticGlobal("libmTanh")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range tanhNumbers {
		a.AddDatum(4*i, operand.U32(v))
	}
	a.libmElu(table)
	a.function("libmTanhAVX512", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p := a.GP64()
	a.LEAQ(table, p)
	num := func(i int) operand.Mem { return at(p, 4*i) }
	small, middle, big, far, none := reg.K2, reg.K3, reg.K4, reg.K5, reg.K6
	a.masked("numbers", n, 16, func(mask reg.Register) {
		x, abs, y := a.ZMM(), a.ZMM(), a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(src, 0), mask, x)
		} else {
			a.VMOVUPS(at(src, 0), x)
		}
		a.VCMPPS(operand.U8(3), x, x, none)
		sign := a.ZMM()
		a.VPANDD_BCST(num(tanhSign), x, sign)
		a.VPXORD(sign, x, abs)
		a.VMINPS_BCST(num(tanhTop), abs, abs)
		a.VCMPPS_BCST(operand.U8(29), num(tanhOne), abs, big) // at least 1
		// y = 2a or -2a.
		a.VADDPS(abs, abs, abs)
		a.VPXORD_BCST(num(tanhSign), abs, y)
		a.VMOVAPS(abs, big, y)
		a.VCMPPS_BCST(operand.U8(18), num(tanhSmall), abs, small)
		a.VCMPPS_BCST(operand.U8(17), num(tanhMiddle), abs, middle)
		v := a.expm1(num, y, small, middle)
		k, e, off, up, one, res := v.k, v.e, v.off, v.up, v.one, v.res
		y = v.y
		// k from 2 to 22: 2^k·((1 - 2^-k) - (e-y)).
		part := a.ZMM()
		a.VPBROADCASTD(num(tanhUlp), part)
		a.VPSRLVD(k, part, part)
		bits := a.ZMM()
		a.VPBROADCASTD(num(tanhExponent), bits)
		a.VPSUBD(part, bits, part)
		a.VSUBPS(off, part, part)
		a.VPADDD(up, part, part)
		a.VMOVAPS(part, big, res)
		// k from 23 on: 2^k·(y - (e + 2^-k) + 1).
		a.VPCMPD_BCST(operand.U8(5), num(tanhFar), k, far)
		a.VPBROADCASTD(num(tanhBias), part)
		a.VPSUBD(k, part, part)
		a.VPSLLD(operand.U8(23), part, part)
		a.VADDPS(part, e, part)
		a.VSUBPS(part, y, part)
		a.VADDPS(one, part, part)
		a.VPADDD(up, part, part)
		a.VMOVAPS(part, far, res)
		// 1 - 2/(t+2), or -t/(t+2).
		two, above, d := a.ZMM(), a.ZMM(), a.ZMM()
		a.VBROADCASTSS(num(tanhTwo), two)
		a.VADDPS(two, res, d)
		a.VPXORD_BCST(num(tanhSign), res, res)
		a.VMOVAPS(two, big, res)
		a.VDIVPS(d, res, res)
		a.VSUBPS(res, one, above)
		a.VMOVAPS(above, big, res)
		a.VPORD(sign, res, res)
		a.VMOVAPS(x, none, res)
		a.storeFloats(res, mask, at(dst, 0))
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// expm1Parts are numbers of Expm1 of package libm: k and the rest y of the argument, e, off = e-y, 2^k as what is added to an exponent, 1, and the
// result where k is not above 0.
type expm1Parts struct{ k, y, e, off, up, one, res reg.VecVirtual }

// expm1 computes e^y - 1 where y is not positive, and what others need; y changes. small chooses sizes of up to ln 2 / 2, middle those below
// 1.5 ln 2.
func (a *asm) expm1(num func(i int) operand.Mem, y reg.VecVirtual, small, middle reg.OpmaskPhysical) expm1Parts {
	k, t, c, hi, lo := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	// k = y/ln 2, rounded; -1 in the middle, 0 for small ones.
	half := a.ZMM()
	a.VPANDD_BCST(num(tanhSign), y, half)
	a.VPORD_BCST(num(tanhHalf), half, half)
	a.VMULPS_BCST(num(tanhInvLn2), y, t)
	a.VADDPS(half, t, t)
	a.VCVTTPS2DQ(t, k)
	a.VPBROADCASTD(num(tanhMinus), middle, k)
	a.VPXORD(k, k, small, k)
	a.VCVTDQ2PS(k, t)
	a.VMULPS_BCST(num(tanhLn2hi), t, hi)
	a.VSUBPS(hi, y, hi)
	a.VMULPS_BCST(num(tanhLn2lo), t, lo)
	a.VSUBPS(lo, hi, y)
	a.VSUBPS(y, hi, c)
	a.VSUBPS(lo, c, c)
	hfx, hxs, r, e, d := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.VMULPS_BCST(num(tanhHalf), y, hfx)
	a.VMULPS(hfx, y, hxs)
	a.VMULPS_BCST(num(tanhQ5), hxs, r)
	for _, q := range []int{tanhQ4, tanhQ3, tanhQ2, tanhQ1, tanhOne} {
		a.VADDPS_BCST(num(q), r, r)
		if q != tanhOne {
			a.VMULPS(hxs, r, r)
		}
	}
	three := a.ZMM()
	a.VBROADCASTSS(num(tanhThree), three)
	a.VMULPS(hfx, r, t)
	a.VSUBPS(t, three, t)
	a.VMULPS(t, y, d)
	six := a.ZMM()
	a.VBROADCASTSS(num(tanhSix), six)
	a.VSUBPS(d, six, d)
	a.VSUBPS(t, r, e)
	a.VDIVPS(d, e, e)
	a.VMULPS(hxs, e, e)
	// Results for k = 0, then for others.
	zero := a.ZMM()
	a.VMULPS(e, y, zero)
	a.VSUBPS(hxs, zero, zero)
	a.VSUBPS(zero, y, zero)
	a.VSUBPS(c, e, e)
	a.VMULPS(y, e, e)
	a.VSUBPS(c, e, e)
	a.VSUBPS(hxs, e, e)
	one, up := a.ZMM(), a.ZMM()
	a.VBROADCASTSS(num(tanhOne), one)
	a.VPSLLD(operand.U8(23), k, up)
	// k = -1: (y-e)/2 - 1/2.
	minus := a.ZMM()
	a.VSUBPS(e, y, minus)
	a.VMULPS_BCST(num(tanhHalf), minus, minus)
	a.VSUBPS_BCST(num(tanhHalf), minus, minus)
	// k below that: 2^k·(1 - (e-y)) - 1.
	res, off := a.ZMM(), a.ZMM()
	a.VSUBPS(y, e, off)
	a.VSUBPS(off, one, res)
	a.VPADDD(up, res, res)
	a.VSUBPS(one, res, res)
	a.VMOVAPS(minus, middle, res)
	a.VMOVAPS(zero, small, res)
	return expm1Parts{k, y, e, off, up, one, res}
}

// libmElu writes e^x - 1 of package libm where x is negative, and x elsewhere. What is cut off at -22 has -1 for a result as well.
func (a *asm) libmElu(table operand.Mem) {
	a.function("libmEluAVX512", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p := a.GP64()
	a.LEAQ(table, p)
	num := func(i int) operand.Mem { return at(p, 4*i) }
	small, middle, negative := reg.K2, reg.K3, reg.K4
	a.masked("numbers", n, 16, func(mask reg.Register) {
		x, size, y, zero := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(src, 0), mask, x)
		} else {
			a.VMOVUPS(at(src, 0), x)
		}
		a.VPXORD(zero, zero, zero)
		a.VCMPPS(operand.U8(17), zero, x, negative)
		a.VPANDD_BCST(num(tanhNoSign), x, size)
		a.VMINPS_BCST(num(tanhTop), size, size)
		a.VPXORD_BCST(num(tanhSign), size, y)
		a.VCMPPS_BCST(operand.U8(18), num(tanhSmall), size, small)
		a.VCMPPS_BCST(operand.U8(17), num(tanhMiddle), size, middle)
		a.VMOVAPS(a.expm1(num, y, small, middle).res, negative, x)
		a.storeFloats(x, mask, at(dst, 0))
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
