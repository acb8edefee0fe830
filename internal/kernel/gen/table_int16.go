package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tables16 writes functions of 16-bit numbers by 512 straight pieces, see simd.Table16, and the
// softmax that is made of them.
func tables16(a *asm) {
	a.table16()
	a.exps16()
	a.quotients16()
}

// pieces are what results of a table are found by.
type pieces struct{ table, rest, whole, half reg.Register }

func (a *asm) pieces() *pieces {
	return &pieces{a.Load(a.Param("table"), a.GP64()), a.number512(127), a.number512(128), a.number512(64)}
}

// of makes results of x, 32 bits each: both ends of a piece, two words that lie side by side,
// times how near they are.
func (a *asm) of(t *pieces, x reg.VecVirtual) {
	line, ends, far := a.ZMM(), a.ZMM(), a.ZMM()
	a.VPSRAD(operand.U8(7), x, line)
	a.VPXORD(ends, ends, ends)
	a.KXNORW(reg.K2, reg.K2, reg.K2)
	a.VPGATHERDD(operand.Mem{Base: t.table, Index: line, Scale: 2, Disp: 512}, reg.K2, ends)
	a.VPANDD(t.rest, x, x)
	a.VPSLLD(operand.U8(16), x, far)
	a.VPSUBD(x, far, x)
	a.VPADDD(t.whole, x, x)
	a.VPMADDWD(ends, x, x)
	a.VPADDD(t.half, x, x)
	a.VPSRAD(operand.U8(7), x, x)
}

// loadWords loads 16 words with their sign, or those of a mask.
func (a *asm) loadWords(m operand.Mem, mask reg.Register, x reg.Register) {
	if mask != nil {
		a.VPMOVSXWD_Z(m, mask, x)
	} else {
		a.VPMOVSXWD(m, x)
	}
}

// storeWords stores the lower halves of 16 numbers, or those of a mask.
func (a *asm) storeWords(x, mask reg.Register, m operand.Mem) {
	if mask != nil {
		a.VPMOVDW(x, mask, m)
	} else {
		a.VPMOVDW(x, m)
	}
}

// table16 writes the results of a table.
func (a *asm) table16() {
	a.function("table16AVX512", "func(dst, src *int16, n int, table *int16)")
	dst, src, n := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	t := a.pieces()
	a.masked("values", n, 16, func(mask reg.Register) {
		x := a.ZMM()
		a.loadWords(at(src, 0), mask, x)
		a.of(t, x)
		a.storeWords(x, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// exps16 writes the results of a table of (src - top) << left times mul in Q0.31, plus add,
// divided by 2^down, counted from 32767 on, and returns their sum.
func (a *asm) exps16() {
	a.function("exps16AVX512", "func(dst, src *int16, n int, table *int16, top, left, mul, add, down int32) int32")
	dst, src, n := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	t := a.pieces()
	top, left, mul, add, down := a.spread512("top"), a.spread512("left"), a.spread512("mul"), a.spread512("add"), a.spread512("down")
	most, least := a.number512(32767), a.number512(0xffff8000)
	g, half, sum := a.GP64(), a.ZMM(), a.ZMM()
	a.MOVQ(operand.U32(1<<30), g)
	a.VPBROADCASTQ(g, half)
	a.MOVL(operand.U32(0xaaaa), g.As32())
	a.KMOVW(g.As32(), reg.K3)
	a.VPXORD(sum, sum, sum)
	a.masked("values", n, 16, func(mask reg.Register) {
		x, odd := a.ZMM(), a.ZMM()
		a.loadWords(at(src, 0), mask, x)
		a.VPSUBD(top, x, x)
		a.VPSLLVD(left, x, x)
		a.VPSRLQ(operand.U8(32), x, odd)
		a.VPMULDQ(mul, x, x)
		a.VPMULDQ(mul, odd, odd)
		a.VPADDQ(half, x, x)
		a.VPADDQ(half, odd, odd)
		a.VPSRLQ(operand.U8(31), x, x)
		a.VPADDQ(odd, odd, odd)
		a.VMOVDQA32(odd, reg.K3, x)
		a.VPADDD(add, x, x)
		a.VPSRAVD(down, x, x)
		a.VPADDD(most, x, x)
		a.VPMAXSD(least, x, x)
		a.VPMINSD(most, x, x)
		a.of(t, x)
		if mask != nil {
			a.VPADDD(x, sum, mask, sum)
		} else {
			a.VPADDD(x, sum, sum)
		}
		a.storeWords(x, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.joinLanes(sum, 4, a.VPADDD)
	total := a.GP32()
	a.VMOVD(sum.AsX(), total)
	a.VZEROUPPER()
	a.Store(total, a.ReturnIndex(0))
	a.RET()
}

// quotients16 multiplies words that are not negative by recip, divides by 2^shift, with half
// added, and lets nothing above 32767 through.
func (a *asm) quotients16() {
	a.function("quotients16AVX512", "func(dst *int16, n int, recip, half, shift int32)")
	dst, n := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	recip, half, shift, most := a.spread512("recip"), a.spread512("half"), a.spread512("shift"), a.number512(32767)
	a.masked("values", n, 16, func(mask reg.Register) {
		x := a.ZMM()
		a.loadWords(at(dst, 0), mask, x)
		a.VPMADDWD(recip, x, x)
		a.VPADDD(half, x, x)
		a.VPSRLVD(shift, x, x)
		a.VPMINUD(most, x, x)
		a.storeWords(x, mask, at(dst, 0))
	}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}
