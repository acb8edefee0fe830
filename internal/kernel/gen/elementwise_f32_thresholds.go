package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// thresholds writes functions of float32 that look at signs and limits; NaN is as in a
// comparison.
func thresholds(a *asm) {
	word := func(bits uint32) reg.VecVirtual {
		v, g, low := a.YMM(), a.GP32(), a.XMM()
		a.MOVL(operand.U32(bits), g)
		a.VMOVD(g, low)
		a.VPBROADCASTD(low, v)
		return v
	}
	var sign, one, zero, first, second reg.VecVirtual
	// x/(1+|x|)
	a.threshold("softsign", "", func() { sign, one = word(1<<31), word(0x3f800000) }, func(x reg.VecVirtual) {
		size := a.YMM()
		a.VANDNPS(x, sign, size)
		a.VADDPS(one, size, size)
		a.VDIVPS(size, x, x)
	})
	// 1 and -1 for what is above and below zero
	a.threshold("signum", "", func() { sign, one, zero = word(1<<31), word(0x3f800000), word(0) }, func(x reg.VecVirtual) {
		unit, other := a.YMM(), a.YMM()
		a.VANDPS(sign, x, unit)
		a.VORPS(one, unit, unit)
		a.VCMPPS(operand.U8(12), zero, x, other)
		a.VBLENDVPS(other, unit, x, x)
	})
	// x above a limit, zero elsewhere
	a.threshold("above", "limit", func() { first = a.spreadParam("limit") }, func(x reg.VecVirtual) {
		more := a.YMM()
		a.VCMPPS(operand.U8(30), first, x, more)
		a.VANDPS(more, x, x)
	})
	// What is above the limit less the bias, what is below its negative with the bias, and zero
	// between them
	a.threshold("shrink", "limit, bias", func() {
		first, second, sign = a.spreadParam("limit"), a.spreadParam("bias"), word(1<<31)
		zero = a.YMM()
		a.VXORPS(sign, first, zero) // the negative limit
	}, func(x reg.VecVirtual) {
		less, more, y := a.YMM(), a.YMM(), a.YMM()
		a.VCMPPS(operand.U8(17), zero, x, less)
		a.VCMPPS(operand.U8(30), first, x, more)
		a.VSUBPS(second, x, y)
		a.VANDPS(more, y, y)
		a.VADDPS(second, x, x)
		a.VBLENDVPS(less, x, y, x)
	})
}

// threshold writes f of n values, a multiple of 8.
func (a *asm) threshold(name, params string, begin func(), f func(x reg.VecVirtual)) {
	if params != "" {
		params = ", " + params + " float32"
	}
	a.function(name+"AVX2", "func(dst, src *float32, n int"+params+")")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	begin()
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VMOVUPS(at(src, off), x)
		f(x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}
