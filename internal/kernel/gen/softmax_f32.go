package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowSoftmax writes the softmax of rows of 16 values and more that lie side by side: exponentials
// less the largest of a row, as expSum has them, times the inverse of their sum in float32. What
// would be less than the least normal number is zero: products that are such take a hundred times
// as long on some processors. The last register of a row has its last 16 values, of which the
// first ones may be those of the register before: what is stored by a mask cannot be read soon.
func rowSoftmax(a *asm) {
	a.function("softmaxRowsAVX512", "func(dst, src *float32, rows, n int, t *SingleTable)")
	dst, src := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64())
	c := a.wide()
	least := c.load(singleNormal)
	rows, n := a.Load(a.Param("rows"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	many, bits, twice := a.GP64(), a.GP64(), a.GP64()
	a.LEAQ(operand.Mem{Base: n, Disp: -1}, many)
	a.SHRQ(operand.U8(4), many)
	a.LEAQ(operand.Mem{Base: many, Disp: 1}, twice)
	a.SHLQ(operand.U8(4), twice)
	a.SUBQ(n, twice) // values that two registers have
	a.MOVQ(operand.I32(0xffff), bits)
	a.SHLXQ(twice, bits, bits)
	a.KMOVW(bits.As32(), reg.K1)
	normal, smallest := a.GP32(), a.ZMM()
	a.MOVL(operand.U32(1<<23), normal) // the bits of the least normal number
	a.VPBROADCASTD(normal, smallest)
	left, from, to := a.GP64(), a.GP64(), a.GP64()
	// each runs body for the registers of a row before the last one.
	each := func(name string, body func()) {
		a.MOVQ(src, from)
		a.MOVQ(dst, to)
		a.MOVQ(many, left)
		a.TESTQ(left, left)
		a.JZ(operand.LabelRef(name + "_end"))
		a.Label(name)
		body()
		a.ADDQ(operand.U8(64), from)
		a.ADDQ(operand.U8(64), to)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
		a.Label(name + "_end")
	}
	top, sum, total, last := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	exp := func(y reg.VecVirtual) reg.VecVirtual {
		a.VSUBPS(top, y, y)
		a.VCMPPS(operand.U8(notLess), least, y, reg.K2)
		a.VMOVAPS_Z(y, reg.K2, y)
		e := c.exp(y)
		a.VMOVAPS_Z(e, reg.K2, e)
		return e
	}
	a.Label("row")
	a.VMOVUPS(operand.Mem{Base: src, Index: n, Scale: 4, Disp: -64}, last)
	a.VMOVAPS(last, top)
	each("largest", func() { a.VMAXPS(at(from, 0), top, top) })
	a.inAll(top, a.VMAXPS)
	a.VPXORD(sum, sum, sum)
	a.VPXORD(total, total, total)
	each("exponentials", func() {
		y := a.ZMM()
		a.VMOVUPS(at(from, 0), y)
		e := exp(y)
		a.VMOVUPS(e, at(to, 0))
		a.VADDPS(e, sum, sum)
		a.TESTQ(operand.U32(15), left)
		a.JNZ(operand.LabelRef("few"))
		a.VADDPS(sum, total, total) // sums of 16, so that what is rounded stays small
		a.VPXORD(sum, sum, sum)
		a.Label("few")
	})
	a.VADDPS(total, sum, sum)
	a.VMOVAPS(exp(last), last)
	a.VADDPS(last, sum, reg.K1, sum)
	a.inAll(sum, a.VADDPS)
	// exponentials below it have results below the least normal number
	a.VMULPS(sum, smallest, total)
	a.VDIVPS(sum, c.one, sum)
	result := func(y reg.VecVirtual) {
		a.VCMPPS(operand.U8(notLess), total, y, reg.K2)
		a.VMULPS_Z(y, sum, reg.K2, y)
	}
	each("results", func() {
		y := a.ZMM()
		a.VMOVUPS(at(to, 0), y)
		result(y)
		a.VMOVUPS(y, at(to, 0))
	})
	result(last)
	a.VMOVUPS(last, operand.Mem{Base: dst, Index: n, Scale: 4, Disp: -64})
	a.LEAQ(operand.Mem{Base: src, Index: n, Scale: 4}, src)
	a.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// inAll gives every number of a register what f makes of all of them.
func (a *asm) inAll(x reg.VecVirtual, f func(...operand.Op)) {
	for _, lanes := range []uint8{0x4e, 0xb1} { // halves, then quarters
		y := a.ZMM()
		a.VSHUFF64X2(operand.U8(lanes), x, x, y)
		f(y, x, x)
	}
	for _, places := range []uint8{0x4e, 0xb1} {
		y := a.ZMM()
		a.VPERMILPS(operand.U8(places), x, y)
		f(y, x, x)
	}
}
