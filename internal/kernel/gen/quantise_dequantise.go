package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scales writes loops between codes or sums and real numbers that have registers of 512 bits:
// they take any number of elements.
func (a *asm) scales(places operand.Mem) {
	a.addScaled()
	a.nonzeros(places)
	a.curve16()
	a.quantiseRow()
	a.quantiseRows(false)
	a.quantiseRows(true)
	a.rowPairs()
	a.lessTimes()
	for _, w := range []width{ymm, zmm} {
		for _, signed := range []bool{false, true} {
			a.dequantise(w, 8, signed)
			a.dequantise(w, 16, signed)
		}
	}
	a.quantise16(false)
	a.quantise16(true)
	for _, together := range []bool{false, true} {
		a.scaleRows(together)
	}
}

// quantise16 writes codes of 16 bits: src/scale, limited and rounded to even, plus zero. What is
// NaN becomes the lower limit. With away ties go away from zero, and NaN becomes zero.
func (a *asm) quantise16(away bool) {
	name := "quantise16AVX512"
	if away {
		name = "quantiseAway16AVX512"
	}
	a.function(name, "func(dst *uint16, src *float32, n int, scale, lo, hi float32, zero int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	scale, lo, hi, zero := a.spread512("scale"), a.spread512("lo"), a.spread512("hi"), a.spread512("zero")
	var sign, half reg.VecVirtual
	if away {
		// A half itself, added before the rest is cut off, would carry what is just below one
		// half up.
		sign, half = a.number512(1<<31), a.number512(0x3effffff)
	}
	a.masked("words", n, 16, func(mask reg.Register) {
		x := a.ZMM()
		a.loadFloats(at(src, 0), mask, x)
		a.VDIVPS(scale, x, x)
		if away {
			part := a.ZMM()
			a.VCMPPS(operand.U8(7), x, x, reg.K2)
			a.VMOVAPS_Z(x, reg.K2, x)
			a.VMAXPS(lo, x, x)
			a.VMINPS(hi, x, x)
			a.VPANDD(sign, x, part)
			a.VPORD(half, part, part)
			a.VADDPS(part, x, x)
			a.VCVTTPS2DQ(x, x)
		} else {
			a.VMAXPS(lo, x, x)
			a.VMINPS(hi, x, x)
			a.VCVTPS2DQ(x, x)
		}
		a.VPADDD(zero, x, x)
		if mask != nil {
			a.VPMOVDW(x, mask, at(dst, 0))
		} else {
			a.VPMOVDW(x, at(dst, 0))
		}
	}, step{src, 64}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// dequantise writes (src - zero)·scale for codes of 8 or 16 bits. With 256-bit registers n is a
// multiple of 8.
func (a *asm) dequantise(w width, bits int, signed bool) {
	of := "byte"
	if bits == 16 {
		of = "uint16"
	}
	a.function(fmt.Sprintf("dequantise%s%d%s", signName(signed)[:1], bits, w.set), "func(dst *float32, src *"+of+", n int, zero int32, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	spread := a.spreadParam
	if w.masks {
		spread = a.spread512
	}
	zero, scale := spread("zero"), spread("scale")
	each := func(mask reg.Register) {
		x := a.vec(w)
		switch {
		case bits == 8:
			a.widenBytes(at(src, 0), mask, signed, x)
		case signed && mask != nil:
			a.VPMOVSXWD_Z(at(src, 0), mask, x)
		case signed:
			a.VPMOVSXWD(at(src, 0), x)
		case mask != nil:
			a.VPMOVZXWD_Z(at(src, 0), mask, x)
		default:
			a.VPMOVZXWD(at(src, 0), x)
		}
		a.VPSUBD(zero, x, x)
		a.VCVTDQ2PS(x, x)
		a.VMULPS(scale, x, x)
		a.storeFloats(x, mask, at(dst, 0))
	}
	steps := []step{{src, w.floats * bits / 8}, {dst, w.bytes()}}
	if w.masks {
		a.masked("codes", n, w.floats, each, steps...)
	} else {
		a.loop(n, uint8(w.floats), func() { each(nil) }, steps...)
	}
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) loadFloats(m operand.Mem, mask, x reg.Register) {
	if mask != nil {
		a.VMOVUPS_Z(m, mask, x)
	} else {
		a.VMOVUPS(m, x)
	}
}

func (a *asm) storeFloats(x, mask reg.Register, m operand.Mem) {
	if mask != nil {
		a.VMOVUPS(x, mask, m)
	} else {
		a.VMOVUPS(x, m)
	}
}

// scaleRows writes rows of n sums times the weight of their column times scale, or that of their
// row where there are scales, in this order or (together) the sum times the product of both, plus
// the bias of the column, if there is one. Steps are in bytes.
func (a *asm) scaleRows(together bool) {
	name := "scaleRows"
	if together {
		name = "scaleRowsTogether"
	}
	a.function(name+"AVX512", "func(dst *float32, stepDst int, sums *int32, stepSums, rows, n int, weights, bias, scales *float32, scale float32)")
	to, from := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("sums"), a.GP64())
	stepDst, stepSums := a.Load(a.Param("stepDst"), a.GP64()), a.Load(a.Param("stepSums"), a.GP64())
	rows, scales := a.Load(a.Param("rows"), a.GP64()), a.Load(a.Param("scales"), a.GP64())
	dst, sums, weights, bias, left := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	scale := a.spread512("scale")
	load := func(p reg.Register, mask reg.Register) reg.VecVirtual {
		x := a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(p, 0), mask, x)
		} else {
			a.VMOVUPS(at(p, 0), x)
		}
		return x
	}
	blocks := 0
	a.Label("row")
	a.TESTQ(scales, scales)
	a.JZ(operand.LabelRef("scaled"))
	a.VBROADCASTSS(at(scales, 0), scale)
	a.ADDQ(operand.U8(4), scales)
	a.Label("scaled")
	a.MOVQ(to, dst)
	a.MOVQ(from, sums)
	a.Load(a.Param("n"), left)
	a.Load(a.Param("weights"), weights)
	a.Load(a.Param("bias"), bias)
	a.masked("sums", left, 16, func(mask reg.Register) {
		x, w := load(sums, mask), load(weights, mask)
		a.VCVTDQ2PS(x, x)
		if together {
			a.VMULPS(scale, w, w)
			a.VMULPS(w, x, x)
		} else {
			a.VMULPS(w, x, x)
			a.VMULPS(scale, x, x)
		}
		none := label("nobias%d", blocks)
		blocks++
		a.TESTQ(bias, bias)
		a.JZ(operand.LabelRef(none))
		b := load(bias, mask)
		a.VADDPS(b, x, x)
		a.ADDQ(operand.U8(64), bias)
		a.Label(none)
		a.storeFloats(x, mask, at(dst, 0))
	}, step{sums, 64}, step{weights, 64}, step{dst, 64})
	a.ADDQ(stepDst, to)
	a.ADDQ(stepSums, from)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// scaledColumns is how many registers of sums addScaled keeps at a time.
const scaledColumns = 4

// addScaled adds ((w·x)·scales)·scale, rounded after each step, to n sums, for count values of x
// in order: the weights of x[i] are those of row places[i], rows step apart. Sums stay in
// registers meanwhile.
func (a *asm) addScaled() {
	a.function("addScaledAVX512", "func(dst, w, scales *float32, n int, x *float32, places *int32, count, step int, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	w := a.Load(a.Param("w"), a.GP64())
	scales := a.Load(a.Param("scales"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	x := a.Load(a.Param("x"), a.GP64())
	places := a.Load(a.Param("places"), a.GP64())
	count := a.Load(a.Param("count"), a.GP64())
	by := a.Load(a.Param("step"), a.GP64())
	a.SHLQ(operand.U8(2), by)
	scale := a.spread512("scale")
	blocks := 0
	block := func(vecs int, mask reg.Register) {
		name := label("value%d", blocks)
		blocks++
		i, p, value, t := a.GP64(), a.GP64(), a.ZMM(), a.ZMM()
		sums, times := make([]reg.VecVirtual, vecs), make([]reg.VecVirtual, vecs)
		for v := range vecs {
			sums[v], times[v] = a.ZMM(), a.ZMM()
			a.loadFloats(at(dst, 64*v), mask, sums[v])
			a.loadFloats(at(scales, 64*v), mask, times[v])
		}
		a.XORQ(i, i)
		a.Label(name)
		a.MOVLQSX(operand.Mem{Base: places, Index: i, Scale: 4}, p)
		a.IMULQ(by, p)
		a.ADDQ(w, p)
		a.VBROADCASTSS(operand.Mem{Base: x, Index: i, Scale: 4}, value)
		for v := range vecs {
			if mask != nil {
				a.VMULPS_Z(at(p, 64*v), value, mask, t)
			} else {
				a.VMULPS(at(p, 64*v), value, t)
			}
			a.VMULPS(times[v], t, t)
			a.VMULPS(scale, t, t)
			a.VADDPS(t, sums[v], sums[v])
		}
		a.INCQ(i)
		a.CMPQ(i, count)
		a.JLT(operand.LabelRef(name))
		for v := range vecs {
			a.storeFloats(sums[v], mask, at(dst, 64*v))
		}
	}
	a.Label("wide")
	a.CMPQ(n, operand.U8(16*scaledColumns))
	a.JLT(operand.LabelRef("narrow"))
	block(scaledColumns, nil)
	for _, p := range []reg.Register{w, scales, dst} {
		a.ADDQ(operand.U32(64*scaledColumns), p)
	}
	a.SUBQ(operand.U8(16*scaledColumns), n)
	a.JMP(operand.LabelRef("wide"))
	a.Label("narrow")
	a.masked("values", n, 16, func(mask reg.Register) { block(1, mask) }, step{w, 64}, step{scales, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// nonzeros writes the values that are not zero, and their places, with up to 15 of no meaning
// behind them, and returns how many there are.
func (a *asm) nonzeros(lanes operand.Mem) {
	a.function("nonzerosAVX512", "func(values *float32, places *int32, x *float32, n int) int")
	values := a.Load(a.Param("values"), a.GP64())
	places := a.Load(a.Param("places"), a.GP64())
	x := a.Load(a.Param("x"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	zero, place, sixteen := a.ZMM(), a.ZMM(), a.number512(16)
	a.VPXORD(zero, zero, zero)
	a.VPMOVZXBD(lanes, place)
	total, more := a.GP64(), a.GP64()
	a.XORQ(total, total)
	a.masked("values", n, 16, func(mask reg.Register) {
		v, where := a.ZMM(), a.ZMM()
		a.loadFloats(at(x, 0), mask, v)
		a.VCMPPS(operand.U8(4), zero, v, reg.K2) // NaN is not zero
		a.VCOMPRESSPS_Z(v, reg.K2, v)
		a.VPCOMPRESSD_Z(place, reg.K2, where)
		a.VMOVUPS(v, operand.Mem{Base: values, Index: total, Scale: 4})
		a.VMOVDQU32(where, operand.Mem{Base: places, Index: total, Scale: 4})
		a.VPADDD(sixteen, place, place)
		a.KMOVW(reg.K2, more.As32())
		a.POPCNTQ(more, more)
		a.ADDQ(more, total)
	}, step{x, 64})
	a.VZEROUPPER()
	a.Store(total, a.ReturnIndex(0))
	a.RET()
}

// sixteenPlaces is a table of the bytes 0 to 15.
func (a *asm) sixteenPlaces() operand.Mem {
	m := a.StaticGlobal("sixteenPlaces")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		a.AddDatum(i, operand.U8(uint8(i)))
	}
	return m
}

// curve16 writes the curves of simd.Curve16: of (x·mul + round) >> shift the size finds a line of
// the table, with its value in the lower 16 bits and its rise in the upper ones.
func (a *asm) curve16() {
	a.function("curve16AVX512", "func(dst, src *int16, n int, table *uint32, mul, round, shift, bits, mask, above, below, out int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	table := a.Load(a.Param("table"), a.GP64())
	var p [8]reg.VecVirtual
	for i, name := range []string{"mul", "round", "shift", "bits", "mask", "above", "below", "out"} {
		p[i] = a.spread512(name)
	}
	mul, round, shift, bits, rest, above, below, out := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
	last, low := a.number512(255), a.number512(0xffff)
	a.masked("values", n, 16, func(mask reg.Register) {
		v, size, line, e, y := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		a.loadWords(at(src, 0), mask, v)
		a.VPMULLD(mul, v, v)
		a.VPADDD(round, v, v)
		a.VPSRAVD(shift, v, v)
		a.VPABSD(v, size)
		a.VPSRLVD(bits, size, line)
		a.VPMINUD(last, line, line)
		a.VPXORD(e, e, e)
		a.KXNORW(reg.K2, reg.K2, reg.K2)
		a.VPGATHERDD(operand.Mem{Base: table, Index: line, Scale: 4}, reg.K2, e)
		a.VPANDD(rest, size, size)
		a.VPSRLD(operand.U8(16), e, y)
		a.VPMULLD(size, y, y)
		a.VPANDD(low, e, e)
		a.VPSLLVD(bits, e, e)
		a.VPADDD(e, y, y)
		a.VPMOVD2M(v, reg.K2)
		negative := a.ZMM()
		a.VPADDD(above, y, negative)
		a.VPSUBD(y, below, reg.K2, negative)
		a.VPSRAVD(out, negative, negative)
		a.storeWords(negative, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// quantiseRow writes codes of 8 bits: src·mul, limited, rounded with ties away from zero, plus
// zero.
func (a *asm) quantiseRow() {
	a.function("quantiseRowAVX512", "func(dst *byte, src *float32, n int, mul, lo, hi float32, zero int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	mul, lo, hi, zero := a.spread512("mul"), a.spread512("lo"), a.spread512("hi"), a.spread512("zero")
	sign, half := a.number512(1<<31), a.number512(0x3effffff) // see awayMasks
	a.masked("codes", n, 16, func(mask reg.Register) {
		a.codesAway(src, dst, mask, &codesBy{mul, lo, hi, zero, sign, half})
	}, step{src, 64}, step{dst, 16})
	a.VZEROUPPER()
	a.RET()
}

// codesBy is what numbers become codes by: times mul, between lo and hi, half a unit of their
// sign more (see awayMasks), cut off, plus zero.
type codesBy struct{ mul, lo, hi, zero, sign, half reg.Register }

// codesAway makes codes of 16 numbers, of those that mask has where it is not nil.
func (a *asm) codesAway(src, dst, mask reg.Register, by *codesBy) {
	x, part := a.ZMM(), a.ZMM()
	a.loadFloats(at(src, 0), mask, x)
	a.VMULPS(by.mul, x, x)
	a.VMAXPS(by.lo, x, x)
	a.VMINPS(by.hi, x, x)
	a.VPANDD(by.sign, x, part)
	a.VPORD(by.half, part, part)
	a.VADDPS(part, x, x)
	a.VCVTTPS2DQ(x, x)
	a.VPADDD(by.zero, x, x)
	if mask != nil {
		a.VPMOVDB(x, mask, at(dst, 0))
	} else {
		a.VPMOVDB(x, at(dst, 0))
	}
}

// lessTimes takes b times by from n integers.
func (a *asm) lessTimes() {
	a.function("lessTimesAVX512", "func(dst, b *int32, n int, by int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	b := a.Load(a.Param("b"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	by := a.spread512("by")
	a.masked("values", n, 16, func(mask reg.Register) {
		x, y := a.ZMM(), a.ZMM()
		a.loadFloats(at(b, 0), mask, x)
		a.loadFloats(at(dst, 0), mask, y)
		a.VPMULLD(by, x, x)
		a.VPSUBD(x, y, y)
		a.storeFloats(y, mask, at(dst, 0))
	}, step{b, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
