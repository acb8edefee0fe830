package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// extremes writes the greatest and the smallest numbers of rows and of columns.
func extremes(a *asm) {
	least32, least64 := uint64(math.Float32bits(float32(math.Inf(-1)))), math.Float64bits(math.Inf(-1))
	most32, most64 := uint64(math.Float32bits(float32(math.Inf(1)))), math.Float64bits(math.Inf(1))
	for _, e := range []extreme{
		{name: "mostBytes", size: 1, low: 0x80, of: a.VPMAXSB},
		{name: "mostUnsignedBytes", size: 1, low: 0, of: a.VPMAXUB},
		{name: "mostShorts", size: 2, low: 0x8000, of: a.VPMAXSW},
		{name: "mostUnsignedShorts", size: 2, low: 0, of: a.VPMAXUW},
		{name: "mostWords", size: 4, low: 1 << 31, of: a.VPMAXSD},
		{name: "mostUnsignedWords", size: 4, low: 0, of: a.VPMAXUD},
		{name: "mostLongs", size: 8, low: 1 << 63, of: a.VPMAXSQ},
		{name: "mostUnsignedLongs", size: 8, low: 0, of: a.VPMAXUQ},
		{name: "mostFloats", size: 4, low: least32, of: a.VMAXPS, same: a.VCMPPS},
		{name: "mostDoubles", size: 8, low: least64, of: a.VMAXPD, same: a.VCMPPD},
		{name: "leastBytes", size: 1, low: 0x7f, of: a.VPMINSB},
		{name: "leastUnsignedBytes", size: 1, low: 0xff, of: a.VPMINUB},
		{name: "leastShorts", size: 2, low: 0x7fff, of: a.VPMINSW},
		{name: "leastUnsignedShorts", size: 2, low: 0xffff, of: a.VPMINUW},
		{name: "leastWords", size: 4, low: 1<<31 - 1, of: a.VPMINSD},
		{name: "leastUnsignedWords", size: 4, low: 1<<32 - 1, of: a.VPMINUD},
		{name: "leastLongs", size: 8, low: 1<<63 - 1, of: a.VPMINSQ},
		{name: "leastUnsignedLongs", size: 8, low: 1<<64 - 1, of: a.VPMINUQ},
		{name: "leastFloats", size: 4, low: most32, of: a.VMINPS, same: a.VCMPPS},
		{name: "leastDoubles", size: 8, low: most64, of: a.VMINPD, same: a.VCMPPD},
	} {
		e.asm = a
		e.lines()
		e.rows()
		if e.size == 4 && e.same != nil {
			e.linesOf8()
			e.rowsOf8()
		}
	}
}

// extreme is the greatest or the smallest of numbers of a type.
type extreme struct {
	*asm
	name string
	size int    // of a number in bytes
	low  uint64 // the bits of what any other number beats
	of   func(ops ...operand.Op)
	same func(ops ...operand.Op) // compares; nil for integers
}

// join makes acc the extreme of it and of x. NaN in acc stays; of x it wins, and of two
// equals that of x.
func (e *extreme) join(x operand.Op, acc, mask reg.Register) {
	if e.same != nil {
		const ordered = 7
		if mask != nil {
			e.same(operand.U8(ordered), acc, acc, mask, reg.K2)
		} else {
			e.same(operand.U8(ordered), acc, acc, reg.K2)
		}
		mask = reg.K2
	}
	if mask != nil {
		e.of(x, acc, mask, acc)
	} else {
		e.of(x, acc, acc)
	}
}

// move loads a register or writes it, or what a mask has of it.
func (e *extreme) move(from, to operand.Op, mask reg.Register) {
	switch {
	case mask == nil:
		e.VMOVDQU64(from, to)
	case e.size == 1:
		e.VMOVDQU8(from, mask, to)
	case e.size == 2:
		e.VMOVDQU16(from, mask, to)
	case e.size == 4:
		e.VMOVDQU32(from, mask, to)
	default:
		e.VMOVDQU64(from, mask, to)
	}
}

// lines writes the extremes of columns of lines of n numbers, step bytes apart.
func (e *extreme) lines() {
	e.function(e.name+"LinesAVX512", "func(dst, src *byte, lines, n, step int)")
	load := func(name string) reg.Register { return e.Load(e.Param(name), e.GP64()) }
	dst, src, by, lines, n := load("dst"), load("src"), load("step"), load("lines"), load("n")
	p, left := e.GP64(), e.GP64()
	e.DECQ(lines) // the first one is where all begin
	columns := func(name string, vecs int, mask reg.Register) {
		var acc [4]reg.VecVirtual
		for i := range vecs {
			acc[i] = e.ZMM()
			if mask != nil {
				e.zero(zmm, acc[i])
			}
			e.move(at(src, 64*i), acc[i], mask)
		}
		e.MOVQ(src, p)
		e.MOVQ(lines, left)
		e.TESTQ(left, left)
		e.JZ(operand.LabelRef(name + "_end"))
		e.Label(name)
		e.ADDQ(by, p)
		for i := range vecs {
			e.join(at(p, 64*i), acc[i], mask)
		}
		e.DECQ(left)
		e.JNZ(operand.LabelRef(name))
		e.Label(name + "_end")
		for i := range vecs {
			e.move(acc[i], at(dst, 64*i), mask)
		}
	}
	e.several(n, 64/e.size, columns, dst, src)
	e.VZEROUPPER()
	e.RET()
}

// rows writes the extremes of rows of n numbers, side by side.
func (e *extreme) rows() {
	e.function(e.name+"RowsAVX512", "func(dst, src *byte, lines, n, step int)")
	load := func(name string) reg.Register { return e.Load(e.Param(name), e.GP64()) }
	dst, src, rows, n := load("dst"), load("src"), load("lines"), load("n")
	low, bits, left := e.ZMM(), e.GP64(), e.GP64()
	pattern := e.low
	for size := e.size; size < 8; size *= 2 {
		pattern |= pattern << (8 * size)
	}
	e.MOVQ(operand.U64(pattern), bits)
	e.VPBROADCASTQ(bits, low)
	each := 64 / e.size
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = e.ZMM()
	}
	e.Label("row")
	e.MOVQ(n, left)
	e.VMOVDQA64(low, acc[0])
	e.SUBQ(operand.U32(uint32(4*each)), left)
	e.JLT(operand.LabelRef("rest"))
	for i := range acc[1:] {
		e.VMOVDQA64(low, acc[1+i])
	}
	e.Label("wide")
	for i, v := range acc {
		e.join(at(src, 64*i), v, nil)
	}
	e.ADDQ(operand.U32(256), src)
	e.SUBQ(operand.U32(uint32(4*each)), left)
	e.JGE(operand.LabelRef("wide"))
	e.join(acc[1], acc[0], nil)
	e.join(acc[3], acc[2], nil)
	e.join(acc[2], acc[0], nil)
	e.Label("rest")
	e.ADDQ(operand.U32(uint32(4*each)), left)
	e.LEAQ(operand.Mem{Base: src, Index: left, Scale: uint8(e.size)}, bits)
	e.masked("few", left, each, func(mask reg.Register) { e.join(at(src, 0), acc[0], mask) }, step{src, 64})
	e.MOVQ(bits, src)
	v := acc[0]
	y, x, z := e.YMM(), e.XMM(), e.XMM()
	e.VEXTRACTI64X4(operand.U8(1), v, y)
	e.join(y, v.AsY(), nil)
	e.VEXTRACTI128(operand.U8(1), v.AsY(), x)
	e.join(x, v.AsX(), nil)
	for by := 8; by >= e.size; by /= 2 {
		e.VPSRLDQ(operand.U8(uint8(by)), v.AsX(), z)
		e.join(z, v.AsX(), nil)
	}
	switch e.size {
	case 1:
		e.VPEXTRB(operand.U8(0), v.AsX(), at(dst, 0))
	case 2:
		e.VPEXTRW(operand.U8(0), v.AsX(), at(dst, 0))
	case 4:
		e.VMOVD(v.AsX(), at(dst, 0))
	default:
		e.VMOVQ(v.AsX(), at(dst, 0))
	}
	e.ADDQ(operand.U8(uint8(e.size)), dst)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	e.VZEROUPPER()
	e.RET()
}

// joinOf8 is join for float32 in registers of 256 bits. nan collects where x is NaN. x
// changes.
func (e *extreme) joinOf8(x, acc, nan reg.VecVirtual) {
	const unordered = 3
	e.of(x, acc, acc)
	e.same(operand.U8(unordered), x, x, x)
	e.VORPS(x, nan, nan)
}

// linesOf8 is lines for float32 in registers of 256 bits.
func (e *extreme) linesOf8() {
	masks := e.masksOf8(e.name + "Lines")
	e.function(e.name+"LinesAVX2", "func(dst, src *byte, lines, n, step int)")
	load := func(name string) reg.Register { return e.Load(e.Param(name), e.GP64()) }
	dst, src, by, lines, n := load("dst"), load("src"), load("step"), load("lines"), load("n")
	p, left := e.GP64(), e.GP64()
	column := func(name string, mask reg.Register) {
		acc, nan, x := e.YMM(), e.YMM(), e.YMM()
		e.VXORPS(nan, nan, nan)
		e.loadSomeOf8(at(src, 0), mask, acc)
		e.MOVQ(src, p)
		e.MOVQ(lines, left)
		e.Label(name)
		e.loadSomeOf8(at(p, 0), mask, x)
		e.joinOf8(x, acc, nan)
		e.ADDQ(by, p)
		e.DECQ(left)
		e.JNZ(operand.LabelRef(name))
		e.VORPS(nan, acc, acc)
		e.storeSomeOf8(acc, mask, at(dst, 0))
	}
	e.Label("many")
	e.SUBQ(operand.U8(8), n)
	e.JLT(operand.LabelRef("few"))
	column("eight", nil)
	e.ADDQ(operand.U8(32), src)
	e.ADDQ(operand.U8(32), dst)
	e.JMP(operand.LabelRef("many"))
	e.Label("few")
	e.ADDQ(operand.U8(8), n)
	e.JZ(operand.LabelRef("end"))
	mask := e.YMM()
	e.maskOf8(masks, n, p, mask)
	column("rest", mask)
	e.Label("end")
	e.VZEROUPPER()
	e.RET()
}

// rowsOf8 is rows for float32 in registers of 256 bits. The last values are read twice.
func (e *extreme) rowsOf8() {
	const unordered = 3
	e.function(e.name+"RowsAVX2", "func(dst, src *byte, lines, n, step int)")
	load := func(name string) reg.Register { return e.Load(e.Param(name), e.GP64()) }
	dst, src, rows, n := load("dst"), load("src"), load("lines"), load("n")
	left, end, nan := e.GP64(), e.GP64(), e.YMM()
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = e.YMM()
	}
	one := func(get func(), x reg.VecVirtual) {
		get()
		e.joinOf8(x, acc[0], nan)
	}
	e.Label("row")
	e.VXORPS(nan, nan, nan)
	e.MOVQ(n, left)
	e.LEAQ(operand.Mem{Base: src, Index: n, Scale: 4}, end)
	for _, v := range acc {
		e.VBROADCASTSS(at(src, 0), v)
	}
	e.SUBQ(operand.U8(32), left)
	e.JLT(operand.LabelRef("rest"))
	e.Label("wide")
	for i := 0; i < len(acc); i += 2 {
		x, none := e.YMM(), e.YMM()
		e.VMOVUPS(at(src, 32*i), x)
		e.same(operand.U8(unordered), at(src, 32*i+32), x, none)
		e.VORPS(none, nan, nan)
		e.of(x, acc[i], acc[i])
		e.of(at(src, 32*i+32), acc[i+1], acc[i+1])
	}
	e.ADDQ(operand.U32(128), src)
	e.SUBQ(operand.U8(32), left)
	e.JGE(operand.LabelRef("wide"))
	e.of(acc[1], acc[0], acc[0])
	e.of(acc[3], acc[2], acc[2])
	e.of(acc[2], acc[0], acc[0])
	e.Label("rest")
	e.ADDQ(operand.U8(32), left)
	x := e.YMM()
	e.Label("eight")
	e.SUBQ(operand.U8(8), left)
	e.JLT(operand.LabelRef("last"))
	one(func() { e.VMOVUPS(at(src, 0), x) }, x)
	e.ADDQ(operand.U8(32), src)
	e.JMP(operand.LabelRef("eight"))
	e.Label("last")
	e.ADDQ(operand.U8(8), left)
	e.JZ(operand.LabelRef("whole"))
	e.CMPQ(n, operand.U8(8))
	e.JLT(operand.LabelRef("one"))
	one(func() { e.VMOVUPS(at(end, -32), x) }, x)
	e.JMP(operand.LabelRef("whole"))
	e.Label("one")
	one(func() { e.VBROADCASTSS(at(src, 0), x) }, x)
	e.ADDQ(operand.U8(4), src)
	e.DECQ(left)
	e.JNZ(operand.LabelRef("one"))
	e.Label("whole")
	e.MOVQ(end, src)
	half := e.XMM()
	e.VEXTRACTF128(operand.U8(1), acc[0], half)
	e.of(half, acc[0].AsX(), acc[0].AsX())
	for _, places := range []uint8{0x4e, 0xb1} {
		e.VPERMILPS(operand.U8(places), acc[0].AsX(), half)
		e.of(half, acc[0].AsX(), acc[0].AsX())
	}
	e.VMOVSS(acc[0].AsX(), at(dst, 0))
	e.VPTEST(nan, nan)
	e.JZ(operand.LabelRef("numbers"))
	e.MOVL(operand.U32(math.Float32bits(float32(math.NaN()))), at(dst, 0))
	e.Label("numbers")
	e.ADDQ(operand.U8(4), dst)
	e.DECQ(rows)
	e.JNZ(operand.LabelRef("row"))
	e.VZEROUPPER()
	e.RET()
}
