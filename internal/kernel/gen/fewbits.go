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

// fewBits are loops over weights of 2, 4 and 8 bits with a sign, in panels of four registers of columns.
func fewBits(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, bits := range []int{2, 4, 8} {
			a.bitRow(w, bits)
			a.bitWiden(w, bits)
		}
	}
	a.bitCodeRows(1, 4)
	for rows := 2; rows <= 6; rows++ {
		a.bitCodeRows(rows, 2)
	}
}

// bitCodeRows multiplies rows of 8-bit codes by half a panel, or a row by a whole one, of raw codes of 4 bits, of a word of which the even steps and then the odd ones are
// multiplied by a word of the row. The sums of a block, less the zero points times the sum of the row's codes, take the scales of both.
func (a *asm) bitCodeRows(rows, regs int) {
	a.function(label("bitCodes%dx%dVNNI", rows, regs), "func(t *byte)")
	t := a.Load(a.Param("t"), a.GP64())
	reg64 := func(field int) reg.GPVirtual {
		g := a.GP64()
		a.MOVQ(at(t, field), g)
		return g
	}
	codes, scales, zeros, blocks := reg64(bitsW), reg64(bitsScales), reg64(bitsZeros), reg64(bitsBlocks)
	x, sx := a.rowPointers(rows), a.rowPointers(rows)
	x.set(at(t, bitsX), at(t, bitsRowX))
	sx.set(at(t, bitsSums), at(t, bitsRowSums))
	left := a.GP64()
	next := 0
	vec := func() reg.VecPhysical {
		next++
		return zmm.reg(next - 1)
	}
	mask := vec()
	var all, part [6][4]reg.VecPhysical
	var low, high [4]reg.VecPhysical
	for i := range regs {
		low[i], high[i] = vec(), vec()
		for r := range rows {
			all[r][i], part[r][i] = vec(), vec()
			a.zero(zmm, all[r][i])
		}
	}
	a.VPTERNLOGD(operand.U8(255), mask, mask, mask)
	a.VPSRLW(operand.U8(12), mask, mask) // 15 in each half of a word
	a.VPACKUSWB(mask, mask, mask)
	a.Label("block")
	for r := range rows {
		for i := range regs {
			a.zero(zmm, part[r][i])
		}
	}
	a.MOVQ(at(t, bitsGroups), left)
	a.Label("group")
	for i := range regs {
		a.VMOVDQU32(at(codes, 64*i), high[i])
		a.VPANDD(mask, high[i], low[i])
		a.VPSRLD(operand.U8(4), high[i], high[i])
		a.VPANDD(mask, high[i], high[i])
	}
	for r := range rows {
		for i := range regs {
			a.VPDPBUSD_BCST(x.at(r, 0), low[i], part[r][i])
		}
		for i := range regs {
			a.VPDPBUSD_BCST(x.at(r, 4), high[i], part[r][i])
		}
	}
	x.add(operand.U32(8))
	a.ADDQ(operand.U32(256), codes)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("group"))
	// The words are done with: their registers hold zero points, and scales.
	for i := range regs {
		a.VBROADCASTSS(at(t, bitsMiddle), low[i])
		a.VMOVUPS(at(scales, 64*i), high[i])
	}
	a.TESTQ(zeros, zeros)
	a.JZ(operand.LabelRef("no_zeros"))
	spare := vec()
	for i := range regs {
		a.VPMOVSXBD(at(zeros, 16*i), spare)
		a.VCVTDQ2PS(spare, spare)
		a.VADDPS(spare, low[i], low[i])
	}
	a.ADDQ(operand.U32(64), zeros)
	a.Label("no_zeros")
	for r := range rows {
		for i := range regs {
			a.VCVTDQ2PS(part[r][i], part[r][i])
			a.VFNMADD231PS_BCST(sx.at(r, 4), low[i], part[r][i])
			a.VMULPS_BCST(sx.at(r, 0), part[r][i], part[r][i])
			a.VFMADD231PS(high[i], part[r][i], all[r][i])
		}
	}
	sx.add(operand.U32(8))
	a.ADDQ(operand.U32(256), scales)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	y := a.rowPointers(rows)
	y.set(at(t, bitsY), at(t, bitsRowY))
	for r := range rows {
		for i := range regs {
			a.VMOVUPS(all[r][i], y.at(r, 64*i))
		}
	}
	a.VZEROUPPER()
	a.RET()
}

// bitCodes is how a loop gets at the weights of a group: a word of each column, of 32/bits steps, or, of 8 bits, a byte of each column for each of
// 8 steps.
type bitCodes struct {
	a     *asm
	w     width
	bits  int
	words []reg.VecVirtual
	table reg.VecVirtual
}

func (a *asm) bitCodes(w width, bits, regs int, t reg.Register) *bitCodes {
	c := &bitCodes{a: a, w: w, bits: bits}
	if bits == 8 {
		return c
	}
	for range regs {
		c.words = append(c.words, a.vec(w))
	}
	if w == zmm && t != nil {
		values := a.GP64()
		c.table = a.ZMM()
		a.MOVQ(at(t, bitsValues), values)
		a.VMOVUPS(at(values, 0), c.table)
	}
	return c
}

// steps is the number of steps of a group.
func (c *bitCodes) steps() int {
	if c.bits == 8 {
		return 8
	}
	return 32 / c.bits
}

// line is how many bytes of four registers of columns a group takes.
func (c *bitCodes) line() int {
	if c.bits == 8 {
		return 8 * 4 * c.w.floats
	}
	return 4 * c.w.bytes()
}

// load takes the words of a group.
func (c *bitCodes) load(from reg.Register) {
	for i, v := range c.words {
		c.a.VMOVUPS(at(from, i*c.w.bytes()), v)
	}
}

// value writes the weights of a step and register as numbers.
func (c *bitCodes) value(from reg.Register, step, i int, v reg.VecVirtual) {
	a := c.a
	if c.bits == 8 {
		a.VPMOVSXBD(at(from, step*4*c.w.floats+i*c.w.floats), v)
		a.VCVTDQ2PS(v, v)
		return
	}
	if c.w == zmm {
		// The permutation looks at the lowest four bits only; of codes of two bits the table has each four times.
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
	a.VPSRAD(operand.U8(32-c.bits), word, v)
	a.VCVTDQ2PS(v, v)
}

// bitRow multiplies a row by a panel. The products of a block are added up, less the zero points times the sum of the row there, and take the
// scales. With AVX-512 codes of 2 and 4 bits have no sign, and become numbers where they lie in their words, times a power of two that the row
// has been divided by: shifts and permutations would wait for each other's units.
func (a *asm) bitRow(w width, bits int) {
	a.function(label("bitRow%d%s", bits, w.set), "func(t *byte)")
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
	if w == zmm && bits < 8 {
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
			if c.value(codes, s, i, v); w == zmm {
				a.VFMADD231PS_BCST(at(x, 4*s), v, p)
			} else {
				a.VFMADD231PS(spread, v, p)
			}
		}
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

// bitWiden writes groups of one block, of two of the four registers of columns, in float32: less the zero points, times the scales.
func (a *asm) bitWiden(w width, bits int) {
	a.function(label("bitWiden%d%s", bits, w.set), "func(t *byte)")
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
		a.zero(w, zero[i])
	}
	a.MOVQ(at(t, bitsZeros), p)
	a.TESTQ(p, p)
	a.JZ(operand.LabelRef("group"))
	for i, z := range zero {
		a.VPMOVSXBD(at(p, i*w.floats), z)
		a.VCVTDQ2PS(z, z)
	}
	a.Label("group")
	c.load(codes)
	for s := range c.steps() {
		for i := range scale {
			v := a.vec(w)
			c.value(codes, s, i, v)
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
