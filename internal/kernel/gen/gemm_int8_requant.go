package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.CodeTile behind those of simd.IntTile, in bytes; a test there
// compares them.
const (
	codeOut = intBelow + 8 + 8*iota
	codeRowOut
	codeMask
	codeScales
	codeRound
	codeCount
	codeStepA
	codeStepOut
	codeDoneA
	codeDoneOut
	codeFinish
	codeLo
)

// What codeFinish has beside zero: codes with a sign, and without one and a zero point, of which
// no limit is but those of 8 bits.
const (
	finishSigned = 1 + iota
	finishPlain
)

const (
	codeHi   = codeLo + 64
	codeSign = codeHi + 64
	codeZero = codeSign + 64
)

// codeTiles writes products of fours whose sums become codes of 8 bits while they are in registers.
func codeTiles(a *asm) {
	order := a.turnOrder()
	for r := 1; r <= 12; r++ {
		a.codeTile("quadsCodes", r, quads, false, order)
		a.codeTile("quadsRescaled", r, quads, true, order)
		a.codeTile("fewCodes", r, few, false, order)
		a.codeTile("fewRescaled", r, few, true, order)
		a.codeTile("turnedRescaled", r, turned, true, order)
	}
}

// codeTile is a product of rows by a panel of 32 columns, or by its first half, and of as many
// tiles more as follow. Sums begin with all that is added to them. They are quantised as
// quantiseSums has it, or rescaled as floats: by a scale for each column, or turned by one for
// each row.
func (a *asm) codeTile(name string, rows int, kind intKind, rescaled bool, order operand.Mem) {
	a.function(label("%s%dVNNI", name, rows), "func(t *CodeTile)")
	vecs := panelVecs
	if kind == few {
		kind, vecs = quads, 1
	}
	t := a.Load(a.Param("t"), a.GP64())
	a.Label("tile")
	p := a.intProducts(t, zmm, rows, vecs, kind, true, at(t, codeDoneA))
	scales, mask := a.GP64(), a.GP64()
	a.MOVQ(at(t, codeScales), scales)
	a.MOVQ(at(t, codeMask), mask)
	if rescaled {
		a.rescaleTile(rows, vecs, kind, scales, mask)
	} else {
		a.quantiseTile(t, rows, vecs, scales)
	}
	p.set(at(t, codeOut), at(t, codeRowOut))
	p.add(at(t, codeDoneOut))
	// What products have left.
	lo, hi, sign, turn, zero := zmm.reg(24), zmm.reg(25), zmm.reg(26), zmm.reg(27), zmm.reg(28)
	table := a.GP64()
	a.LEAQ(order, table)
	a.VPMOVZXBD(at(table, 0), turn)
	// pack makes codes of words, those of four registers in one; finish does what is left. A row
	// has 16 or 32 of the 64 codes.
	pack := func(zeros bool, narrow func(ops ...operand.Op), finish func(x reg.Register)) {
		words := func(i int) reg.VecPhysical {
			x, last := zmm.reg(i), zmm.reg(min(i+1, rows*vecs-1))
			a.VPACKSSDW(last, x, x)
			if zeros {
				a.VPADDSW(zero, x, x)
			}
			return x
		}
		for i := 0; i < rows*vecs; i += 4 {
			x := words(i)
			y := x
			if i+2 < rows*vecs {
				y = words(i + 2)
			}
			narrow(y, x, x)
			finish(x)
			a.VPERMD(x, turn, x)
		}
	}
	// codes is where those of a row lie: a part of a register.
	codes := func(r int) (x reg.VecPhysical, part int) { return zmm.reg(r * vecs / 4 * 4), r * vecs % 4 / vecs }
	none := func(reg.Register) {}
	if rescaled {
		a.VMOVDQU64(at(t, codeZero), zero)
	}
	a.CMPQ(at(t, codeFinish), operand.U8(finishSigned))
	a.JE(operand.LabelRef("signed"))
	if rescaled {
		a.JA(operand.LabelRef("plain"))
	}
	a.VMOVDQU64(at(t, codeLo), lo)
	a.VMOVDQU64(at(t, codeHi), hi)
	a.VMOVDQU64(at(t, codeSign), sign)
	pack(rescaled, a.VPACKSSWB, func(x reg.Register) {
		a.VPMAXSB(lo, x, x)
		a.VPMINSB(hi, x, x)
		a.VPXORD(sign, x, x)
	})
	a.JMP(operand.LabelRef("codes"))
	if rescaled {
		a.Label("plain")
		pack(false, a.VPACKUSWB, none)
		a.JMP(operand.LabelRef("codes"))
	}
	a.Label("signed")
	pack(rescaled, a.VPACKSSWB, none)
	a.Label("codes")
	// take moves the codes of a row to memory, or to a register.
	take := func(x reg.VecPhysical, part int, to operand.Op) {
		switch {
		case vecs == 1:
			a.VEXTRACTI32X4(operand.U8(uint64(part)), x, to)
		default:
			a.VEXTRACTI64X4(operand.U8(uint64(part)), x, to)
		}
	}
	first := func(x reg.VecPhysical) reg.VecPhysical {
		if vecs == 1 {
			return x.AsX().(reg.VecPhysical)
		}
		return x.AsY().(reg.VecPhysical)
	}
	a.CMPL(mask.As32(), operand.U32(1<<(16*vecs)-1))
	a.JNE(operand.LabelRef("part"))
	for r := range rows {
		if x, part := codes(r); part == 0 {
			a.VMOVDQU64(first(x), p.at(r, 0))
		} else {
			take(x, part, p.at(r, 0))
		}
	}
	next := func() {
		for _, f := range [][2]int{{codeStepA, codeDoneA}, {codeStepOut, codeDoneOut}} {
			by := a.GP64()
			a.MOVQ(at(t, f[0]), by)
			a.ADDQ(by, at(t, f[1]))
		}
		a.DECQ(at(t, codeCount))
		a.JG(operand.LabelRef("tile"))
		a.VZEROUPPER()
		a.RET()
	}
	next()
	a.Label("part")
	a.KMOVD(mask.As32(), reg.K1)
	for r := range rows {
		x, part := codes(r)
		y := first(x)
		if part > 0 {
			y = first(lo)
			take(x, part, y)
		}
		a.VMOVDQU8(y, reg.K1, p.at(r, 0))
	}
	next()
}

// rescaleTile multiplies the sums of a tile by scales, none as large as a half, and rounds them.
func (a *asm) rescaleTile(rows, vecs int, kind intKind, scales, mask reg.GPVirtual) {
	scale := []reg.VecPhysical{zmm.reg(24), zmm.reg(25)}[:vecs]
	if kind.byColumn() {
		// Behind the last column there may be none.
		bits := a.GP64()
		a.MOVQ(mask, bits)
		for v := range scale {
			a.KMOVW(bits.As32(), reg.K1)
			a.VMOVUPS_Z(at(scales, 64*v), reg.K1, scale[v])
			a.SHRQ(operand.U8(16), bits)
		}
	}
	for r := range rows {
		for v := range vecs {
			x := zmm.reg(r*vecs + v)
			a.VCVTDQ2PS(x, x)
			if kind.byColumn() {
				a.VMULPS(scale[v], x, x)
			} else {
				a.VMULPS_BCST(at(scales, 4*r), x, x)
			}
			a.VCVTPS2DQ(x, x)
		}
	}
}

// quantiseTile quantises the sums of a tile by the numbers of quantiseSums, all five kinds for
// each register of columns, or by those of simd.Fused: scales, what is added, and the bits of
// zero.
func (a *asm) quantiseTile(t reg.Register, rows, vecs int, scales reg.Register) {
	evens := a.GP32()
	a.MOVL(operand.U32(0x5555), evens)
	a.KMOVW(evens, reg.K1)
	even, odd := zmm.reg(29), zmm.reg(30)
	quantise := func(up bool) {
		for v := range vecs {
			var q [5]reg.VecPhysical
			for i := range q {
				q[i] = zmm.reg(24 + i)
				a.VMOVDQU64(at(scales, 64*(5*v+i)), q[i])
			}
			for r := range rows {
				x := zmm.reg(r*vecs + v)
				a.quantiseSums(x, even, odd, reg.K1, q[0], q[1], q[2], q[3], up)
				a.VPSRAVD(q[4], odd, x)
			}
		}
	}
	a.CMPQ(at(t, codeRound), operand.U8(1))
	a.JE(operand.LabelRef("up"))
	a.JA(operand.LabelRef("fused"))
	quantise(false)
	a.JMP(operand.LabelRef("quantised"))
	a.Label("up")
	quantise(true)
	a.JMP(operand.LabelRef("quantised"))
	a.Label("fused")
	for v := range vecs {
		var q [3]reg.VecPhysical
		for i := range q {
			q[i] = zmm.reg(24 + i)
			a.VMOVDQU64(at(scales, 64*(5*v+i)), q[i])
		}
		for r := range rows {
			a.fuseSums(zmm.reg(r*vecs+v), q[0], q[1], q[2])
		}
	}
	a.Label("quantised")
}
