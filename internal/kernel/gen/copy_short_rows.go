package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// spreads writes rows of up to 32 floats side by side: lines of memory some step apart, or single
// numbers that fill a row each. Whole registers are stored, one row over the end of the one
// before.
func spreads(a *asm) {
	a.spreadRows("spreadLinesAVX512", false)
	a.spreadRows("spreadOnesAVX512", true)
	a.gatherBlocks()
}

// gatherBlocks copies the n blocks with the indices at, which are unit bytes apart in src and of
// at least 32 bytes. The last 32 bytes of a block may overlap those before.
func (a *asm) gatherBlocks() {
	a.function("gatherBlocksAVX2", "func(dst, src *byte, at *int, n, bytes, unit int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, src, places, n, bytes, unit := load("dst"), load("src"), load("at"), load("n"), load("bytes"), load("unit")
	from, off, last := a.GP64(), a.GP64(), a.GP64()
	x := a.YMM()
	part := func(i reg.Register) {
		a.VMOVDQU(operand.Mem{Base: from, Index: i, Scale: 1}, x)
		a.VMOVDQU(x, operand.Mem{Base: dst, Index: i, Scale: 1})
	}
	a.LEAQ(at(bytes, -32), last)
	a.Label("block")
	a.MOVQ(at(places, 0), from)
	a.IMULQ(unit, from)
	a.ADDQ(src, from)
	a.XORQ(off, off)
	a.JMP(operand.LabelRef("more"))
	a.Label("part")
	part(off)
	a.ADDQ(operand.U8(32), off)
	a.Label("more")
	a.CMPQ(off, last)
	a.JLT(operand.LabelRef("part"))
	part(last)
	a.ADDQ(bytes, dst)
	a.ADDQ(operand.U8(8), places)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("block"))
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) spreadRows(name string, ones bool) {
	a.function(name, "func(dst, src *float32, rows, n, step int)")
	dst, src, rows := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("rows"), a.GP64())
	n, step := a.Load(a.Param("n"), a.GP64()), a.Load(a.Param("step"), a.GP64())
	a.SHLQ(operand.U8(2), step)
	bits := a.GP64()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVW(bits.As32(), reg.K1)
	a.SHRQ(operand.U8(16), bits)
	a.KMOVW(bits.As32(), reg.K2)
	low, high := a.ZMM(), a.ZMM()
	load := func() {
		if ones {
			a.VBROADCASTSS(at(src, 0), low)
		} else {
			a.VMOVUPS_Z(at(src, 0), reg.K1, low)
		}
		a.VMOVUPS(low, at(dst, 0))
	}
	next := func(label string) {
		a.ADDQ(step, src)
		a.LEAQ(operand.Mem{Base: dst, Index: n, Scale: 4}, dst)
		a.DECQ(rows)
		a.JNZ(operand.LabelRef(label))
	}
	a.CMPQ(n, operand.U8(16))
	a.JGT(operand.LabelRef("wide"))
	a.Label("narrow")
	load()
	next("narrow")
	a.JMP(operand.LabelRef("end"))
	a.Label("wide")
	load()
	if ones {
		a.VMOVUPS(low, at(dst, 64))
	} else {
		a.VMOVUPS_Z(at(src, 64), reg.K2, high)
		a.VMOVUPS(high, at(dst, 64))
	}
	next("wide")
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}
