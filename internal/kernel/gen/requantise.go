package main

import (
	"math"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// requantises writes the requantisation of rows for multipliers of 2^30 and more whose shifts go
// to the right by 1 to 20, and sums of at most 2^30: see requantiseRows.
func requantises(a *asm, order operand.Mem) {
	a.requantise16(false)
	a.requantise16(true)
	a.requantise16Narrow(false)
	a.requantise16Narrow(true)
	a.halves()
	a.halvesNarrow()
	a.apart()
	a.weave()
	a.lostWords()
	for _, round := range []string{"", "Up", "Fused"} {
		for _, regs := range []int{1, 2, 4} {
			a.requantiseRows(regs, round, true, order)
			if regs > 1 {
				a.requantiseRows(regs, round, false, order)
			}
		}
	}
}

// requantise16 writes rows of n channels of (sum + bias)·mul/2^down, rounded with half, plus
// zero, between lo and hi, in 64 bits of which 32 count from the shift on. Sums are those of
// parts, each as far from the last as stepParts says, and are read to a multiple of 16; all but
// the last low of them count 256 times where low is less than parts, and not 0. With halves they
// are floats, and integers: 256 times the first part and the second.
func (a *asm) requantise16(halves bool) {
	if halves {
		a.function("requantiseHalvesAVX512", "func(dst *int16, stepDst int, sums *float32, stepSums, rows, n, stepParts int, scales *int64, zero, lo, hi int32)")
	} else {
		a.function("requantise16AVX512", "func(dst *int16, stepDst int, sums *int32, stepSums, rows, n, parts, low, stepParts int, scales *int64, zero, lo, hi int32)")
	}
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	sums := a.Load(a.Param("sums"), a.GP64())
	stepSums := a.Load(a.Param("stepSums"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	stepParts := a.Load(a.Param("stepParts"), a.GP64())
	scales := a.Load(a.Param("scales"), a.GP64())
	zero, lo, hi := a.spread512("zero"), a.spread512("lo"), a.spread512("hi")
	i, left, p, q := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	var low reg.Register
	if !halves {
		low = a.Load(a.Param("low"), a.GP64())
	}
	a.Label("row")
	a.XORQ(i, i)
	a.MOVQ(scales, q)
	a.Label("sixteen")
	v, quarters := [2]reg.VecVirtual{a.ZMM(), a.ZMM()}, [2]reg.VecVirtual{a.YMM(), a.YMM()}
	a.LEAQ(operand.Mem{Base: sums, Index: i, Scale: 4}, p)
	if halves {
		for h := range v {
			low := a.ZMM()
			a.VCVTPS2QQ(at(p, 32*h), v[h])
			a.VCVTPS2QQ(operand.Mem{Base: p, Index: stepParts, Scale: 1, Disp: 32 * h}, low)
			a.VPSLLQ(operand.U8(8), v[h], v[h])
			a.VPADDQ(low, v[h], v[h])
		}
	} else {
		for h := range v {
			a.VPMOVSXDQ(at(p, 32*h), v[h])
		}
		a.Load(a.Param("parts"), left)
		a.Label("part")
		a.DECQ(left)
		a.JZ(operand.LabelRef("whole"))
		a.ADDQ(stepParts, p)
		a.CMPQ(left, low)
		a.JNE(operand.LabelRef("same"))
		for h := range v {
			a.VPSLLQ(operand.U8(8), v[h], v[h])
		}
		a.Label("same")
		for h := range v {
			more := a.ZMM()
			a.VPMOVSXDQ(at(p, 32*h), more)
			a.VPADDQ(more, v[h], v[h])
		}
		a.JMP(operand.LabelRef("part"))
		a.Label("whole")
	}
	for h := range v {
		for k, f := range []func(...operand.Op){a.VPADDQ, a.VPMULLQ, a.VPADDQ, a.VPSRAVQ} {
			f(at(q, 256*h+64*k), v[h], v[h])
		}
		a.VPMOVQD(v[h], quarters[h])
	}
	all, words := a.ZMM(), a.YMM()
	a.VINSERTI64X4(operand.U8(1), quarters[1], quarters[0].AsZ(), all)
	a.VPADDD(zero, all, all)
	a.VPMAXSD(lo, all, all)
	a.VPMINSD(hi, all, all)
	a.VPMOVDW(all, words)
	a.MOVQ(n, left)
	a.SUBQ(i, left)
	a.MOVQ(operand.I32(16), p)
	a.CMPQ(left, p)
	a.CMOVQGT(p, left)
	a.MOVQ(operand.I32(-1), p)
	a.BZHIQ(left, p, p)
	a.KMOVW(p.As32(), reg.K1)
	a.VMOVDQU16(words, reg.K1, operand.Mem{Base: dst, Index: i, Scale: 2})
	a.ADDQ(operand.U32(512), q)
	a.ADDQ(operand.U8(16), i)
	a.CMPQ(i, n)
	a.JLT(operand.LabelRef("sixteen"))
	a.ADDQ(stepDst, dst)
	a.ADDQ(stepSums, sums)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// halves takes 16-bit numbers apart: their upper 8 bits, with the sign, and the lower ones, as
// floats.
func (a *asm) halves() {
	a.function("halvesAVX512", "func(upper, lower *float32, src *int16, n int)")
	upper := a.Load(a.Param("upper"), a.GP64())
	lower := a.Load(a.Param("lower"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	low := a.number512(255)
	a.masked("values", n, 16, func(mask reg.Register) {
		x, y := a.ZMM(), a.ZMM()
		a.loadWords(at(src, 0), mask, x)
		a.VPANDD(low, x, y)
		a.VPSRAD(operand.U8(8), x, x)
		a.VCVTDQ2PS(x, x)
		a.VCVTDQ2PS(y, y)
		a.storeFloats(x, mask, at(upper, 0))
		a.storeFloats(y, mask, at(lower, 0))
	}, step{src, 32}, step{upper, 64}, step{lower, 64})
	a.VZEROUPPER()
	a.RET()
}

// apart is halves in 16 bits.
func (a *asm) apart() {
	a.function("apartAVX512", "func(upper, lower, src *int16, n int)")
	upper := a.Load(a.Param("upper"), a.GP64())
	lower := a.Load(a.Param("lower"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	low := a.number512(0x00ff00ff)
	a.masked("values", n, 32, func(mask reg.Register) {
		x, y := a.ZMM(), a.ZMM()
		if mask != nil {
			a.VMOVDQU16_Z(at(src, 0), mask, x)
		} else {
			a.VMOVDQU16(at(src, 0), x)
		}
		a.VPANDD(low, x, y)
		a.VPSRAW(operand.U8(8), x, x)
		if mask != nil {
			a.VMOVDQU16(x, mask, at(upper, 0))
			a.VMOVDQU16(y, mask, at(lower, 0))
		} else {
			a.VMOVDQU16(x, at(upper, 0))
			a.VMOVDQU16(y, at(lower, 0))
		}
	}, step{src, 64}, step{upper, 64}, step{lower, 64})
	a.VZEROUPPER()
	a.RET()
}

// weave writes pairs of lines of n words, step bytes apart, as pairs of words, cols a line of
// which those from n on are 0.
func (a *asm) weave() {
	a.function("weaveAVX512", "func(dst *int16, cols int, src *int16, step, n, pairs int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, cols, src, step, n, pairs := load("dst"), load("cols"), load("src"), load("step"), load("n"), load("pairs")
	i, left, most, bits, p := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(operand.I32(16), most)
	a.Label("pair")
	a.XORQ(i, i)
	a.Label("sixteen")
	a.MOVQ(n, left)
	a.SUBQ(i, left)
	a.MOVQ(operand.I32(0), bits)
	a.CMOVQLT(bits, left)
	a.CMPQ(left, most)
	a.CMOVQGT(most, left)
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(left, bits, bits)
	a.KMOVW(bits.As32(), reg.K1)
	x, y := a.ZMM(), a.ZMM()
	a.LEAQ(operand.Mem{Base: src, Index: i, Scale: 2}, p)
	a.VPMOVZXWD_Z(at(p, 0), reg.K1, x)
	a.VPMOVZXWD_Z(operand.Mem{Base: p, Index: step, Scale: 1}, reg.K1, y)
	a.VPSLLD(operand.U8(16), y, y)
	a.VPORD(x, y, y)
	a.VMOVDQU32(y, at(dst, 0))
	a.ADDQ(operand.U8(64), dst)
	a.ADDQ(operand.U8(16), i)
	a.CMPQ(i, cols)
	a.JLT(operand.LabelRef("sixteen"))
	a.LEAQ(operand.Mem{Base: src, Index: step, Scale: 2}, src)
	a.DECQ(pairs)
	a.JNZ(operand.LabelRef("pair"))
	a.VZEROUPPER()
	a.RET()
}

// lostWords returns the bits, of any of n words, that are others in what their lower bytes stand
// for.
func (a *asm) lostWords() {
	a.function("lostWordsAVX512", "func(src *int16, n int) uint32")
	src, n := a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	lost := a.ZMM()
	a.VPXORD(lost, lost, lost)
	a.masked("words", n, 32, func(mask reg.Register) {
		x, y := a.ZMM(), a.ZMM()
		if mask != nil {
			a.VMOVDQU16_Z(at(src, 0), mask, x)
		} else {
			a.VMOVDQU16(at(src, 0), x)
		}
		a.VPSLLW(operand.U8(8), x, y)
		a.VPSRAW(operand.U8(8), y, y)
		a.VPTERNLOGD(operand.U8(0xf6), y, x, lost) // lost or (x xor y)
	}, step{src, 64})
	a.joinLanes(lost, 4, a.VPORD)
	r := a.GP32()
	a.VMOVD(lost.AsX(), r)
	a.VZEROUPPER()
	a.Store(r, a.ReturnIndex(0))
	a.RET()
}

// requantiseRows quantises blocks of 16 to 64 channels, or the last one, which may lack some.
// Sums get 2^31 added, so that they have no sign and can be multiplied by twice the multiplier,
// which has 32 bits. Of the product the upper half is wanted. Before it is cut off, a number is
// added that rounds it to the nearest, takes the 2^31 away, and has half of the last shift and
// the zero point in it: see quantiseSums. The loops of fused rounding take scales for twice the
// multipliers, what is added for shifts, and what sums begin with for the bias: see fuseSums.
func (a *asm) requantiseRows(regs int, round string, last bool, byColumn operand.Mem) {
	up, fused := round == "Up", round == "Fused"
	name := label("requantise%d", 16*regs)
	if last {
		name = label("requantiseLast%d", 16*regs)
	}
	numbers := []string{"twice", "down", "bias", "half"}
	if fused {
		numbers = []string{"scale", "add", "start", "unused"}
	}
	a.function(name+round+"AVX512", "func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, "+strings.Join(numbers, ", ")+" *int32, zero, lo, hi, sign int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	sums := a.Load(a.Param("sums"), a.GP64())
	stepSums := a.Load(a.Param("stepSums"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	spread := func(name string, bits int) reg.VecVirtual {
		v, g := a.ZMM(), a.GP32()
		a.Load(a.Param(name), g)
		if bits == 32 {
			a.VPBROADCASTD(g, v)
		} else {
			a.VPBROADCASTB(g, v)
		}
		return v
	}
	lo, hi, sign := spread("lo", 8), spread("hi", 8), spread("sign", 8)
	order := a.ZMM()
	c := a.GP64()
	a.MOVL(operand.U32(0x5555), c.As32())
	evens := reg.K1
	a.KMOVW(c.As32(), evens)
	table := a.GP64()
	a.LEAQ(byColumn, table)
	a.VPMOVZXBD(operand.Mem{Base: table}, order)
	there := []reg.OpmaskPhysical{reg.K2, reg.K3, reg.K4, reg.K5}
	if last {
		// Bits of the channels that there are, of all and of each register.
		a.MOVQ(operand.I32(-1), c)
		a.BZHIQ(n, c, c)
		a.KMOVQ(c, reg.K6)
		for i := range regs {
			a.KMOVW(c.As32(), there[i])
			if i < regs-1 {
				a.SHRQ(operand.U8(16), c)
			}
		}
	}
	var params [4]reg.Register
	for i, name := range numbers {
		params[i] = a.Load(a.Param(name), a.GP64())
	}
	load := func(m operand.Mem, i int) reg.VecVirtual {
		v := a.ZMM()
		if last {
			a.VMOVDQU32_Z(m, there[i], v)
		} else {
			a.VMOVDQU32(m, v)
		}
		return v
	}
	from, to, left := a.GP64(), a.GP64(), a.GP64()
	a.Label("block")
	var c4 [4]channels
	var zero, middle, turn reg.VecVirtual
	if zero = a.ZMM(); fused {
		a.MOVL(operand.U32(math.Float32bits(fusedWhole)), c.As32())
		a.VPBROADCASTD(c.As32(), zero)
	} else {
		zero, middle, turn = spread("zero", 32), a.ZMM(), a.ZMM()
		a.MOVQ(operand.U64(1<<31), c)
		a.VPBROADCASTQ(c, middle)
		a.VPBROADCASTD(c.As32(), turn)
	}
	for i := range regs {
		q := &c4[i]
		if fused {
			q.twice, q.half, q.bias = load(at(params[0], 64*i), i), load(at(params[1], 64*i), i), load(at(params[2], 64*i), i)
			continue
		}
		q.twice, q.bias, q.half = load(at(params[0], 64*i), i), load(at(params[2], 64*i), i), load(at(params[3], 64*i), i)
		q.twiceOdd, q.halfOdd = a.ZMM(), a.ZMM()
		part := a.ZMM()
		a.VPSLLVD(load(at(params[1], 64*i), i), zero, part)
		a.VPADDD(part, q.half, q.half)
		a.VPSRLD(operand.U8(1), q.twice, part)
		a.VPSUBD(part, q.half, q.half)
		if !up {
			// Taken from negative sums only: see quantiseSums.
			a.VPTERNLOGD(operand.U8(0xff), part, part, part)
			a.VPADDD(part, q.half, q.half)
		}
		a.VMOVDQA64(q.half, q.halfOdd)
		a.VMOVDQA32(middle, evens, q.halfOdd)
		a.VPSLLQ(operand.U8(32), q.half, q.half)
		a.VPORQ(middle, q.half, q.half)
		a.VPSRLQ(operand.U8(32), q.twice, q.twiceOdd)
		a.VPADDD(turn, q.bias, q.bias)
	}
	a.MOVQ(sums, from)
	a.MOVQ(dst, to)
	a.MOVQ(rows, left)
	a.Label("row")
	var r [4]reg.VecVirtual
	for i := range regs {
		q, v := &c4[i], a.ZMM()
		if last {
			a.VPADDD_Z(at(from, 64*i), q.bias, there[i], v)
		} else {
			a.VPADDD(at(from, 64*i), q.bias, v)
		}
		if fused {
			a.fuseSums(v, q.twice, q.half, zero)
			r[i] = v
		} else {
			even, odd := a.ZMM(), a.ZMM()
			a.quantiseSums(v, even, odd, evens, q.twice, q.twiceOdd, q.half, q.halfOdd, up)
			if last {
				a.VPSRAVD_Z(at(params[1], 64*i), odd, there[i], odd)
			} else {
				a.VPSRAVD(at(params[1], 64*i), odd, odd)
			}
			r[i] = odd
		}
		if i%2 == 1 {
			a.VPACKSSDW(r[i], r[i-1], r[i-1])
		}
	}
	switch regs {
	case 1:
		a.VPACKSSDW(r[0], r[0], r[0])
		a.VPACKSSWB(r[0], r[0], r[0])
	case 2:
		a.VPACKSSWB(r[0], r[0], r[0])
	default:
		a.VPACKSSWB(r[2], r[0], r[0])
	}
	a.VPMAXSB(lo, r[0], r[0])
	a.VPMINSB(hi, r[0], r[0])
	a.VPXORD(sign, r[0], r[0])
	a.VPERMD(r[0], order, r[0])
	switch {
	case last:
		a.VMOVDQU8(r[0], reg.K6, at(to, 0))
	case regs == 2:
		a.VMOVDQU64(r[0].AsY(), at(to, 0))
	default:
		a.VMOVDQU64(r[0], at(to, 0))
	}
	a.ADDQ(stepDst, to)
	a.ADDQ(stepSums, from)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("row"))
	if !last {
		for _, p := range append(params[:], sums) {
			a.ADDQ(operand.U32(uint32(64*regs)), p)
		}
		a.ADDQ(operand.U32(uint32(16*regs)), dst)
		a.SUBQ(operand.U32(uint32(16*regs)), n)
		a.JNZ(operand.LabelRef("block"))
	}
	a.VZEROUPPER()
	a.RET()
}

// channels are the numbers of the channels in a register: see quantiseSums; of fused ones the
// scale, what is added, as half, and what sums begin with.
type channels struct{ twice, twiceOdd, half, halfOdd, bias reg.VecVirtual }

// fusedWhole is the float that fused zeros are, see simd.Fused.
const fusedWhole = 3 << 22

// fuseSums makes codes of sums by the numbers of simd.Fused; add and zero may be memory.
func (a *asm) fuseSums(v, scale reg.Register, add, zero operand.Op) {
	a.VFMADD213PS(add, scale, v)
	a.VPSUBD(zero, v, v)
}

// quantiseSums multiplies sums v, which have 2^31 added; odd is then to be shifted to the right
// by 1 to 20. twice is twice the multipliers, twiceOdd those of every other channel, half and
// halfOdd are added to the products before their lower 32 bits are cut off. evens chooses every
// other channel. Ties go away from zero: a negative sum has one less, which half and halfOdd take
// from all, and which others get back; not so where limits let no result below the zero point
// through (up). twice, twiceOdd, half and halfOdd may be memory.
func (a *asm) quantiseSums(v, even, odd reg.Register, evens reg.OpmaskPhysical, twice, twiceOdd, half, halfOdd operand.Op, up bool) {
	a.VPMULUDQ(twice, v, even)
	a.VPSRLQ(operand.U8(32), v, odd)
	a.VPMULUDQ(twiceOdd, odd, odd)
	a.VPADDQ(half, even, even)
	a.VPADDQ(halfOdd, odd, odd)
	a.VMOVSHDUP(even, evens, odd)
	if !up {
		a.VPSRAD(operand.U8(31), v, v)
		a.VPSUBD(v, odd, odd)
	}
}
