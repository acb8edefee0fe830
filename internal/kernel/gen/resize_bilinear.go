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
	a.acrossBytesAVX2()
	a.mixBytesAVX2()
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

// lanes256 is the number of 32-bit values of a 256-bit register.
const lanes256 = 8

// overlapping runs body for blocks of 8 values, the first at i = 0 and the last at last, where it
// may overlap the one before.
func (a *asm) overlapping(i, last reg.Register, body func()) {
	a.XORQ(i, i)
	a.Label("block")
	body()
	a.CMPQ(i, last)
	a.JE(operand.LabelRef("blocksEnd"))
	a.ADDQ(operand.U8(lanes256), i)
	a.CMPQ(i, last)
	a.CMOVQGT(last, i)
	a.JMP(operand.LabelRef("block"))
	a.Label("blocksEnd")
}

// across256 is across without masks: the last block of a position overlaps the one before. Fewer
// than 8 channels are a block all the same, which reads and writes what follows. lines are the
// lines that are read; body gets the places of both neighbours in each, for an index of n values.
func (a *asm) across256(lines []reg.Register, size uint8, body func(lo, hi []operand.Mem, left, right reg.VecVirtual, to operand.Mem)) {
	dst := a.Load(a.Param("dst"), a.GP64())
	taps := a.Load(a.Param("taps"), a.GP64())
	count := a.Load(a.Param("count"), a.GP64())
	channels := a.Load(a.Param("channels"), a.GP64())
	last, n, zero := a.GP64(), a.GP64(), a.GP64()
	left, right := a.YMM(), a.YMM()
	places := func() (bases []reg.Register, blocks []operand.Mem) {
		for range lines {
			base := a.GP64()
			bases, blocks = append(bases, base), append(blocks, operand.Mem{Base: base, Index: n, Scale: 4})
		}
		return bases, blocks
	}
	loBases, lo := places()
	hiBases, hi := places()
	a.XORQ(zero, zero)
	a.LEAQ(at(channels, -lanes256), last)
	a.TESTQ(last, last)
	a.CMOVQLT(zero, last)
	a.Label("position")
	for _, side := range []struct {
		bases []reg.Register
		field int
	}{{loBases, tapLo}, {hiBases, tapHi}} {
		a.MOVLQSX(at(taps, side.field), side.bases[0])
		for i := len(lines) - 1; i >= 0; i-- {
			a.LEAQ(operand.Mem{Base: lines[i], Index: side.bases[0], Scale: 1}, side.bases[i])
		}
	}
	a.VPBROADCASTD(at(taps, tapLeft), left)
	a.VPBROADCASTD(at(taps, tapRight), right)
	a.overlapping(n, last, func() { body(lo, hi, left, right, operand.Mem{Base: dst, Index: n, Scale: size}) })
	a.LEAQ(operand.Mem{Base: dst, Index: channels, Scale: size}, dst)
	a.ADDQ(operand.U8(tapSize), taps)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("position"))
	a.VZEROUPPER()
	a.RET()
}

// acrossFloatsAVX2 is acrossFloats with 256 bits.
func (a *asm) acrossFloatsAVX2() {
	a.function("acrossFloatsAVX2", "func(dst, top, bottom *float32, taps *Tap, count, channels int)")
	top := a.Load(a.Param("top"), a.GP64())
	bottom := a.Load(a.Param("bottom"), a.GP64())
	zero, sum, product := a.YMM(), a.YMM(), a.YMM()
	a.VXORPS(zero, zero, zero)
	a.across256([]reg.Register{top, bottom}, 4, func(lo, hi []operand.Mem, left, right reg.VecVirtual, to operand.Mem) {
		a.VMULPS(lo[0], left, sum)
		for _, in := range []struct {
			from operand.Mem
			by   reg.VecVirtual
		}{{lo[1], left}, {hi[0], right}, {hi[1], right}} {
			a.VMULPS(in.from, in.by, product)
			a.VADDPS(product, sum, sum)
		}
		a.VADDPS(zero, sum, sum)
		a.VMOVUPS(sum, to)
	})
}

// acrossBytesAVX2 is acrossBytes with 256 bits.
func (a *asm) acrossBytesAVX2() {
	a.function("acrossBytesAVX2", "func(dst *byte, src *int32, taps *Tap, count, channels int)")
	src := a.Load(a.Param("src"), a.GP64())
	half, x, y := a.YMM(), a.YMM(), a.YMM()
	a.VPCMPEQD(half, half, half)
	a.VPSRLD(operand.U8(31), half, half)
	a.VPSLLD(operand.U8(19), half, half)
	a.across256([]reg.Register{src}, 1, func(lo, hi []operand.Mem, left, right reg.VecVirtual, to operand.Mem) {
		a.VPMULLD(lo[0], left, x)
		a.VPMULLD(hi[0], right, y)
		a.VPADDD(y, x, x)
		a.VPSRAD(operand.U8(31), x, y)
		a.VPADDD(y, x, x)
		a.VPADDD(half, x, x)
		a.VPSRAD(operand.U8(20), x, x)
		a.VEXTRACTI128(operand.U8(1), x, y.AsX())
		a.VPACKSSDW(y.AsX(), x.AsX(), x.AsX())
		a.VPACKSSWB(x.AsX(), x.AsX(), x.AsX())
		a.VMOVQ(x.AsX(), to)
	})
}

// mixBytesAVX2 is mixBytes for at least 8 codes: the last block overlaps the one before.
func (a *asm) mixBytesAVX2() {
	a.function("mixBytesAVX2", "func(dst *int32, top, bottom *byte, n int, left, right int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	top := a.Load(a.Param("top"), a.GP64())
	bottom := a.Load(a.Param("bottom"), a.GP64())
	last, i := a.Load(a.Param("n"), a.GP64()), a.GP64()
	left, right, x, y := a.YMM(), a.YMM(), a.YMM(), a.YMM()
	a.spreadInts("left", left)
	a.spreadInts("right", right)
	a.SUBQ(operand.U8(lanes256), last)
	a.overlapping(i, last, func() {
		a.VPMOVSXBD(operand.Mem{Base: top, Index: i, Scale: 1}, x)
		a.VPMOVSXBD(operand.Mem{Base: bottom, Index: i, Scale: 1}, y)
		a.VPMULLD(left, x, x)
		a.VPMULLD(right, y, y)
		a.VPADDD(y, x, x)
		a.VMOVDQU(x, operand.Mem{Base: dst, Index: i, Scale: 4})
	})
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
