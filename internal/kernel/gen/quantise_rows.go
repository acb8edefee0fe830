package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantiseRows writes codes of 8 bits of rows of n numbers, each with the scale and the zero
// point of its own range, which has zero in it, and returns how many rows it did: it stops at one
// whose range is nothing, or not finite, or whose scale has no inverse. Codes are less than 256
// by their scale, rounded with ties away from zero, plus the zero point and plus. Those of even
// rows have a range that is the same on both sides of zero, where their zero point is.
func (a *asm) quantiseRows(even bool) {
	name := "quantiseRowsAVX512"
	if even {
		name = "quantiseEvenRowsAVX512"
	}
	a.function(name, "func(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)")
	dst, src := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64())
	rows, n := a.Load(a.Param("rows"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	scales, zeros := a.Load(a.Param("scales"), a.GP64()), a.Load(a.Param("zeros"), a.GP64())
	done, p, left := a.GP64(), a.GP64(), a.GP64()
	a.XORQ(done, done)
	// see awayMasks
	by := codesBy{sign: a.number512(1 << 31), half: a.number512(0x3effffff), mul: a.ZMM()}
	rowScale := a.rowScale
	if even {
		by.lo, by.hi, by.zero = a.number512(math.Float32bits(-127)), a.number512(math.Float32bits(127)), a.spread512("plus")
		rowScale = a.evenScale
	}
	scaled := rowScale(&by)
	a.Label("row")
	least, most := a.ZMM(), a.ZMM()
	a.VPXORD(least, least, least)
	a.VPXORD(most, most, most)
	a.KXORW(reg.K3, reg.K3, reg.K3)
	a.MOVQ(src, p)
	a.MOVQ(n, left)
	a.masked("extent", left, 16, func(mask reg.Register) {
		x := a.ZMM()
		a.loadFloats(at(p, 0), mask, x)
		a.VMINPS(x, least, least)
		a.VMAXPS(x, most, most)
		a.VCMPPS(operand.U8(3), x, x, reg.K2)
		a.KORW(reg.K2, reg.K3, reg.K3)
	}, step{p, 64})
	a.KORTESTW(reg.K3, reg.K3)
	a.JNE(operand.LabelRef("stop"))
	a.extreme(least, a.VMINPS)
	a.extreme(most, a.VMAXPS)
	lo, hi, width, none := least.AsX(), most.AsX(), a.XMM(), a.XMM()
	a.VSUBSS(lo, hi, width)
	a.VXORPS(none, none, none)
	a.VUCOMISS(none, width)
	a.JE(operand.LabelRef("stop"))
	a.stopInfinite(width)
	scaled(lo, hi, width, scales, zeros)
	a.MOVQ(n, left)
	a.MOVQ(dst, p)
	at0 := a.GP64()
	a.MOVQ(src, at0)
	a.masked("codes", left, 16, func(mask reg.Register) {
		a.codesAway(at0, p, mask, &by)
	}, step{at0, 64}, step{p, 16})
	a.ADDQ(n, dst)
	a.LEAQ(operand.Mem{Base: src, Index: n, Scale: 4}, src)
	a.ADDQ(operand.U8(4), scales)
	a.ADDQ(operand.U8(4), zeros)
	a.INCQ(done)
	a.CMPQ(done, rows)
	a.JLT(operand.LabelRef("row"))
	a.Label("stop")
	a.Store(done, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// stopInfinite ends the rows where x is infinite or no number.
func (a *asm) stopInfinite(x reg.Register) {
	y := a.XMM()
	a.VSUBSS(x, x, y)
	a.VUCOMISS(y, y)
	a.JP(operand.LabelRef("stop"))
}

// rowScaler writes the scale and the zero point of a row by the ends and the width of its range,
// and what its codes are made by.
type rowScaler func(lo, hi, width, scales, zeros reg.Register)

// evenScale is the rowScaler of even rows: their scale is the 127th part of what is farthest from
// zero.
func (a *asm) evenScale(by *codesBy) rowScaler {
	parts := a.number512(math.Float32bits(127)).AsX()
	return func(lo, hi, _, scales, zeros reg.Register) {
		scale, inverse := a.XMM(), a.XMM()
		a.VXORPS(by.sign.(reg.VecVirtual).AsX(), lo, lo)
		a.VMAXSS(lo, hi, hi)
		a.VDIVSS(hi, parts, inverse)
		a.stopInfinite(inverse)
		a.VDIVSS(parts, hi, scale)
		a.VMOVSS(scale, at(scales, 0))
		a.MOVL(operand.U32(0), at(zeros, 0))
		a.VBROADCASTSS(inverse, by.mul)
	}
}

// rowScale is the rowScaler of other rows.
func (a *asm) rowScale(by *codesBy) rowScaler {
	double := func(v float64) reg.VecVirtual {
		x, g := a.XMM(), a.GP64()
		a.MOVQ(operand.U64(math.Float64bits(v)), g)
		a.MOVQ(g, x)
		return x
	}
	steps, first, middle, last := double(255), double(-128), double(128), double(127)
	signs, halves := double(math.Copysign(0, -1)), double(math.Nextafter(0.5, 0))
	return func(lo, hi, width, scales, zeros reg.Register) {
		// The scale from which the zero point comes is not rounded yet.
		fine, low, high, other := a.XMM(), a.XMM(), a.XMM(), a.XMM()
		a.VCVTSS2SD(width, width, fine)
		a.VDIVSD(steps, fine, fine)
		a.VCVTSS2SD(lo, lo, low)
		a.VCVTSS2SD(hi, hi, high)
		a.VDIVSD(fine, low, low)
		a.VDIVSD(fine, high, high)
		// Of both ends, -128 - low and 127 - high, that whose terms are smaller.
		size := a.XMM()
		a.VSUBSD(low, middle, size)
		a.VSUBSD(low, first, low)
		a.VADDSD(last, high, other)
		a.VSUBSD(high, last, high)
		a.VCMPSD(operand.U8(13), other, size, reg.K2)
		a.VMOVSD(high, low, reg.K2, low)
		a.VANDPD(signs, low, other)
		a.VORPD(halves, other, other)
		a.VADDSD(other, low, low)
		zero, bound := a.GP32(), a.GP32()
		a.VCVTTSD2SI(low, zero)
		a.MOVL(operand.I32(-128), bound)
		a.CMPL(zero, bound)
		a.CMOVLLT(bound, zero)
		a.MOVL(operand.I32(127), bound)
		a.CMPL(zero, bound)
		a.CMOVLGT(bound, zero)
		scale, inverse, one := a.XMM(), a.XMM(), a.XMM()
		a.VCVTSD2SS(fine, fine, scale)
		g := a.GP32()
		a.MOVL(operand.U32(math.Float32bits(1)), g)
		a.MOVD(g, one)
		a.VDIVSS(scale, one, inverse)
		a.stopInfinite(inverse)
		a.VMOVSS(scale, at(scales, 0))
		a.MOVL(zero, at(zeros, 0))
		spread := func(v int32) reg.VecVirtual {
			x, z := a.XMM(), a.ZMM()
			a.MOVL(operand.I32(v), bound)
			a.SUBL(zero, bound)
			a.VXORPS(x, x, x)
			a.VCVTSI2SSL(bound, x, x)
			a.VBROADCASTSS(x, z)
			return z
		}
		by.lo, by.hi = spread(-128), spread(127)
		away := a.ZMM()
		a.VBROADCASTSS(inverse, by.mul)
		a.Load(a.Param("plus"), bound)
		a.ADDL(zero, bound)
		a.VPBROADCASTD(bound, away)
		by.zero = away
	}
}

// extreme leaves the least or the most of 16 numbers in the first.
func (a *asm) extreme(x reg.VecVirtual, of func(...operand.Op)) {
	y := a.ZMM()
	a.VEXTRACTF64X4(operand.U8(1), x, y.AsY())
	of(y.AsY(), x.AsY(), x.AsY())
	a.VEXTRACTF128(operand.U8(1), x.AsY(), y.AsX())
	of(y.AsX(), x.AsX(), x.AsX())
	for _, order := range []uint8{0x4e, 0xb1} {
		a.VPERMILPS(operand.U8(order), x.AsX(), y.AsX())
		of(y.AsX(), x.AsX(), x.AsX())
	}
}
