package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Numbers of libmTanh and of libmElu, in the order of their table.
var tanhNumbers = []uint32{
	0x80000000,                // the sign
	0x7fffffff,                // all but the sign
	math.Float32bits(9.1),     // from which tanh is 1
	math.Float32bits(18),      // and e^-x - 1 is -1
	math.Float32bits(1),       //
	math.Float32bits(0.5),     //
	math.Float32bits(tanhInv), // 1/ln 2
	math.Float32bits(-2.0109921195e-07), math.Float32bits(4.0082177293e-06), math.Float32bits(-7.9365076090e-05),
	// of the polynomial, the last first
	math.Float32bits(1.5873016091e-03), math.Float32bits(-3.3333335072e-02),
	math.Float32bits(3), math.Float32bits(6), math.Float32bits(2),
	1,
}

const (
	tanhSign = iota
	tanhNoSign
	tanhTop
	tanhEluTop
	tanhOne
	tanhHalf
	tanhInvLn2
	tanhQ5
	tanhQ4
	tanhQ3
	tanhQ2
	tanhQ1
	tanhThree
	tanhSix
	tanhTwo
	tanhStep
)

// 1/ln 2 and the parts of ln 2 of Expm1 of package libm.
const tanhInv, tanhLn2hi, tanhLn2lo = float32(1.4426950216), float32(6.9313812256e-01), float32(9.0580006145e-06)

// expm1Rows are what expm1 looks up by the multiple k of ln 2 in its argument: for each k the
// multiple in two parts, then what is added to the rest, the power of two that multiplies that,
// and what is added at last.
func expm1Rows(ks [32]int) (rows [5][32]float32) {
	for i, k := range ks {
		power := float32(math.Ldexp(1, k))
		rows[0][i], rows[1][i], rows[3][i] = float32(k)*tanhLn2hi, float32(k)*tanhLn2lo, power
		switch {
		case k > 0:
			rows[2][i] = 1 - 1/power
		case k == -1:
			rows[4][i] = -0.5
		case k < -1:
			rows[2][i], rows[4][i] = 1, -1
		}
	}
	return rows
}

// expm1Data writes such a table, and returns where it is.
func (a *asm) expm1Data(name string, ks [32]int) operand.Mem {
	table := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for r, row := range expm1Rows(ks) {
		for i, v := range row {
			a.AddDatum(128*r+4*i, operand.U32(math.Float32bits(v)))
		}
	}
	return table
}

// libmTanh writes Tanh of package libm: 1 - 2/(e^2a - 1 + 2) or, for a = |x| below 1, -t/(t+2) with
// t = e^-2a - 1. The branches of Expm1 differ in constants, which are looked up here, so that the
// code does not branch. From k = 23 on, Expm1 adds in another order. Its bits do not reach the
// result, since results beyond the limit are 1 as well.
func (a *asm) libmTanh() {
	table := a.StaticGlobal("libmTanh")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range tanhNumbers {
		a.AddDatum(4*i, operand.U32(v))
	}
	// k is 0 to -3 below 1, and from 3 on above.
	var ks [32]int
	for i := range ks {
		if ks[i] = i - 1; i < 4 {
			ks[i] = -i
		}
	}
	rows := a.expm1Data("libmTanhRows", ks)
	a.libmElu(table)
	a.function("libmTanhAVX512", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	e := a.expm1(table, rows)
	num, top := e.num, a.ZMM()
	a.VBROADCASTSS(num(tanhTop), top)
	a.chains("numbers", n, 16, 2, func(off, chain int, mask reg.Register) {
		big, small := maskRegs[2+2*chain], maskRegs[3+2*chain]
		x, abs := a.ZMM(), a.ZMM()
		a.loadFloats(at(src, off), mask, x)
		a.VPANDD_BCST(num(tanhNoSign), x, abs)
		a.VMINPS(abs, top, abs)                               // NaN stays such
		a.VCMPPS_BCST(operand.U8(29), num(tanhOne), abs, big) // at least 1
		a.KNOTW(big, small)
		// y = 2a or -2a.
		a.VADDPS(abs, abs, abs)
		k, y := e.multiple(abs), abs
		a.VPADDD_BCST(num(tanhStep), k, big, k)
		a.VPXORD_BCST(num(tanhSign), y, small, y)
		t := e.of(y, k)
		// 1 - 2/(t+2), or -t/(t+2).
		d, one := a.ZMM(), a.ZMM()
		a.VADDPS_BCST(num(tanhTwo), t, d)
		a.VBROADCASTSS(num(tanhTwo), big, t)
		a.VBROADCASTSS_Z(num(tanhOne), big, one)
		a.VDIVPS(d, t, t)
		a.VSUBPS(t, one, t)
		a.VPTERNLOGD_BCST(operand.U8(0xf8), num(tanhSign), x, t) // t or the sign of x
		a.storeFloats(t, mask, at(dst, off))
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// expm1 computes Expm1 of package libm.
type expm1 struct {
	a    *asm
	num  func(i int) operand.Mem
	rows [5][2]reg.VecVirtual
}

// expm1 loads the rows of a table.
func (a *asm) expm1(table, rows operand.Mem) *expm1 {
	p, q := a.GP64(), a.GP64()
	a.LEAQ(table, p)
	a.LEAQ(rows, q)
	e := &expm1{a: a, num: func(i int) operand.Mem { return at(p, 4*i) }}
	for r := range e.rows {
		for h := range e.rows[r] {
			e.rows[r][h] = a.ZMM()
			a.VMOVUPS(at(q, 128*r+64*h), e.rows[r][h])
		}
	}
	return e
}

// multiple is x/ln 2, rounded, for x that is not negative.
func (e *expm1) multiple(x reg.VecVirtual) reg.VecVirtual {
	a, k := e.a, e.a.ZMM()
	a.VMULPS_BCST(e.num(tanhInvLn2), x, k)
	a.VADDPS_BCST(e.num(tanhHalf), k, k)
	a.VCVTTPS2DQ(k, k)
	return k
}

// of computes e^y - 1; k is the column of the rows. y changes.
func (e *expm1) of(y, k reg.VecVirtual) reg.VecVirtual {
	a, num := e.a, e.num
	pick := func(row int) reg.VecVirtual {
		v := a.ZMM()
		a.VMOVDQA32(k, v)
		a.VPERMI2PS(e.rows[row][1], e.rows[row][0], v)
		return v
	}
	hi, lo, c := pick(0), pick(1), a.ZMM()
	a.VSUBPS(hi, y, hi)
	a.VSUBPS(lo, hi, y)
	a.VSUBPS(y, hi, c)
	a.VSUBPS(lo, c, c)
	hfx, hxs, r, t, d, f := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.VMULPS_BCST(num(tanhHalf), y, hfx)
	a.VMULPS(hfx, y, hxs)
	a.VMULPS_BCST(num(tanhQ5), hxs, r)
	for _, q := range []int{tanhQ4, tanhQ3, tanhQ2, tanhQ1, tanhOne} {
		a.VADDPS_BCST(num(q), r, r)
		if q != tanhOne {
			a.VMULPS(hxs, r, r)
		}
	}
	three, six := a.ZMM(), a.ZMM()
	a.VBROADCASTSS(num(tanhThree), three)
	a.VMULPS(hfx, r, t)
	a.VSUBPS(t, three, t)
	a.VMULPS(t, y, d)
	a.VBROADCASTSS(num(tanhSix), six)
	a.VSUBPS(d, six, d)
	a.VSUBPS(t, r, f)
	a.VDIVPS(d, f, f)
	a.VMULPS(hxs, f, f)
	// (y·(f-c) - c) - hxs; c is 0 where k is, where that is y·f - hxs.
	a.VSUBPS(c, f, f)
	a.VMULPS(y, f, f)
	a.VSUBPS(c, f, f)
	a.VSUBPS(hxs, f, f)
	// 2^k·(y-f), with what makes it e^y - 1 added before, after, or both: products with powers of
	// two are exact.
	a.VSUBPS(f, y, y)
	a.VADDPS(pick(2), y, y)
	power := pick(3)
	a.VFMADD213PS(pick(4), y, power)
	return power
}

// libmElu writes e^x - 1 of package libm where x is negative, and x elsewhere. What is cut off
// has -1 for a result as well.
func (a *asm) libmElu(table operand.Mem) {
	var ks [32]int
	for i := range ks {
		ks[i] = -i
	}
	rows := a.expm1Data("libmEluRows", ks)
	a.function("libmEluAVX512", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	e := a.expm1(table, rows)
	a.chains("numbers", n, 16, 2, func(off, chain int, mask reg.Register) {
		negative := maskRegs[2+chain]
		x, y, zero := a.ZMM(), a.ZMM(), a.ZMM()
		a.loadFloats(at(src, off), mask, x)
		a.VPXORD(zero, zero, zero)
		a.VCMPPS(operand.U8(17), zero, x, negative)
		a.VPANDD_BCST(e.num(tanhNoSign), x, y)
		a.VMINPS_BCST(e.num(tanhEluTop), y, y)
		k := e.multiple(y)
		a.VPXORD_BCST(e.num(tanhSign), y, y)
		a.VMOVAPS(e.of(y, k), negative, x)
		a.storeFloats(x, mask, at(dst, off))
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
