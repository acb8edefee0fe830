package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// codes512 makes the loops over codes of 8 bits that have registers of 512 bits: they take any number of elements.
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
	a.rescaleRows(order)
	for _, signed := range []bool{false, true} {
		for _, product := range []bool{false, true} {
			a.combine512(order, signed, product)
		}
	}
}

// rescaleRows writes the codes of (src + bias)·scale for rows, each of which has a bias and a scale.
func (a *asm) rescaleRows(order operand.Mem) {
	a.function("rescaleRowsAVX512", "func(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, lo, hi float32, zero int32)")
	to := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	from := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	scales := a.Load(a.Param("scales"), a.GP64())
	biases := a.Load(a.Param("bias"), a.GP64())
	w := a.codeWriter(order)
	src, left := a.GP64(), a.GP64()
	scale, bias := a.ZMM(), a.ZMM()
	a.Label("row")
	a.MOVQ(from, src)
	a.MOVQ(to, w.dst)
	a.MOVQ(n, left)
	a.VBROADCASTSS(at(scales, 0), scale)
	a.VPBROADCASTD(at(biases, 0), bias)
	w.write(left, func(off int, mask reg.Register) reg.VecVirtual {
		x := a.ZMM()
		if mask != nil {
			a.VMOVDQU32_Z(at(src, off), mask, x)
			a.VPADDD(bias, x, x)
		} else {
			a.VPADDD(at(src, off), bias, x)
		}
		a.VCVTDQ2PS(x, x)
		a.VMULPS(scale, x, x)
		return x
	}, step{src, 4})
	a.ADDQ(operand.U8(4), scales)
	a.ADDQ(operand.U8(4), biases)
	a.ADDQ(stepDst, to)
	a.ADDQ(stepSrc, from)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// combine512 is combine in registers of 512 bits.
func (a *asm) combine512(order operand.Mem, signed, product bool) {
	name := "sum"
	if product {
		name = "product"
	}
	a.function(name+signName(signed)+"AVX512", "func(dst, a, b *byte, n int, q *byte)")
	pa := a.Load(a.Param("a"), a.GP64())
	pb := a.Load(a.Param("b"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	q := a.Load(a.Param("q"), a.GP64())
	var v [8]reg.VecVirtual
	for i := range v {
		v[i] = a.ZMM()
		a.VBROADCASTSS(at(q, 4*i), v[i])
	}
	w := a.codeWriterOf(order, v[5], v[6], v[7])
	w.divide(v[4])
	real := func(p reg.Register, off int, mask reg.Register, zero, scale reg.VecVirtual) reg.VecVirtual {
		x := a.ZMM()
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
		a.VSUBPS(zero, x, x)
		a.VMULPS(scale, x, x)
		return x
	}
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
	v, x, g := a.ZMM(), a.XMM(), a.GP32()
	p, err := a.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	a.MOVL(p.Addr, g)
	a.MOVD(g, x)
	a.VPBROADCASTD(x, v)
	return v
}

// divide lets the numbers be divided. A division takes the processor as long as all else, so numbers are multiplied by the
// inverse, and divided only where that could be rounded to another code: the product is off by 1.5·2^-23 of itself at most, which
// for codes of 8 bits, 383 from their zero point at most, is less than 2^-13; so it is in doubt where it lies so near to the
// middle of two codes. That holds for divisors whose inverse is a normal number; with others all is in doubt.
func (w *codeWriter) divide(by reg.VecVirtual) {
	a := w.a
	w.by, w.inverse, w.doubt = by, a.ZMM(), a.ZMM()
	one := a.number512(math.Float32bits(1))
	a.VDIVPS(by, one, w.inverse)
	size := a.ZMM()
	a.VPANDD(a.number512(1<<31-1), by, size)
	// Biased exponents of 2 to 252 as whole numbers: the inverse's are then of 1 to 252.
	a.VPSUBD(a.number512(2<<23), size, size)
	a.VPCMPUD(operand.U8(1), a.number512(251<<23), size, reg.K2)
	a.VMOVAPS_Z(a.number512(math.Float32bits(0.5-1.0/(1<<13))), reg.K2, w.doubt)
}

// largestSize is VRANGEPS's choice of the larger of two sizes, without its sign.
const largestSize = 0b1011

// number512 puts bits into all lanes.
func (a *asm) number512(bits uint32) reg.VecVirtual {
	v, x, g := a.ZMM(), a.XMM(), a.GP32()
	a.MOVL(operand.U32(bits), g)
	a.MOVD(g, x)
	a.VPBROADCASTD(x, v)
	return v
}

// write stores the codes of n numbers, 64 at a time, then up to 16; value gives 16 of them, off bytes of 32-bit
// elements on, those of a mask alone where there is one. What is no number becomes the lower limit.
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
		// The largest distance from a whole number.
		far := a.ZMM()
		for i, x := range r {
			y := far
			if i > 0 {
				y = a.ZMM()
			}
			a.VMULPS(w.inverse, value(64*i, nil), x)
			limit(x)
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
	for _, x := range r {
		round(x)
	}
	for i := 0; i < 4; i += 2 {
		a.VPACKSSDW(r[i+1], r[i], r[i])
		a.VPANDD(w.low, r[i], r[i])
	}
	a.VPACKUSWB(r[2], r[0], r[0])
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
