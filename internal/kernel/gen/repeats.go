package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// repeats write each of neighbouring values several times: a register of them, one register of results after the other, whose places in it
// are given.
func repeats(a *asm) {
	a.repeat("Floats", "float32", "int32", func(places, values, to reg.Register) { a.VPERMPS(values, places, to) })
	a.repeat("Words", "int16", "int16", func(places, values, to reg.Register) { a.VPERMW(values, places, to) })
}

func (a *asm) repeat(name, value, number string, permute func(places, values, to reg.Register)) {
	a.function("repeat"+name+"AVX512", label("func(dst, src *%s, places *%s, registers, times int)", value, number))
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	registers := a.Load(a.Param("registers"), a.GP64())
	place, left := a.GP64(), a.GP64()
	values, to := a.ZMM(), a.ZMM()
	a.Label("register")
	a.VMOVUPS(at(src, 0), values)
	a.Load(a.Param("places"), place)
	a.Load(a.Param("times"), left)
	a.Label("time")
	a.VMOVUPS(at(place, 0), to)
	permute(to, values, to)
	a.VMOVUPS(to, at(dst, 0))
	a.ADDQ(operand.U8(64), place)
	a.ADDQ(operand.U8(64), dst)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("time"))
	a.ADDQ(operand.U8(64), src)
	a.DECQ(registers)
	a.JNZ(operand.LabelRef("register"))
	a.VZEROUPPER()
	a.RET()
}
