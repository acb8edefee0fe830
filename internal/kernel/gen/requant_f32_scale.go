package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// codes512 makes the loops over codes of 8 bits that have registers of 512 bits: they take any
// number of elements.
func (a *asm) codes512() {
	order := a.turnOrder()
	a.function("quantiseAVX512", "func(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)")
	w := a.codeWriter(order)
	src, n := a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	w.divide(a.spread512("scale"))
	w.write(n, func(off int, mask reg.Register) reg.VecVirtual {
		x := a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(src, off), mask, x)
		} else {
			a.VMOVUPS(at(src, off), x)
		}
		return x
	}, step{src, 4})
	a.VZEROUPPER()
	a.RET()
	for _, small := range []bool{false, true} {
		a.rescaleRows(order, small)
		a.rescaleColumns(order, small)
	}
	a.turnBytes()
	for _, signed := range []bool{false, true} {
		for _, product := range []bool{false, true} {
			a.combine512(order, signed, product)
		}
	}
}

// codePacker narrows rounded numbers to codes of 8 bits with saturation: registers of 16, up to
// four, to one. Codes without a sign are computed less 128, which sign turns back.
type codePacker struct {
	a                                 *asm
	most, zero, lo, hi, sign, byGroup reg.VecVirtual
	small                             bool
}

// rescaleParams are the parameters of loops that rescale: small says that no scale is as large as
// a half, so that no product leaves 32 bits; others are limited to most before they are rounded.
// What is below becomes the least number.
const rescaleParams = "func(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)"

func (a *asm) codePacker(order operand.Mem, small bool) *codePacker {
	p := &codePacker{a: a, byGroup: a.ZMM(), small: small}
	if !small {
		p.most = a.spread512("most")
	}
	spread := func(name string, f func(...operand.Op)) reg.VecVirtual {
		v, g := a.ZMM(), a.GP32()
		a.Load(a.Param(name), g)
		f(g, v)
		return v
	}
	p.zero = spread("zero", a.VPBROADCASTW)
	p.lo, p.hi, p.sign = spread("lo", a.VPBROADCASTB), spread("hi", a.VPBROADCASTB), spread("sign", a.VPBROADCASTB)
	table := a.GP64()
	a.LEAQ(order, table)
	a.VPMOVZXBD(operand.Mem{Base: table}, p.byGroup)
	return p
}

// round makes integers of sums with their bias.
func (p *codePacker) round(x, scale reg.Register) {
	a := p.a
	a.VCVTDQ2PS(x, x)
	a.VMULPS(scale, x, x)
	if !p.small {
		a.VMINPS(p.most, x, x)
	}
	a.VCVTPS2DQ(x, x)
}

// pack returns the codes of 1, 2 or 4 registers.
func (p *codePacker) pack(x []reg.VecVirtual) reg.VecVirtual {
	a := p.a
	for i := 0; i < len(x); i += 2 {
		a.VPACKSSDW(x[min(i+1, len(x)-1)], x[i], x[i])
		a.VPADDSW(p.zero, x[i], x[i])
	}
	v := x[0]
	if len(x) == 4 {
		a.VPACKSSWB(x[2], v, v)
	} else {
		a.VPACKSSWB(v, v, v)
	}
	a.VPMAXSB(p.lo, v, v)
	a.VPMINSB(p.hi, v, v)
	a.VPXORD(p.sign, v, v)
	a.VPERMD(v, p.byGroup, v)
	return v
}

// rescaling is a loop that rescales, with its parameters.
type rescaling struct {
	dst, stepDst, src, stepSrc, rows, n, scales, bias reg.Register
	pack                                              *codePacker
}

// rescaling begins such a loop.
func (a *asm) rescaling(name string, order operand.Mem, small bool) *rescaling {
	if small {
		name += "Small"
	}
	a.function(name+"AVX512", rescaleParams)
	load := func(param string) reg.Register { return a.Load(a.Param(param), a.GP64()) }
	q := &rescaling{dst: load("dst"), stepDst: load("stepDst"), src: load("src"), stepSrc: load("stepSrc"), rows: load("rows"), n: load("n"), scales: load("scales"), bias: load("bias")}
	q.pack = a.codePacker(order, small)
	return q
}

// rescaleRows writes the codes of (src + bias)·scale for rows, each of which has a bias and a
// scale.
func (a *asm) rescaleRows(order operand.Mem, small bool) {
	q := a.rescaling("rescaleRows", order, small)
	to, stepDst, from, stepSrc := q.dst, q.stepDst, q.src, q.stepSrc
	rows, n, scales, biases, p := q.rows, q.n, q.scales, q.bias, q.pack
	src, dst, left := a.GP64(), a.GP64(), a.GP64()
	ones, bits := a.GP64(), a.GP64()
	scale, bias := a.ZMM(), a.ZMM()
	a.MOVQ(operand.I32(-1), ones)
	a.Label("row")
	a.MOVQ(from, src)
	a.MOVQ(to, dst)
	a.MOVQ(n, left)
	a.VBROADCASTSS(at(scales, 0), scale)
	a.VPBROADCASTD(at(biases, 0), bias)
	a.Label("many")
	a.SUBQ(operand.U8(64), left)
	a.JLT(operand.LabelRef("few"))
	var x [4]reg.VecVirtual
	for i := range x {
		x[i] = a.ZMM()
		a.VPADDD(at(src, 64*i), bias, x[i])
		p.round(x[i], scale)
	}
	a.VMOVDQU64(p.pack(x[:]), at(dst, 0))
	a.ADDQ(operand.U32(256), src)
	a.ADDQ(operand.U8(64), dst)
	a.JMP(operand.LabelRef("many"))
	a.Label("few")
	a.ADDQ(operand.U8(64), left)
	a.JZ(operand.LabelRef("end"))
	a.Label("sixteen")
	a.BZHIQ(left, ones, bits)
	a.KMOVW(bits.As32(), reg.K1)
	v := a.ZMM()
	a.VPADDD_Z(at(src, 0), bias, reg.K1, v)
	p.round(v, scale)
	v = p.pack([]reg.VecVirtual{v})
	a.KMOVQ(bits, reg.K2)
	a.CMPQ(left, operand.U8(16))
	a.JLT(operand.LabelRef("part"))
	a.VMOVDQU64(v.AsX(), at(dst, 0))
	a.ADDQ(operand.U8(64), src)
	a.ADDQ(operand.U8(16), dst)
	a.SUBQ(operand.U8(16), left)
	a.JNZ(operand.LabelRef("sixteen"))
	a.JMP(operand.LabelRef("end"))
	a.Label("part")
	a.VMOVDQU8(v, reg.K2, at(dst, 0))
	a.Label("end")
	a.ADDQ(operand.U8(4), scales)
	a.ADDQ(operand.U8(4), biases)
	a.ADDQ(stepDst, to)
	a.ADDQ(stepSrc, from)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// rescaleColumns is rescaleRows for rows of n columns, each of which has a bias and a scale: 32
// columns at a time, or as many as there are.
func (a *asm) rescaleColumns(order operand.Mem, small bool) {
	q := a.rescaling("rescaleColumns", order, small)
	dst, stepDst, src, stepSrc := q.dst, q.stepDst, q.src, q.stepSrc
	rows, n, scales, biases, p := q.rows, q.n, q.scales, q.bias, q.pack
	bits, from, to, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("block")
	// Bits of the columns that there are, of all and of each register.
	a.MOVQ(operand.U32(32), left)
	a.CMPQ(n, left)
	a.CMOVQLT(n, left)
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(left, bits, bits)
	there := []reg.OpmaskPhysical{reg.K1, reg.K2}
	a.KMOVQ(bits, reg.K3)
	a.KMOVW(bits.As32(), there[0])
	a.SHRQ(operand.U8(16), bits)
	a.KMOVW(bits.As32(), there[1])
	var scale, bias [2]reg.VecVirtual
	for i := range scale {
		scale[i], bias[i] = a.ZMM(), a.ZMM()
		a.VMOVUPS_Z(at(scales, 64*i), there[i], scale[i])
		a.VMOVDQU32_Z(at(biases, 64*i), there[i], bias[i])
	}
	a.MOVQ(src, from)
	a.MOVQ(dst, to)
	a.MOVQ(rows, left)
	row := func(name string, whole bool) {
		a.Label(name)
		var x [2]reg.VecVirtual
		for i := range x {
			x[i] = a.ZMM()
			if whole {
				a.VPADDD(at(from, 64*i), bias[i], x[i])
			} else {
				a.VPADDD_Z(at(from, 64*i), bias[i], there[i], x[i])
			}
			p.round(x[i], scale[i])
		}
		if v := p.pack(x[:]); whole {
			a.VMOVDQU64(v.AsY(), at(to, 0))
		} else {
			a.VMOVDQU8(v, reg.K3, at(to, 0))
		}
		a.ADDQ(stepDst, to)
		a.ADDQ(stepSrc, from)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
	}
	a.CMPQ(n, operand.U8(32))
	a.JLT(operand.LabelRef("few"))
	row("whole", true)
	for _, p := range []reg.Register{src, scales, biases} {
		a.ADDQ(operand.U32(128), p)
	}
	a.ADDQ(operand.U8(32), dst)
	a.SUBQ(operand.U8(32), n)
	a.JNZ(operand.LabelRef("block"))
	a.JMP(operand.LabelRef("end"))
	row("few", false)
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}

// interleaveBytes interleaves in rounds the bytes of registers that lie half of all apart.
func (a *asm) interleaveBytes(x []reg.VecPhysical, free reg.VecPhysical, rounds int) []reg.VecPhysical {
	for range rounds {
		next := make([]reg.VecPhysical, len(x))
		for i := range len(x) / 2 {
			low, high := x[i], x[i+len(x)/2]
			a.VPUNPCKHBW(high, low, free)
			a.VPUNPCKLBW(high, low, low)
			next[2*i], next[2*i+1], free = low, free, high
		}
		x = next
	}
	return x
}

// turnBytes writes n columns of 16 rows of bytes as n rows of 16. Each of four rounds interleaves
// the bytes of rows that lie half of all rows apart: that moves the highest bit of a byte's row
// to the lowest of its column, and the highest one of the column to the row.
func (a *asm) turnBytes() {
	a.function("turnBytesAVX512", "func(dst *byte, stepDst int, src *byte, stepSrc, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	bits, here, from := a.GP64(), a.GP64(), a.GP64()
	a.Label("block")
	a.MOVQ(operand.U32(64), here)
	a.CMPQ(n, here)
	a.CMOVQLT(n, here)
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(here, bits, bits)
	a.KMOVQ(bits, reg.K1)
	a.MOVQ(src, from)
	x, free := append([]reg.VecPhysical(nil), zmmRegs[:16]...), zmmRegs[16]
	for _, v := range x {
		a.VMOVDQU8_Z(at(from, 0), reg.K1, v)
		a.ADDQ(stepSrc, from)
	}
	x = a.interleaveBytes(x, free, 4)
	// Each lane of 16 bytes has been exchanged by itself.
	store := func(lane, i int) {
		if lane == 0 {
			a.VMOVDQU64(x[i].AsX(), at(dst, 0))
		} else {
			a.VEXTRACTI32X4(operand.U8(uint8(lane)), x[i], at(dst, 0))
		}
		a.ADDQ(stepDst, dst)
	}
	for lane := range 4 {
		a.CMPQ(n, operand.U8(16))
		a.JLT(operand.LabelRef(label("few%d", lane)))
		for i := range 16 {
			store(lane, i)
		}
		a.SUBQ(operand.U8(16), n)
	}
	a.ADDQ(operand.U8(64), src)
	a.TESTQ(n, n)
	a.JNZ(operand.LabelRef("block"))
	a.JMP(operand.LabelRef("end"))
	for lane := range 4 {
		a.Label(label("few%d", lane))
		for i := range 15 {
			a.SUBQ(operand.U8(1), n)
			a.JLT(operand.LabelRef("end"))
			store(lane, i)
		}
		if lane < 3 {
			a.JMP(operand.LabelRef("end"))
		}
	}
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}

// combine512 is combine in registers of 512 bits.
func (a *asm) combine512(order operand.Mem, signed, product bool) {
	name := "sum"
	if product {
		name = "product"
	}
	a.function(name+signName(signed)+"AVX512", "func(dst, a, b *byte, n int, q *Codes)")
	pa := a.Load(a.Param("a"), a.GP64())
	pb := a.Load(a.Param("b"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	q := a.Load(a.Param("q"), a.GP64())
	var v [12]reg.VecVirtual
	for i := range v {
		v[i] = a.ZMM()
		a.VBROADCASTSS(at(q, 4*i), v[i])
	}
	w := a.codeWriterOf(order, v[5], v[6], v[7])
	code := func(p reg.Register, off int, mask reg.Register, x reg.VecVirtual) reg.VecVirtual {
		switch {
		case signed && mask != nil:
			a.VPMOVSXBD_Z(at(p, off), mask, x)
		case signed:
			a.VPMOVSXBD(at(p, off), x)
		case mask != nil:
			a.VPMOVZXBD_Z(at(p, off), mask, x)
		default:
			a.VPMOVZXBD(at(p, off), x)
		}
		a.VCVTDQ2PS(x, x)
		return x
	}
	real := func(p reg.Register, off int, mask reg.Register, zero, scale reg.VecVirtual) reg.VecVirtual {
		x := code(p, off, mask, a.ZMM())
		a.VSUBPS(zero, x, x)
		a.VMULPS(scale, x, x)
		return x
	}
	w.guesses(v[4], v[11], signed, func(off int, x reg.VecVirtual) {
		code(pa, off/4, nil, x)
		y := code(pb, off/4, nil, a.ZMM())
		a.VFMADD213PS(v[10], v[9], y)
		if product {
			a.VSUBPS(v[0], x, x)
			a.VMULPS(y, x, x)
		} else {
			a.VFMADD213PS(y, v[8], x)
		}
	})
	w.write(n, func(off int, mask reg.Register) reg.VecVirtual {
		x, y := real(pa, off/4, mask, v[0], v[1]), real(pb, off/4, mask, v[2], v[3])
		if product {
			a.VMULPS(y, x, x)
		} else {
			a.VADDPS(y, x, x)
		}
		return x
	}, step{pa, 1}, step{pb, 1})
	a.VZEROUPPER()
	a.RET()
}

// codeWriter limits, rounds and stores codes.
type codeWriter struct {
	a   *asm
	dst reg.GPVirtual
	// low keeps the lower byte of each 16 bits, order undoes that of packing.
	lo, hi, zero, order, low reg.VecVirtual
	by, inverse, doubt       reg.VecVirtual // see divide; nil where nothing divides
	// See guesses.
	guess              func(off int, x reg.VecVirtual)
	words, least, most reg.VecVirtual
	signed             bool
}

// codeWriter takes the limits and the zero point from the function's parameters.
func (a *asm) codeWriter(order operand.Mem) *codeWriter {
	return a.codeWriterOf(order, a.spread512("lo"), a.spread512("hi"), a.spread512("zero"))
}

func (a *asm) codeWriterOf(order operand.Mem, lo, hi, zero reg.VecVirtual) *codeWriter {
	w := &codeWriter{a: a, dst: a.GP64(), lo: lo, hi: hi, zero: zero, order: a.ZMM()}
	a.Load(a.Param("dst"), w.dst)
	table := a.GP64()
	a.LEAQ(order, table)
	a.VPMOVZXBD(operand.Mem{Base: table}, w.order)
	w.low = a.number512(0x00ff00ff)
	return w
}

// spread512 loads a parameter of 32 bits into all lanes.
func (a *asm) spread512(name string) reg.VecVirtual {
	v := a.ZMM()
	a.spreadInts(name, v)
	return v
}

// spreadInts writes an argument of 32 bits to all lanes.
func (a *asm) spreadInts(name string, to reg.VecVirtual) {
	x, g := a.XMM(), a.GP32()
	a.MOVL(a.argument(name), g)
	a.VMOVD(g, x)
	a.VPBROADCASTD(x, to)
}

// divide lets the numbers be divided. A division takes the processor as long as all else, so
// numbers are multiplied by the inverse, and divided only where that could be rounded to another
// code: the product is off by 1.5·2^-23 of itself at most, which for codes of 8 bits, 383 from
// their zero point at most, is less than 2^-13; so it is in doubt where it lies so near to the
// middle of two codes. That holds for divisors whose inverse is a normal number; with others all
// is in doubt.
func (w *codeWriter) divide(by reg.VecVirtual) {
	a := w.a
	w.by, w.inverse, w.doubt = by, a.ZMM(), a.ZMM()
	one := a.number512(math.Float32bits(1))
	a.VDIVPS(by, one, w.inverse)
	size := a.ZMM()
	a.VPANDD(a.number512(1<<31-1), by, size)
	// Biased exponents of 2 to 252 as integers: the inverse's are then of 1 to 252.
	a.VPSUBD(a.number512(2<<23), size, size)
	a.VPCMPUD(operand.U8(1), a.number512(251<<23), size, reg.K2)
	a.VMOVAPS_Z(a.number512(math.Float32bits(0.5-1.0/(1<<13))), reg.K2, w.doubt)
}

// guesses is divide for numbers of which guess knows about what they are when they have been
// divided: those in doubt are computed as they are defined. Guesses are limited as codes, with a
// sign or without.
func (w *codeWriter) guesses(by, doubt reg.VecVirtual, signed bool, guess func(off int, x reg.VecVirtual)) {
	a := w.a
	w.by, w.doubt, w.signed, w.guess = by, doubt, signed, guess
	bytes := func(x reg.VecVirtual) reg.VecVirtual {
		v := a.ZMM()
		a.VCVTPS2DQ(x, v)
		a.VPADDD(w.zero, v, v)
		a.VPMOVDB(v, v.AsX())
		a.VPBROADCASTB(v.AsX(), v)
		return v
	}
	w.least, w.most, w.words = bytes(w.lo), bytes(w.hi), a.ZMM()
	a.VPBROADCASTW(w.zero.AsX(), w.words)
}

// codes narrows integers of guesses to codes.
func (w *codeWriter) codes(r [4]reg.VecVirtual) {
	a := w.a
	for i := 0; i < 4; i += 2 {
		a.VPACKSSDW(r[i+1], r[i], r[i])
		a.VPADDSW(w.words, r[i], r[i])
	}
	pack, largest, smallest := a.VPACKUSWB, a.VPMAXUB, a.VPMINUB
	if w.signed {
		pack, largest, smallest = a.VPACKSSWB, a.VPMAXSB, a.VPMINSB
	}
	pack(r[2], r[0], r[0])
	largest(w.least, r[0], r[0])
	smallest(w.most, r[0], r[0])
}

// largestSize is VRANGEPS's choice of the larger of two sizes, without its sign.
const largestSize = 0b1011

// number512 puts bits into all lanes.
func (a *asm) number512(bits uint32) reg.VecVirtual {
	v, x, g := a.ZMM(), a.XMM(), a.GP32()
	a.MOVL(operand.U32(bits), g)
	a.VMOVD(g, x)
	a.VPBROADCASTD(x, v)
	return v
}

// write stores the codes of n numbers, 64 at a time, then up to 16; value gives 16 of them, off
// bytes of 32-bit elements on, those of a mask alone where there is one. NaN becomes the
// lower limit.
func (w *codeWriter) write(n reg.Register, value func(off int, mask reg.Register) reg.VecVirtual, steps ...step) {
	a := w.a
	limit := func(x reg.VecVirtual) {
		a.VMAXPS(w.lo, x, x)
		a.VMINPS(w.hi, x, x)
	}
	round := func(x reg.VecVirtual) {
		a.VCVTPS2DQ(x, x)
		a.VPADDD(w.zero, x, x)
	}
	// exact puts numbers, divided and limited, into x.
	exact := func(off int, mask reg.Register, x reg.VecVirtual) {
		y := value(off, mask)
		if w.by != nil {
			a.VDIVPS(w.by, y, y)
		}
		a.VMAXPS(w.lo, y, y)
		a.VMINPS(w.hi, y, x)
	}
	next := func(elements int) {
		for _, s := range append(steps, step{w.dst, 1}) {
			a.ADDQ(operand.U32(uint32(elements*s.by)), s.p)
		}
	}
	a.Label("many")
	a.SUBQ(operand.U8(64), n)
	a.JLT(operand.LabelRef("few"))
	r := [4]reg.VecVirtual{a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()}
	if w.by == nil {
		for i, x := range r {
			exact(64*i, nil, x)
		}
	} else {
		// The largest distance from a integer.
		far := a.ZMM()
		for i, x := range r {
			y := far
			if i > 0 {
				y = a.ZMM()
			}
			if w.guess != nil {
				w.guess(64*i, x)
			} else {
				a.VMULPS(w.inverse, value(64*i, nil), x)
				limit(x)
			}
			a.VREDUCEPS(operand.U8(0), x, y)
			if i > 0 {
				a.VRANGEPS(operand.U8(largestSize), y, far, far)
			}
		}
		a.VRANGEPS(operand.U8(largestSize), far, far, far)
		a.VCMPPS(operand.U8(notLess), w.doubt, far, reg.K2)
		a.KORTESTW(reg.K2, reg.K2)
		a.JNZ(operand.LabelRef("doubt"))
		a.Label("sure")
	}
	if w.guess != nil {
		for _, x := range r {
			a.VCVTPS2DQ(x, x)
		}
		w.codes(r)
	} else {
		for _, x := range r {
			round(x)
		}
		for i := 0; i < 4; i += 2 {
			a.VPACKSSDW(r[i+1], r[i], r[i])
			a.VPANDD(w.low, r[i], r[i])
		}
		a.VPACKUSWB(r[2], r[0], r[0])
	}
	a.VPERMD(r[0], w.order, r[0])
	a.VMOVDQU64(r[0], at(w.dst, 0))
	next(64)
	a.JMP(operand.LabelRef("many"))
	if w.by != nil {
		a.Label("doubt")
		for i, x := range r {
			exact(64*i, nil, x)
		}
		a.JMP(operand.LabelRef("sure"))
	}
	a.Label("few")
	a.ADDQ(operand.U8(64), n)
	a.JZ(operand.LabelRef("end"))
	ones, bits := a.GP64(), a.GP64()
	a.MOVQ(operand.I32(-1), ones)
	a.Label("sixteen")
	a.BZHIQ(n, ones, bits)
	a.KMOVW(bits.As32(), reg.K1)
	x := a.ZMM()
	exact(0, reg.K1, x)
	round(x)
	a.VPMOVDB(x, reg.K1, at(w.dst, 0))
	next(16)
	a.SUBQ(operand.U8(16), n)
	a.JGT(operand.LabelRef("sixteen"))
	a.Label("end")
}
