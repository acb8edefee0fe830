package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fourBits multiplies a row x by 64 columns of codes of 4 bits: of each eight steps a word a
// column, the first step in its lowest bits. Blocks of groups of eight steps have a scale a
// column. A weight is its code's entry of values times the scale, rounded; products and sums are
// rounded apart, in the order of the steps.
func fourBits(a *asm) {
	a.fourBitsNarrow()
	a.function("fourBitsAVX512", "func(y, x *float32, w *uint32, scales *float32, groups, blocks int, values *float32)")
	y := a.Load(a.Param("y"), a.GP64())
	x := a.Load(a.Param("x"), a.GP64())
	w := a.Load(a.Param("w"), a.GP64())
	scales := a.Load(a.Param("scales"), a.GP64())
	groups := a.Load(a.Param("groups"), a.GP64())
	blocks := a.Load(a.Param("blocks"), a.GP64())
	table := a.Load(a.Param("values"), a.GP64())
	values, left := a.ZMM(), a.GP64()
	a.VMOVUPS(at(table, 0), values)
	var sum, scale, words [4]reg.VecVirtual
	for i := range sum {
		sum[i], scale[i], words[i] = a.ZMM(), a.ZMM(), a.ZMM()
		a.VPXORD(sum[i], sum[i], sum[i])
	}
	a.Label("block")
	for i := range scale {
		a.VMOVUPS(at(scales, 64*i), scale[i])
	}
	a.MOVQ(groups, left)
	a.Label("group")
	for i := range words {
		a.VMOVDQU32(at(w, 64*i), words[i])
	}
	for step := range 8 {
		for i := range words {
			// The permutation looks at the lowest four bits only.
			v := a.ZMM()
			a.VPERMPS(values, words[i], v)
			a.VMULPS(scale[i], v, v)
			a.VMULPS_BCST(at(x, 4*step), v, v)
			a.VADDPS(v, sum[i], sum[i])
			if step < 7 {
				a.VPSRLD(operand.U8(4), words[i], words[i])
			}
		}
	}
	a.ADDQ(operand.U8(32), x)
	a.ADDQ(operand.U32(256), w)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("group"))
	a.ADDQ(operand.U32(256), scales)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	for i := range sum {
		a.VMOVUPS(sum[i], at(y, 64*i))
	}
	a.VZEROUPPER()
	a.RET()
}
