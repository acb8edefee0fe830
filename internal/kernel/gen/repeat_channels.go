package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// repeats write each of neighbouring values several times: a register of them, one register of
// results after the other, whose places in it are given.
func repeats(a *asm) {
	for n := 1; n <= 8; n++ {
		a.groupLanes(n, zmm)
		a.groupLanes(n, ymm)
	}
	a.repeat("Floats", "float32", "int32", zmm, a.ZMM, func(places, values, to reg.Register) { a.VPERMPS(values, places, to) })
	a.repeat("Words", "int16", "int16", zmm, a.ZMM, func(places, values, to reg.Register) { a.VPERMW(values, places, to) })
	a.repeat("Floats", "float32", "int32", ymm, a.YMM, func(places, values, to reg.Register) { a.VPERMPS(values, places, to) })
	a.repeat("Words", "int16", "int16", ymm, a.XMM, func(places, values, to reg.Register) { a.VPSHUFB(places, values, to) })
}

// repeat uses registers that fresh returns.
func (a *asm) repeat(name, value, number string, w width, fresh func() reg.VecVirtual, permute func(places, values, to reg.Register)) {
	a.function("repeat"+name+w.set, label("func(dst, src *%s, places *%s, registers, times int)", value, number))
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	registers := a.Load(a.Param("registers"), a.GP64())
	place, left := a.GP64(), a.GP64()
	values, to := fresh(), fresh()
	size := operand.U8(values.Size())
	a.Label("register")
	a.VMOVUPS(at(src, 0), values)
	a.Load(a.Param("places"), place)
	a.Load(a.Param("times"), left)
	a.Label("time")
	a.VMOVUPS(at(place, 0), to)
	permute(to, values, to)
	a.VMOVUPS(to, at(dst, 0))
	a.ADDQ(size, place)
	a.ADDQ(size, dst)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("time"))
	a.ADDQ(size, src)
	a.DECQ(registers)
	a.JNZ(operand.LabelRef("register"))
	a.VZEROUPPER()
	a.RET()
}

// groupLanes writes for each of so many positions, step bytes apart in src, registers of the
// values that results of groups take of it: one for each of the n channels of a group, 64 bytes
// apart, whose values lie at the places of the table that belongs to it. mask tells which values
// there are to read; without mask registers, it follows the tables.
func (a *asm) groupLanes(n int, w width) {
	a.function(label("groupLanes%d%s", n, w.set), "func(dst, src *float32, step int, places *int32, positions int, mask uint32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	step := a.Load(a.Param("step"), a.GP64())
	places := a.Load(a.Param("places"), a.GP64())
	positions := a.Load(a.Param("positions"), a.GP64())
	values, to, mask, tables := a.vec(w), a.vec(w), a.vec(w), make([]reg.VecVirtual, n)
	if w.masks {
		a.KMOVW(a.Load(a.Param("mask"), a.GP32()), reg.K1)
	} else {
		a.VMOVUPS(at(places, w.bytes()*n), mask)
	}
	for i := range tables {
		tables[i] = a.vec(w)
		a.VMOVUPS(at(places, w.bytes()*i), tables[i])
	}
	a.Label("position")
	if w.masks {
		a.VMOVUPS_Z(at(src, 0), reg.K1, values)
	} else {
		a.VMASKMOVPS(at(src, 0), mask, values)
	}
	for i, table := range tables {
		a.VPERMPS(values, table, to)
		a.VMOVUPS(to, at(dst, 64*i))
	}
	a.ADDQ(step, src)
	a.ADDQ(operand.U32(uint32(64*n)), dst)
	a.DECQ(positions)
	a.JNZ(operand.LabelRef("position"))
	a.VZEROUPPER()
	a.RET()
}
