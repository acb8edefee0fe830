package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// resizes writes the bilinear interpolation of TFLite along a line, from two lines that have been
// weighted already, or from one that has been put together, position by position over n channels
// that lie side by side.
func resizes(a *asm) {
	a.mixBytes()
	a.acrossFloats()
	a.acrossFloatsAVX2()
	a.acrossBytes()
	a.betweenFloats()
}

// Fields of simd.Between.
const betweenBase, betweenIn, betweenOut, betweenLo, betweenHi, betweenLeft, betweenRight, betweenSize = 0, 8, 12, 16, 80, 144, 208, 272

// betweenFloats writes blocks of 16 values of lines, each the sum of two of 32 neighbours of a
// line times their weights: products and sums are rounded apart.
func (a *asm) betweenFloats() {
	a.function("betweenFloatsAVX512", "func(dst *float32, stepDst int, src *float32, stepSrc, lines int, blocks *Between, count int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	blocks := a.Load(a.Param("blocks"), a.GP64())
	count := a.Load(a.Param("count"), a.GP64())
	from, to, left, bits := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	in, more, out := reg.K1, reg.K2, reg.K3
	lo, hi, leftBy, rightBy, x, y, v, w := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.Label("block")
	a.VMOVDQU32(at(blocks, betweenLo), lo)
	a.VMOVDQU32(at(blocks, betweenHi), hi)
	a.VMOVUPS(at(blocks, betweenLeft), leftBy)
	a.VMOVUPS(at(blocks, betweenRight), rightBy)
	a.MOVL(at(blocks, betweenIn), bits.As32())
	a.KMOVW(bits.As32(), in)
	a.SHRL(operand.U8(16), bits.As32())
	a.KMOVW(bits.As32(), more)
	a.MOVL(at(blocks, betweenOut), bits.As32())
	a.KMOVW(bits.As32(), out)
	a.MOVQ(src, from)
	a.ADDQ(at(blocks, betweenBase), from)
	a.MOVQ(dst, to)
	a.Load(a.Param("lines"), left)
	a.Label("line")
	a.VMOVUPS_Z(at(from, 0), in, x)
	a.VMOVUPS_Z(at(from, 64), more, y)
	a.VMOVDQA32(lo, v)
	a.VPERMI2PS(y, x, v)
	a.VMULPS(v, leftBy, v)
	a.VMOVDQA32(hi, w)
	a.VPERMI2PS(y, x, w)
	a.VMULPS(w, rightBy, w)
	a.VADDPS(w, v, v)
	a.VMOVUPS(v, out, at(to, 0))
	a.ADDQ(stepSrc, from)
	a.ADDQ(stepDst, to)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("line"))
	a.ADDQ(operand.U32(betweenSize), blocks)
	a.ADDQ(operand.U8(64), dst)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("block"))
	a.VZEROUPPER()
	a.RET()
}

// Fields of simd.Tap.
const tapLo, tapHi, tapLeft, tapRight, tapSize = 0, 4, 8, 12, 16

// across runs body for each position: places of what it lies between, in bytes, with the weights
// of both in all lanes.
func (a *asm) across(taps, count, channels reg.Register, dst reg.Register, size int, body func(lo, hi reg.Register, left, right reg.VecVirtual, to reg.Register, mask reg.Register)) {
	lo, hi, to, n := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	left, right := a.ZMM(), a.ZMM()
	a.MOVQ(dst, to)
	a.Label("position")
	a.MOVLQSX(at(taps, tapLo), lo)
	a.MOVLQSX(at(taps, tapHi), hi)
	a.VPBROADCASTD(at(taps, tapLeft), left)
	a.VPBROADCASTD(at(taps, tapRight), right)
	a.MOVQ(channels, n)
	end := a.GP64()
	a.MOVQ(to, end)
	a.masked("channels", n, 16, func(mask reg.Register) {
		body(lo, hi, left, right, to, mask)
	}, step{lo, 64}, step{hi, 64}, step{to, 16 * size})
	a.LEAQ(operand.Mem{Base: end, Index: channels, Scale: uint8(size)}, to)
	a.ADDQ(operand.U8(tapSize), taps)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("position"))
	a.VZEROUPPER()
	a.RET()
}

// acrossFloats writes top·left + bottom·left + top·right + bottom·right + 0, the former two from
// lo, the latter from hi.
func (a *asm) acrossFloats() {
	a.function("acrossFloatsAVX512", "func(dst, top, bottom *float32, taps *Tap, count, channels int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	top := a.Load(a.Param("top"), a.GP64())
	bottom := a.Load(a.Param("bottom"), a.GP64())
	taps := a.Load(a.Param("taps"), a.GP64())
	count := a.Load(a.Param("count"), a.GP64())
	channels := a.Load(a.Param("channels"), a.GP64())
	zero := a.ZMM()
	a.VXORPS(zero, zero, zero)
	a.across(taps, count, channels, dst, 4, func(lo, hi reg.Register, left, right reg.VecVirtual, to reg.Register, mask reg.Register) {
		product := func(base, index reg.Register, by reg.VecVirtual) reg.VecVirtual {
			v, m := a.ZMM(), operand.Mem{Base: base, Index: index, Scale: 1}
			if mask != nil {
				a.VMULPS_Z(m, by, mask, v)
			} else {
				a.VMULPS(m, by, v)
			}
			return v
		}
		sum := product(top, lo, left)
		a.VADDPS(product(bottom, lo, left), sum, sum)
		a.VADDPS(product(top, hi, right), sum, sum)
		a.VADDPS(product(bottom, hi, right), sum, sum)
		a.VADDPS(zero, sum, sum)
		a.storeFloats(sum, mask, at(to, 0))
	})
}

// acrossFloatsAVX2 is acrossFloats for at least 8 channels: the last block of a position overlaps
// the one before.
func (a *asm) acrossFloatsAVX2() {
	const lanes = 8
	a.function("acrossFloatsAVX2", "func(dst, top, bottom *float32, taps *Tap, count, channels int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	top := a.Load(a.Param("top"), a.GP64())
	bottom := a.Load(a.Param("bottom"), a.GP64())
	taps := a.Load(a.Param("taps"), a.GP64())
	count := a.Load(a.Param("count"), a.GP64())
	channels := a.Load(a.Param("channels"), a.GP64())
	line, last, n := a.GP64(), a.GP64(), a.GP64()
	topLo, bottomLo, topHi, bottomHi := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	left, right, zero, sum, product := a.YMM(), a.YMM(), a.YMM(), a.YMM(), a.YMM()
	a.VXORPS(zero, zero, zero)
	a.MOVQ(channels, line)
	a.SHLQ(operand.U8(2), line)
	a.LEAQ(at(line, -4*lanes), last)
	a.Label("position")
	a.MOVLQSX(at(taps, tapLo), topLo)
	a.MOVLQSX(at(taps, tapHi), topHi)
	a.LEAQ(operand.Mem{Base: bottom, Index: topLo, Scale: 1}, bottomLo)
	a.LEAQ(operand.Mem{Base: bottom, Index: topHi, Scale: 1}, bottomHi)
	a.ADDQ(top, topLo)
	a.ADDQ(top, topHi)
	a.VBROADCASTSS(at(taps, tapLeft), left)
	a.VBROADCASTSS(at(taps, tapRight), right)
	a.XORQ(n, n)
	a.Label("channels")
	a.VMULPS(operand.Mem{Base: topLo, Index: n, Scale: 1}, left, sum)
	for _, in := range []struct {
		base reg.Register
		by   reg.VecVirtual
	}{{bottomLo, left}, {topHi, right}, {bottomHi, right}} {
		a.VMULPS(operand.Mem{Base: in.base, Index: n, Scale: 1}, in.by, product)
		a.VADDPS(product, sum, sum)
	}
	a.VADDPS(zero, sum, sum)
	a.VMOVUPS(sum, operand.Mem{Base: dst, Index: n, Scale: 1})
	a.CMPQ(n, last)
	a.JE(operand.LabelRef("done"))
	a.ADDQ(operand.U8(4*lanes), n)
	a.CMPQ(n, last)
	a.CMOVQGT(last, n)
	a.JMP(operand.LabelRef("channels"))
	a.Label("done")
	a.ADDQ(line, dst)
	a.ADDQ(operand.U8(tapSize), taps)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("position"))
	a.VZEROUPPER()
	a.RET()
}

// mixBytes writes top·left + bottom·right of n codes with a sign.
func (a *asm) mixBytes() {
	a.function("mixBytesAVX512", "func(dst *int32, top, bottom *byte, n int, left, right int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	top := a.Load(a.Param("top"), a.GP64())
	bottom := a.Load(a.Param("bottom"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	left, right := a.spread512("left"), a.spread512("right")
	a.masked("codes", n, 16, func(mask reg.Register) {
		x, y := a.ZMM(), a.ZMM()
		a.widenBytes(at(top, 0), mask, true, x)
		a.widenBytes(at(bottom, 0), mask, true, y)
		a.VPMULLD(left, x, x)
		a.VPMULLD(right, y, y)
		a.VPADDD(y, x, x)
		if mask != nil {
			a.VMOVDQU32(x, mask, at(dst, 0))
		} else {
			a.VMOVDQU32(x, at(dst, 0))
		}
	}, step{top, 16}, step{bottom, 16}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// acrossBytes writes (src·left + src·right) / 2^20, from lo and from hi, rounded with ties away
// from zero.
func (a *asm) acrossBytes() {
	a.function("acrossBytesAVX512", "func(dst *byte, src *int32, taps *Tap, count, channels int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	taps := a.Load(a.Param("taps"), a.GP64())
	count := a.Load(a.Param("count"), a.GP64())
	channels := a.Load(a.Param("channels"), a.GP64())
	half := a.number512(1 << 19)
	a.across(taps, count, channels, dst, 1, func(lo, hi reg.Register, left, right reg.VecVirtual, to reg.Register, mask reg.Register) {
		product := func(index reg.Register, by reg.VecVirtual) reg.VecVirtual {
			v, m := a.ZMM(), operand.Mem{Base: src, Index: index, Scale: 1}
			if mask != nil {
				a.VPMULLD_Z(m, by, mask, v)
			} else {
				a.VPMULLD(m, by, v)
			}
			return v
		}
		x, sign := product(lo, left), a.ZMM()
		a.VPADDD(product(hi, right), x, x)
		// A negative number has one less added, and what is cut off then goes up.
		a.VPSRAD(operand.U8(31), x, sign)
		a.VPADDD(sign, x, x)
		a.VPADDD(half, x, x)
		a.VPSRAD(operand.U8(20), x, x)
		if mask != nil {
			a.VPMOVDB(x, mask, at(to, 0))
		} else {
			a.VPMOVDB(x, at(to, 0))
		}
	})
}
