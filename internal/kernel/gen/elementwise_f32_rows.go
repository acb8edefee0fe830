package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowPairs are the loops over rows of n elements of two operands, whose steps are in bytes. In
// those of singles the second has one element a row.
func (a *asm) rowPairs() {
	type op func(x, y reg.VecVirtual)
	sub, div := func(x, y reg.VecVirtual) { a.VSUBPS(y, x, x) }, func(x, y reg.VecVirtual) { a.VDIVPS(y, x, x) }
	for _, l := range []struct {
		name string
		of   op
	}{
		{"Add", func(x, y reg.VecVirtual) { a.VADDPS(y, x, x) }},
		{"Sub", sub},
		{"Mul", func(x, y reg.VecVirtual) { a.VMULPS(y, x, x) }},
		{"Div", div},
		{"Square", func(x, y reg.VecVirtual) { sub(x, y); a.VMULPS(x, x, x) }},
	} {
		a.rowPair("rows"+l.name, false, l.of)
		a.rowPair("singles"+l.name, true, l.of)
	}
	a.rowPair("singlesSubFrom", true, func(x, y reg.VecVirtual) { a.VSUBPS(x, y, x) })
	a.rowPair("singlesDivFrom", true, func(x, y reg.VecVirtual) { a.VDIVPS(x, y, x) })
}

// rowPair writes what of makes of its operands in the first.
func (a *asm) rowPair(name string, single bool, of func(x, y reg.VecVirtual)) {
	for _, w := range []width{ymm, zmm} {
		a.rowPairOf(w, name, single, of)
	}
}

// rowPairOf is rowPair for one kind of registers.
func (a *asm) rowPairOf(w width, name string, single bool, of func(x, y reg.VecVirtual)) {
	var masks operand.Mem
	if !w.masks {
		masks = a.masksOf8(name + w.set)
	}
	a.function(name+w.set, "func(dst, a, b *float32, rows, n, stepA, stepB int)")
	load := func(p string) reg.GPVirtual { return a.Load(a.Param(p), a.GP64()).(reg.GPVirtual) }
	dst, first, second, rows, n, stepA, stepB := load("dst"), load("a"), load("b"), load("rows"), load("n"), load("stepA"), load("stepB")
	pa, pb, left, bits := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(n, left)
	a.ANDQ(operand.U8(uint8(w.floats-1)), left)
	rest, get, put := reg.Register(reg.K1), a.loadFloats, a.storeFloats
	if w.masks {
		a.MOVQ(operand.I32(-1), bits)
		a.BZHIQ(left, bits, bits)
		a.KMOVW(bits.As32(), reg.K1)
	} else {
		rest, get, put = a.YMM(), a.loadSomeOf8, a.storeSomeOf8
		a.maskOf8(masks, left, bits, rest)
	}
	y := a.vec(w)
	piece := func(off int, mask reg.Register) {
		x := a.vec(w)
		get(at(pa, off), mask, x)
		if !single {
			y = a.vec(w)
			get(at(pb, off), mask, y)
		}
		of(x, y)
		put(x, mask, at(dst, off))
	}
	next := func(by uint32) {
		a.ADDQ(operand.U32(by), pa)
		if !single {
			a.ADDQ(operand.U32(by), pb)
		}
		a.ADDQ(operand.U32(by), dst)
	}
	a.Label("row")
	a.MOVQ(first, pa)
	a.MOVQ(n, left)
	if single {
		a.VBROADCASTSS(at(second, 0), y)
	} else {
		a.MOVQ(second, pb)
	}
	a.Label("many")
	a.SUBQ(operand.U8(uint8(4*w.floats)), left)
	a.JLT(operand.LabelRef("few"))
	for i := range 4 {
		piece(w.bytes()*i, nil)
	}
	next(uint32(4 * w.bytes()))
	a.JMP(operand.LabelRef("many"))
	a.Label("few")
	a.ADDQ(operand.U8(uint8(4*w.floats)), left)
	a.Label("one")
	a.SUBQ(operand.U8(uint8(w.floats)), left)
	a.JLT(operand.LabelRef("rest"))
	piece(0, nil)
	next(uint32(w.bytes()))
	a.JMP(operand.LabelRef("one"))
	a.Label("rest")
	a.ADDQ(operand.U8(uint8(w.floats)), left)
	a.JZ(operand.LabelRef("end"))
	piece(0, rest)
	a.LEAQ(operand.Mem{Base: dst, Index: left, Scale: 4}, dst)
	a.Label("end")
	a.ADDQ(stepA, first)
	a.ADDQ(stepB, second)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}
