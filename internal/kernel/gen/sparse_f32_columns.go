package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.ColumnsTile, in bytes; a test there compares them.
const (
	columnsY = 8 * iota
	columnsX
	columnsSteps
	columnsValues
	columnsCounts
	columnsGroups
)

// columns multiplies a row by columns of listed weights. Each lane of a register is a column with
// its own list of steps, at which it gathers the values of the row.
func columns(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, kind := range []string{"Fused", "Exact"} {
			a.columnLists(w, kind)
		}
	}
}

func (a *asm) columnLists(w width, kind string) {
	a.function("columns"+kind+w.set, "func(t *ColumnsTile)")
	t := a.Load(a.Param("t"), a.GP64())
	y, x, steps := a.field(t, columnsY), a.field(t, columnsX), a.field(t, columnsSteps)
	values, counts, groups := a.field(t, columnsValues), a.field(t, columnsCounts), a.field(t, columnsGroups)
	left := a.GP64()
	sum, at0, from := w.reg(0), w.reg(1), w.reg(2)
	ones := w.reg(3)
	all := operand.Mem{Base: x, Index: at0, Scale: 4}
	a.Label("group")
	a.zero(w, sum)
	a.MOVL(at(counts, 0), left.As32())
	a.TESTL(left.As32(), left.As32())
	a.JZ(operand.LabelRef("end"))
	a.Label("step")
	// The prefetcher stops at the end of a page.
	a.PREFETCHT0(at(values, expandAhead))
	// The result of a gather depends on its register; cleared, it does not wait for the last one.
	a.zero(w, from)
	if w == zmm {
		a.VPMOVZXWD(at(steps, 0), at0)
		a.KXNORW(reg.K1, reg.K1, reg.K1)
		a.VGATHERDPS(all, reg.K1, from)
	} else {
		a.VPMOVZXWD(at(steps, 0), at0)
		a.VPCMPEQD(ones, ones, ones)
		a.VGATHERDPS(ones, all, from)
	}
	if kind == "Fused" {
		a.VFMADD231PS(at(values, 0), from, sum)
	} else {
		a.VMULPS(at(values, 0), from, from)
		a.VADDPS(from, sum, sum)
	}
	a.ADDQ(operand.U8(uint8(w.bytes()/2)), steps)
	a.ADDQ(operand.U8(uint8(w.bytes())), values)
	a.DECL(left.As32())
	a.JNZ(operand.LabelRef("step"))
	a.Label("end")
	a.VMOVUPS(sum, at(y, 0))
	a.ADDQ(operand.U8(uint8(w.bytes())), y)
	a.ADDQ(operand.U8(4), counts)
	a.DECQ(groups)
	a.JNZ(operand.LabelRef("group"))
	a.VZEROUPPER()
	a.RET()
}
