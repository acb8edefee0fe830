package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fourBitsNarrow is fourBits for 16 columns at a time. Codes get an offset of 8, and a fused
// product with the scale takes 8 times the scale off again: it is exact before it is rounded, as
// the product with the code is. Eight times a scale is finite.
func (a *asm) fourBitsNarrow() {
	const (
		lowest = 32 * iota
		offsets
		minusEight
	)
	table := a.StaticGlobal("fourBitsNarrow")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range []uint32{0xf, 0x88888888, math.Float32bits(-8)} {
		for k := range 8 {
			a.AddDatum(32*i+4*k, operand.U32(v))
		}
	}
	a.function("fourBitsAVX2", "func(y, x *float32, w *uint32, scales *float32, groups, blocks int, values *float32)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	y, w, scales := load("y"), load("w"), load("scales")
	numbers, part := a.GP64(), a.GP64()
	a.LEAQ(table, numbers)
	a.MOVQ(operand.U32(4), part)
	code := a.YMM()
	a.VMOVDQU(at(numbers, lowest), code)
	x, pw, ps, left, blocks := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	var sum, words, scale, less [2]reg.VecVirtual
	for i := range sum {
		sum[i], words[i], scale[i], less[i] = a.YMM(), a.YMM(), a.YMM(), a.YMM()
	}
	a.Label("part")
	for i := range sum {
		a.VXORPS(sum[i], sum[i], sum[i])
	}
	a.Load(a.Param("x"), x)
	a.Load(a.Param("blocks"), blocks)
	a.MOVQ(w, pw)
	a.MOVQ(scales, ps)
	a.Label("block")
	for i := range scale {
		a.VMOVUPS(at(ps, 32*i), scale[i])
		a.VMULPS(at(numbers, minusEight), scale[i], less[i])
	}
	a.Load(a.Param("groups"), left)
	a.Label("group")
	for i := range words {
		a.VMOVDQU(at(pw, 32*i), words[i])
		a.VPXOR(at(numbers, offsets), words[i], words[i])
	}
	for step := range 8 {
		number := a.YMM()
		a.VBROADCASTSS(at(x, 4*step), number)
		for i := range words {
			v := a.YMM()
			a.VPAND(code, words[i], v)
			a.VCVTDQ2PS(v, v)
			a.VFMADD213PS(less[i], scale[i], v)
			a.VMULPS(number, v, v)
			a.VADDPS(v, sum[i], sum[i])
			if step < 7 {
				a.VPSRLD(operand.U8(4), words[i], words[i])
			}
		}
	}
	a.ADDQ(operand.U8(32), x)
	a.ADDQ(operand.U32(256), pw)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("group"))
	a.ADDQ(operand.U32(256), ps)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	for i := range sum {
		a.VMOVUPS(sum[i], at(y, 32*i))
	}
	for _, p := range []reg.Register{y, w, scales} {
		a.ADDQ(operand.U8(64), p)
	}
	a.DECQ(part)
	a.JNZ(operand.LabelRef("part"))
	a.VZEROUPPER()
	a.RET()
}
