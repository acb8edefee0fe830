package main

import (
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.splitArgs, in bytes; a test there compares them.
const (
	splitDst = 8 * iota
	splitStepDst
	splitNextDst
	splitPart
	splitSrc
	splitStepSrc
	splitNextSrc
	splitGap
	splitN
	splitLines
	splitMost
	splitNextMost
	splitLost
)

// Places of the fields of simd.partProgram, likewise.
const (
	partConfig = 8 * iota
	partA
	partB
	partC
	partSteps
	partBlocks
	partAhead
	partAheadLines
)

// Places of the fields of simd.partSums, likewise.
const (
	sumsDst = 8 * iota
	sumsRow
	sumsSrc
	sumsRows
	sumsColumn
	sumsLine
	sumsAdd
	sumsMask
	sumsClamp
	sumsMin
	sumsMax = sumsMin + 4
)

// Bytes of a tile, and of what a step has of 16 rows and of a panel of 32 columns, in three parts.
const (
	partTile  = 16 * 64
	partRows  = 3 * partTile
	partPanel = 2 * partRows
)

// parts writes products of float32 as products of tiles of bfloat16: each number is the sum of
// three such parts.
func parts(a *asm) {
	a.splitParts()
	for rows := 1; rows <= 3; rows++ {
		for cols := 1; cols <= 3; cols++ {
			a.partProducts(rows, cols)
		}
	}
	a.partSums()
}

// splitParts writes numbers in parts. Two registers of numbers, gap bytes apart, become a row of
// a tile in each part: of each pair of numbers one is of the first register, and one of the
// second. What is rounded off is exact, so that the third part leaves nothing of numbers of usual
// size. It finds the largest sizes in each column of registers, as bits, and whether any second
// or third part is not zero.
func (a *asm) splitParts() {
	a.function("splitPartsAVX512", "func(p *splitArgs)")
	p := a.Load(a.Param("p"), a.GP64())
	regs := func(n int) (all []reg.VecVirtual) {
		for range n {
			all = append(all, a.ZMM())
		}
		return all
	}
	number := func(v uint32) reg.VecVirtual {
		r, x := a.GP32(), a.ZMM()
		a.MOVL(operand.U32(v), r)
		a.VPBROADCASTD(r, x)
		return x
	}
	half, upper, size := number(0x8000), number(0xffff0000), number(0x7fffffff)
	v, h, lost, most := regs(2), regs(2), regs(2), a.ZMM()
	for i := range lost {
		a.VPXORD(lost[i], lost[i], lost[i])
	}
	dst, src, lines, left, at0, to, mosts := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	gap, part, part2, stepSrc, stepDst := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	for _, f := range []struct {
		field int
		r     reg.GPVirtual
	}{
		{splitDst, dst},
		{splitSrc, src},
		{splitLines, lines},
		{splitMost, mosts},
		{splitGap, gap},
		{splitPart, part},
		{splitStepSrc, stepSrc},
		{splitStepDst, stepDst},
	} {
		a.MOVQ(at(p, f.field), f.r)
	}
	a.LEAQ(operand.Mem{Base: part, Index: part, Scale: 1}, part2)
	a.Label("line")
	a.MOVQ(src, at0)
	a.MOVQ(dst, to)
	a.MOVQ(at(p, splitN), left)
	a.VMOVDQU32(at(mosts, 0), most)
	a.Label("pair")
	a.VMOVUPS(at(at0, 0), v[0])
	a.VMOVUPS(operand.Mem{Base: at0, Index: gap, Scale: 1}, v[1])
	for i := range v {
		a.VPANDD(v[i], size, h[i])
		a.VPMAXUD(h[i], most, most)
	}
	for i, place := range []operand.Mem{at(to, 0), {Base: to, Index: part, Scale: 1}} {
		for k := range v {
			a.VPADDD(v[k], half, h[k])
			a.VPANDD(h[k], upper, h[k])
			a.VSUBPS(h[k], v[k], v[k])
		}
		a.VPSRLD(operand.U8(16), h[0], h[0])
		a.VPORD(h[0], h[1], h[1])
		a.VMOVDQU32(h[1], place)
		const any3 = 0xFE
		a.VPTERNLOGD(operand.U8(any3), v[0], v[1], lost[i])
	}
	a.VPSRLD(operand.U8(16), v[0], v[0])
	a.VPANDD(v[1], upper, v[1])
	a.VPORD(v[0], v[1], v[1])
	a.VMOVDQU32(v[1], operand.Mem{Base: to, Index: part2, Scale: 1})
	a.ADDQ(stepSrc, at0)
	a.ADDQ(stepDst, to)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("pair"))
	a.VMOVDQU32(most, at(mosts, 0))
	a.ADDQ(at(p, splitNextMost), mosts)
	a.ADDQ(at(p, splitNextSrc), src)
	a.ADDQ(at(p, splitNextDst), dst)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	words, set := a.GP64(), a.GP32()
	a.MOVQ(at(p, splitLost), words)
	for i := range lost {
		mask := a.K()
		a.VPTESTMD(lost[i], lost[i], mask)
		a.KMOVW(mask, set)
		a.ORL(set, at(words, 4*i))
	}
	a.VZEROUPPER()
	a.RET()
}

// tileBrains adds to tile sum the products of pairs of bfloat16 of rows of tile x by columns of
// tile y (TDPBF16PS).
func (a *asm) tileBrains(y, x, sum int) {
	a.raw(label("TDPBF16PS tile %d, tile %d, tile %d", y, x, sum), append(vex38(vexF3, false, 0, 0, 0, y), 0x5C, byte(0xC0|sum<<3|x))...)
}

// partProducts writes the sums of blocks of 16 rows by a panel of 32 columns, of as many parts of
// rows and of columns: all products of parts but those that are smaller than what float32 rounds
// off. Tiles in use are few, see tileSums.
func (a *asm) partProducts(rows, cols int) {
	const x, y = 2, 3
	a.function(label("parts%d%dAMX", rows, cols), "func(p *partProgram)")
	p := reg.RDI
	a.Load(a.Param("p"), p)
	pa, pb, pc, line, rowC := reg.RSI, reg.R8, reg.RBX, reg.RCX, reg.RDX
	steps, blocks, ahead, tmp := reg.R9, reg.R10, reg.R11, reg.RAX
	a.MOVQ(at(p, partConfig), tmp)
	a.tileConfig(tmp)
	a.MOVQ(operand.U32(64), line)
	a.MOVQ(operand.U32(128), rowC)
	a.MOVQ(at(p, partA), pa)
	a.MOVQ(at(p, partC), pc)
	a.MOVQ(at(p, partBlocks), blocks)
	a.MOVQ(at(p, partAhead), ahead)
	a.Label("block")
	a.tileZero(0)
	a.tileZero(1)
	a.MOVQ(at(p, partB), pb)
	a.MOVQ(at(p, partSteps), steps)
	a.Label("step")
	a.bringAhead(p, partAheadLines, ahead, tmp)
	there := -1
	for i := rows - 1; i >= 0; i-- {
		a.tileLoad(x, pa, line, i*partTile)
		var order []int
		// Sums alternate, and the tile of columns that is there is used once more.
		for j := range min(cols, 3-i) {
			for v := range 2 {
				order = append(order, 2*j+v)
			}
		}
		if k := slices.Index(order, there); k > 0 {
			order = append([]int{there}, slices.Delete(order, k, k+1)...)
		}
		for _, c := range order {
			if c != there {
				a.tileLoad(y, pb, line, c*partTile)
				there = c
			}
			a.tileBrains(y, x, c%2)
		}
	}
	a.ADDQ(operand.U32(partRows), pa)
	a.ADDQ(operand.U32(partPanel), pb)
	a.DECQ(steps)
	a.JNZ(operand.LabelRef("step"))
	for v := range 2 {
		a.tileStore(v, pc, rowC, 64*v)
	}
	a.ADDQ(operand.U32(2*partTile), pc)
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	a.tileRelease()
	a.RET()
}

// partSums writes rows of 32 sums, or of as many as two masks say: what is there may be added,
// and values of rows and of columns, and they may be limited.
func (a *asm) partSums() {
	a.function("partSumsAVX512", "func(p *partSums)")
	p := a.Load(a.Param("p"), a.GP64())
	dst, row, src, rows, column, line, tmp := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	for _, f := range []struct {
		field int
		r     reg.GPVirtual
	}{
		{sumsDst, dst},
		{sumsRow, row},
		{sumsSrc, src},
		{sumsRows, rows},
		{sumsColumn, column},
		{sumsLine, line},
	} {
		a.MOVQ(at(p, f.field), f.r)
	}
	masks := []reg.OpmaskVirtual{a.K(), a.K()}
	for v, m := range masks {
		a.KMOVW(at(p, sumsMask+2*v), m)
	}
	least, most, spread := a.ZMM(), a.ZMM(), a.ZMM()
	a.VBROADCASTSS(at(p, sumsMin), least)
	a.VBROADCASTSS(at(p, sumsMax), most)
	sum, columns := []reg.VecVirtual{a.ZMM(), a.ZMM()}, []reg.VecVirtual{a.ZMM(), a.ZMM()}
	for v := range columns {
		a.VPXORD(columns[v], columns[v], columns[v])
	}
	a.TESTQ(line, line)
	a.JZ(operand.LabelRef("row"))
	for v := range columns {
		a.VMOVUPS_Z(at(line, 64*v), masks[v], columns[v])
	}
	a.Label("row")
	for v := range sum {
		a.VMOVUPS(at(src, 64*v), sum[v])
	}
	skip := func(field int, name string) {
		a.MOVQ(at(p, field), tmp)
		a.TESTQ(tmp, tmp)
		a.JZ(operand.LabelRef(name))
	}
	skip(sumsAdd, "added")
	there := a.ZMM()
	for v := range sum {
		a.VMOVUPS_Z(at(dst, 64*v), masks[v], there)
		a.VADDPS(there, sum[v], sum[v])
	}
	a.Label("added")
	a.TESTQ(column, column)
	a.JZ(operand.LabelRef("no_rows"))
	a.VBROADCASTSS(at(column, 0), spread)
	for v := range sum {
		a.VADDPS(spread, sum[v], sum[v])
	}
	a.ADDQ(operand.U8(4), column)
	a.Label("no_rows")
	a.TESTQ(line, line)
	a.JZ(operand.LabelRef("no_columns"))
	for v := range sum {
		a.VADDPS(columns[v], sum[v], sum[v])
	}
	a.Label("no_columns")
	skip(sumsClamp, "limited")
	for v := range sum {
		// With the sum last, a sum that is NaN stays.
		a.VMAXPS(sum[v], least, sum[v])
		a.VMINPS(sum[v], most, sum[v])
	}
	a.Label("limited")
	for v := range sum {
		a.VMOVUPS(sum[v], masks[v], at(dst, 64*v))
	}
	a.ADDQ(row, dst)
	a.ADDQ(operand.U32(128), src)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}
