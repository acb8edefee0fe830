package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.BitTile, in bytes; a test there compares them.
const (
	bitsY = 8 * iota
	bitsX
	bitsW
	bitsScales
	bitsZeros
	bitsSums
	bitsGroups // of a block
	bitsBlocks
	bitsValues
	bitsMiddle
	bitsRowX
	bitsRowSums
	bitsRowY
)

// fewBits are loops over weights of 2, 4 and 8 bits with a sign, in panels of four registers of
// columns.
func fewBits(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, bits := range []int{2, 4, 8} {
			a.bitRow(w, bits)
			a.bitWiden(w, bits)
		}
	}
	a.bitDigits()
	a.bitDigitRow(1)
	a.bitDigitRow(3)
	for _, bits := range []int{2, 4, 8} {
		for _, loop := range []struct{ digits, rows int }{{1, 6}, {3, 3}} {
			a.bitDigitRows(bits, loop.digits, 1, 4)
			for rows := 2; rows <= loop.rows; rows++ {
				a.bitDigitRows(bits, loop.digits, rows, 2)
			}
		}
	}
}

// bitCodes is how a loop gets at the weights of a group: a word of each column, of 32/bits steps.
type bitCodes struct {
	a     *asm
	w     width
	bits  int
	words []reg.VecVirtual
	table reg.VecVirtual
}

func (a *asm) bitCodes(w width, bits, regs int, t reg.Register) *bitCodes {
	c := &bitCodes{a: a, w: w, bits: bits}
	for range regs {
		c.words = append(c.words, a.vec(w))
	}
	if w == zmm && t != nil && bits < 8 {
		values := a.GP64()
		c.table = a.ZMM()
		a.MOVQ(at(t, bitsValues), values)
		a.VMOVUPS(at(values, 0), c.table)
	}
	return c
}

// steps is the number of steps of a group.
func (c *bitCodes) steps() int { return 32 / c.bits }

// line is how many bytes of four registers of columns a group takes.
func (c *bitCodes) line() int { return 4 * c.w.bytes() }

// load takes the words of a group.
func (c *bitCodes) load(from reg.Register) {
	for i, v := range c.words {
		c.a.VMOVUPS(at(from, i*c.w.bytes()), v)
	}
}

// value writes the weights of a step and register as numbers.
func (c *bitCodes) value(step, i int, v reg.VecVirtual) {
	a := c.a
	if c.w == zmm && c.bits < 8 {
		// The permutation looks at the lowest four bits only; of codes of two bits the table has
		// each four times.
		a.VPERMPS(c.table, c.words[i], v)
		if step < c.steps()-1 {
			a.VPSRLD(operand.U8(c.bits), c.words[i], c.words[i])
		}
		return
	}
	word := c.words[i]
	if left := 32 - c.bits*(step+1); left > 0 {
		a.VPSLLD(operand.U8(left), word, v)
		word = v
	}
	if c.w == zmm {
		a.VPSRLD(operand.U8(32-c.bits), word, v)
	} else {
		a.VPSRAD(operand.U8(32-c.bits), word, v)
	}
	a.VCVTDQ2PS(v, v)
}

// bitRow multiplies a row by a panel. The products of a block are added up, less the zero points
// times the sum of the row there, and take the scales. With AVX-512 codes have no sign, and
// become numbers where they lie in their words, times a power of two that the row has been
// divided by: shifts and permutations would wait for each other's units.
func (a *asm) bitRow(w width, bits int) {
	a.function(label("bitRow%d%s", bits, w.set), "func(t *BitTile)")
	t := a.Load(a.Param("t"), a.GP64())
	x, codes, scales, zeros, sums, blocks, left := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, bitsX), x)
	a.MOVQ(at(t, bitsW), codes)
	a.MOVQ(at(t, bitsScales), scales)
	a.MOVQ(at(t, bitsZeros), zeros)
	a.MOVQ(at(t, bitsSums), sums)
	a.MOVQ(at(t, bitsBlocks), blocks)
	c := a.bitCodes(w, bits, 4, nil)
	var all, part [4]reg.VecVirtual
	for i := range all {
		all[i], part[i] = a.vec(w), a.vec(w)
		a.zero(w, all[i])
	}
	v, spread, middle := a.vec(w), reg.VecVirtual(nil), reg.VecVirtual(nil)
	if w == ymm {
		spread = a.YMM()
	}
	var masks []reg.VecVirtual
	if w == zmm {
		middle = a.ZMM()
		a.VBROADCASTSS(at(t, bitsMiddle), middle)
		for i := range c.steps() {
			m := a.ZMM()
			masks = append(masks, m)
			if i == 0 {
				a.VPTERNLOGD(operand.U8(255), m, m, m)
				a.VPSRLD(operand.U8(32-bits), m, m)
			} else {
				a.VPSLLD(operand.U8(bits*i), masks[0], m)
			}
		}
	}
	a.Label("block")
	for _, p := range part {
		a.zero(w, p)
	}
	a.MOVQ(at(t, bitsGroups), left)
	a.Label("group")
	c.load(codes)
	for s := range c.steps() {
		if w == ymm {
			a.VBROADCASTSS(at(x, 4*s), spread)
		}
		for i, p := range part {
			if masks != nil {
				a.VPANDD(masks[s], c.words[i], v)
				a.VCVTUDQ2PS(v, v)
				a.VFMADD231PS_BCST(at(x, 4*s), v, p)
				continue
			}
			c.value(s, i, v)
			a.VFMADD231PS(spread, v, p)
		}
	}
	for i := 0; i < c.line(); i += 64 {
		a.PREFETCHT0(at(codes, fetchAhead+i))
	}
	a.ADDQ(operand.U32(uint32(4*c.steps())), x)
	a.ADDQ(operand.U32(uint32(c.line())), codes)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("group"))
	if middle != nil {
		for _, p := range part {
			a.VFNMADD231PS_BCST(at(sums, 0), middle, p)
		}
	}
	a.TESTQ(zeros, zeros)
	a.JZ(operand.LabelRef("no_zeros"))
	if w == ymm {
		a.VBROADCASTSS(at(sums, 0), spread)
	}
	for i, p := range part {
		a.VPMOVSXBD(at(zeros, i*w.floats), v)
		if a.VCVTDQ2PS(v, v); w == zmm {
			a.VFNMADD231PS_BCST(at(sums, 0), v, p)
		} else {
			a.VFNMADD231PS(spread, v, p)
		}
	}
	a.ADDQ(operand.U32(uint32(4*w.floats)), zeros)
	a.Label("no_zeros")
	a.ADDQ(operand.U32(4), sums)
	for i, p := range part {
		a.VFMADD231PS(at(scales, i*w.bytes()), p, all[i])
	}
	a.ADDQ(operand.U32(uint32(4*w.bytes())), scales)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	y := a.GP64()
	a.MOVQ(at(t, bitsY), y)
	for i, s := range all {
		a.VMOVUPS(s, at(y, i*w.bytes()))
	}
	a.VZEROUPPER()
	a.RET()
}

// bitWiden writes groups of one block, of two of the four registers of columns, in float32: less
// the zero points, times the scales.
func (a *asm) bitWiden(w width, bits int) {
	a.function(label("bitWiden%d%s", bits, w.set), "func(t *BitTile)")
	t := a.Load(a.Param("t"), a.GP64())
	y, codes, p, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, bitsY), y)
	a.MOVQ(at(t, bitsW), codes)
	a.MOVQ(at(t, bitsGroups), left)
	c := a.bitCodes(w, bits, 2, t)
	var scale, zero [2]reg.VecVirtual
	a.MOVQ(at(t, bitsScales), p)
	for i := range scale {
		scale[i], zero[i] = a.vec(w), a.vec(w)
		a.VMOVUPS(at(p, i*w.bytes()), scale[i])
		if w == zmm && bits == 8 {
			a.VBROADCASTSS(at(t, bitsMiddle), zero[i])
		} else {
			a.zero(w, zero[i])
		}
	}
	a.MOVQ(at(t, bitsZeros), p)
	a.TESTQ(p, p)
	a.JZ(operand.LabelRef("group"))
	for i, z := range zero {
		v := a.vec(w)
		a.VPMOVSXBD(at(p, i*w.floats), v)
		a.VCVTDQ2PS(v, v)
		a.VADDPS(v, z, z)
	}
	a.Label("group")
	c.load(codes)
	for s := range c.steps() {
		for i := range scale {
			v := a.vec(w)
			c.value(s, i, v)
			a.VSUBPS(zero[i], v, v)
			a.VMULPS(scale[i], v, v)
			a.VMOVUPS(v, at(y, s*2*w.bytes()+i*w.bytes()))
		}
	}
	a.ADDQ(operand.U32(uint32(2*c.steps()*w.bytes())), y)
	a.ADDQ(operand.U32(uint32(c.line())), codes)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("group"))
	a.VZEROUPPER()
	a.RET()
}
