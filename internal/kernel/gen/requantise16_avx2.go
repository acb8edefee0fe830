package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// requantise16Narrow is requantise16 for four channels in a register. Multipliers are not negative
// and fit 32 bits.
func (a *asm) requantise16Narrow(halves bool) {
	if halves {
		a.function("requantiseHalvesAVX2", "func(dst *int16, stepDst int, sums *float32, stepSums, rows, n, stepParts int, scales *int64, zero, lo, hi int32)")
	} else {
		a.function("requantise16AVX2", "func(dst *int16, stepDst int, sums *int32, stepSums, rows, n, parts, low, stepParts int, scales *int64, zero, lo, hi int32)")
	}
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, stepDst, sums, stepSums := load("dst"), load("stepDst"), load("sums"), load("stepSums")
	rows, n, stepParts, scales := load("rows"), load("n"), load("stepParts"), load("scales")
	zero, lo, hi := a.spreadParam("zero"), a.spreadParam("lo"), a.spreadParam("hi")
	sign := a.YMM()
	a.VPCMPEQD(sign, sign, sign)
	a.VPSLLQ(operand.U8(63), sign, sign)
	i, left, p, q := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("row")
	a.XORQ(i, i)
	a.MOVQ(scales, q)
	a.Label("sixteen")
	var v [4]reg.VecVirtual
	more := a.YMM()
	for j := range v {
		v[j] = a.YMM()
	}
	a.LEAQ(operand.Mem{Base: sums, Index: i, Scale: 4}, p)
	if halves {
		for j := range v {
			for k, m := range []operand.Mem{at(p, 16*j), {Base: p, Index: stepParts, Scale: 1, Disp: 16 * j}} {
				to := []reg.VecVirtual{v[j], more}[k]
				a.VCVTTPS2DQ(m, to.AsX())
				a.VPMOVSXDQ(to.AsX(), to)
			}
			a.VPSLLQ(operand.U8(8), v[j], v[j])
			a.VPADDQ(more, v[j], v[j])
		}
	} else {
		low := load("low")
		for j := range v {
			a.VPMOVSXDQ(at(p, 16*j), v[j])
		}
		a.Load(a.Param("parts"), left)
		a.Label("part")
		a.DECQ(left)
		a.JZ(operand.LabelRef("whole"))
		a.ADDQ(stepParts, p)
		a.CMPQ(left, low)
		a.JNE(operand.LabelRef("same"))
		for j := range v {
			a.VPSLLQ(operand.U8(8), v[j], v[j])
		}
		a.Label("same")
		for j := range v {
			a.VPMOVSXDQ(at(p, 16*j), more)
			a.VPADDQ(more, v[j], v[j])
		}
		a.JMP(operand.LabelRef("part"))
		a.Label("whole")
	}
	mul, down, least := a.YMM(), a.YMM(), a.YMM()
	for j := range v {
		field := func(f int) operand.Mem { return at(q, 256*(j/2)+64*f+32*(j%2)) }
		a.VPADDQ(field(0), v[j], v[j])
		a.VMOVDQU(field(1), mul)
		a.VPSRLQ(operand.U8(32), v[j], more)
		a.VPMULUDQ(mul, more, more)
		a.VPMULUDQ(mul, v[j], v[j])
		a.VPSLLQ(operand.U8(32), more, more)
		a.VPADDQ(more, v[j], v[j])
		a.VPADDQ(field(2), v[j], v[j])
		// A shift of signed numbers: they are shifted as numbers that are not negative.
		a.VMOVDQU(field(3), down)
		a.VPSRLVQ(down, sign, least)
		a.VPXOR(sign, v[j], v[j])
		a.VPSRLVQ(down, v[j], v[j])
		a.VPSUBQ(least, v[j], v[j])
	}
	for h := range 2 {
		x := v[2*h]
		a.VSHUFPS(operand.U8(0x88), v[2*h+1], x, x)
		a.VPERMQ(operand.U8(0xd8), x, x)
		a.VPADDD(zero, x, x)
		a.VPMAXSD(lo, x, x)
		a.VPMINSD(hi, x, x)
	}
	words := v[0]
	a.VPACKSSDW(v[2], words, words)
	a.VPERMQ(operand.U8(0xd8), words, words)
	a.LEAQ(operand.Mem{Base: dst, Index: i, Scale: 2}, p)
	a.ADDQ(operand.U32(512), q)
	a.ADDQ(operand.U8(16), i)
	a.MOVQ(n, left)
	a.SUBQ(i, left)
	a.JLT(operand.LabelRef("few"))
	a.VMOVDQU(words, at(p, 0))
	a.JNZ(operand.LabelRef("sixteen"))
	a.JMP(operand.LabelRef("next"))
	a.Label("few")
	a.storeWordsBelow16(words, p, left)
	a.Label("next")
	a.ADDQ(stepDst, dst)
	a.ADDQ(stepSums, sums)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// storeWordsBelow16 writes the first n of 16 words to p. Only the lower four bits of n count.
func (a *asm) storeWordsBelow16(words reg.VecVirtual, p, n reg.Register) {
	x := words.AsX()
	for _, part := range []struct {
		words int
		store func()
		next  func()
	}{
		{8, func() { a.VMOVDQU(x, at(p, 0)) }, func() { a.VEXTRACTI128(operand.U8(1), words, x) }},
		{4, func() { a.VMOVQ(x, at(p, 0)) }, func() { a.VPSRLDQ(operand.U8(8), x, x) }},
		{2, func() { a.VMOVD(x, at(p, 0)) }, func() { a.VPSRLDQ(operand.U8(4), x, x) }},
		{1, func() { a.VPEXTRW(operand.U8(0), x, at(p, 0)) }, func() {}},
	} {
		name := label("below_%d", part.words)
		a.BTQ(operand.U8(map[int]uint8{8: 3, 4: 2, 2: 1, 1: 0}[part.words]), n)
		a.JCC(operand.LabelRef(name))
		part.store()
		part.next()
		a.ADDQ(operand.U8(uint8(2*part.words)), p)
		a.Label(name)
	}
}

// halvesNarrow is halves for eight values at a time; n is a multiple of that.
func (a *asm) halvesNarrow() {
	a.function("halvesAVX2", "func(upper, lower *float32, src *int16, n int)")
	upper, lower := a.Load(a.Param("upper"), a.GP64()), a.Load(a.Param("lower"), a.GP64())
	src, n := a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	low := a.YMM()
	a.VPCMPEQD(low, low, low)
	a.VPSRLD(operand.U8(24), low, low)
	a.loop(n, 8, func() {
		x, y := a.YMM(), a.YMM()
		a.VPMOVSXWD(at(src, 0), x)
		a.VPAND(low, x, y)
		a.VPSRAD(operand.U8(8), x, x)
		a.VCVTDQ2PS(x, x)
		a.VCVTDQ2PS(y, y)
		a.VMOVUPS(x, at(upper, 0))
		a.VMOVUPS(y, at(lower, 0))
	}, step{src, 16}, step{upper, 32}, step{lower, 32})
	a.VZEROUPPER()
	a.RET()
}
