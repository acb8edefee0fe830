package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func lookups(a *asm) {
	a.lookupNarrow()
	a.lookup()
}

// lookupNarrow is lookup for n bytes, a multiple of 64, with shuffles of 16 bytes. Byte x less
// 16·j selects an entry of shuffle j while its highest bit is clear: for the last eight j up to
// x/16. The subtraction wraps until the upper half has become the lower one, then saturates.
// Entries combine by exclusive or: row j has what turns row j-1 into row j, less what has left
// the last eight.
func (a *asm) lookupNarrow() {
	a.function("lookupAVX2", "func(dst, src *byte, n int, table *byte)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	table := a.Load(a.Param("table"), a.GP64())
	const rows = 16
	turns := a.AllocLocal(16 * rows)
	for j := range rows {
		row := a.XMM()
		a.VMOVDQU(at(table, 16*j), row)
		if j > 0 {
			a.VPXOR(at(table, 16*(j-1)), row, row)
		}
		if j >= rows/2 {
			a.VPXOR(turns.Offset(16*(j-rows/2)), row, row)
		}
		a.VMOVDQU(row, turns.Offset(16*j))
	}
	by, c := a.YMM(), a.GP32()
	a.MOVL(operand.U32(16), c)
	a.VMOVD(c, by.AsX())
	a.VPBROADCASTB(by.AsX(), by)
	a.SHRQ(operand.U8(6), n)
	a.loop(n, 1, func() {
		var x, y [2]reg.VecVirtual
		for i := range x {
			x[i], y[i] = a.YMM(), a.YMM()
			a.VMOVDQU(at(src, 32*i), x[i])
		}
		for j := range rows {
			row := a.YMM()
			a.VBROADCASTI128(turns.Offset(16*j), row)
			for i := range x {
				switch {
				case j == 0:
					a.VPSHUFB(x[i], row, y[i])
					continue
				case j <= rows/2:
					a.VPSUBB(by, x[i], x[i])
				default:
					a.VPSUBSB(by, x[i], x[i])
				}
				chosen := a.YMM()
				a.VPSHUFB(x[i], row, chosen)
				a.VPXOR(chosen, y[i], y[i])
			}
		}
		for i := range y {
			a.VMOVDQU(y[i], at(dst, 32*i))
		}
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// lookup replaces n bytes by their entries in a table of 256.
func (a *asm) lookup() {
	a.function("lookupVNNI", "func(dst, src *byte, n int, table *byte)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	table := a.Load(a.Param("table"), a.GP64())
	var t [4]reg.VecVirtual
	for i := range t {
		t[i] = a.ZMM()
		a.VMOVDQU32(at(table, 64*i), t[i])
	}
	x, y := a.ZMM(), a.ZMM()
	entries := func() {
		a.VMOVDQA32(x, y)
		a.VPMOVB2M(x, reg.K1)
		a.VPERMI2B(t[1], t[0], x)
		a.VPERMI2B(t[3], t[2], y)
		a.VMOVDQU8(y, reg.K1, x)
	}
	a.Label("many")
	a.SUBQ(operand.U8(64), n)
	a.JLT(operand.LabelRef("rest"))
	a.VMOVDQU32(at(src, 0), x)
	entries()
	a.VMOVDQU32(x, at(dst, 0))
	a.ADDQ(operand.U8(64), src)
	a.ADDQ(operand.U8(64), dst)
	a.JMP(operand.LabelRef("many"))
	a.Label("rest")
	a.ADDQ(operand.U8(64), n)
	a.JZ(operand.LabelRef("end"))
	bits := a.GP64()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVQ(bits, reg.K2)
	a.VMOVDQU8_Z(at(src, 0), reg.K2, x)
	entries()
	a.VMOVDQU8(x, reg.K2, at(dst, 0))
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}
