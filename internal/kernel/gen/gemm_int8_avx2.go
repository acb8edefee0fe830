package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// 4-way dot products by VPMADDUBSW, which adds the products of two neighbours with saturation to
// 16 bits. Weights are packed so that no sum of two saturates. Sums take the registers below 12,
// the weights of the second half of a panel stay in memory.

func saturatingWeights(w width) reg.VecPhysical { return w.reg(12) }
func saturatingSpread(w width) reg.VecPhysical  { return w.reg(13) }

// saturatingOnes sets the register of 16-bit ones, which add two neighbours.
func (a *asm) saturatingOnes(w width) {
	ones := w.reg(15)
	a.VPCMPEQW(ones, ones, ones)
	a.VPSRLW(operand.U8(15), ones, ones)
}

// saturatingQuads adds the dot products of a row of activations by the weights of both halves of
// a panel, those of the second at second.
func (a *asm) saturatingQuads(w width, second operand.Mem, sum0, sum1 reg.Register) {
	weights, spread, product, ones := saturatingWeights(w), saturatingSpread(w), w.reg(14), w.reg(15)
	a.VPMADDUBSW(weights, spread, product)
	a.VPMADDUBSW(second, spread, spread)
	a.VPMADDWD(ones, product, product)
	a.VPADDD(product, sum0, sum0)
	a.VPMADDWD(ones, spread, spread)
	a.VPADDD(spread, sum1, sum1)
}

// orderedStep goes along a segment of at least four groups of four, 16 activations at a time.
// Those of all rows are written to the stack in their order first, as a broadcast from memory
// leaves more of the units that multiply and add free than one shuffle for each four. The last
// activations are the end of the last 16.
func (a *asm) orderedStep(p *rowPointers, w width, rows int, pb, k, order reg.Register) {
	const window, each, places = 16, 4, 4
	panel := panelVecs * w.bytes()
	const windows = 4
	pitch := window * windows
	buffer := a.alignedLocal(pitch * rows)
	arrange := func(n int) {
		which, x := saturatingWeights(w).AsX(), saturatingSpread(w).AsX()
		for i := range n {
			a.VMOVDQU(at(order, 16*i), which)
			for r := range rows {
				a.VMOVDQU(p.at(r, 16*i), x)
				a.VPSHUFB(which, x, x)
				a.VMOVDQU(x, buffer.Offset(pitch*r+16*i))
			}
		}
		a.ADDQ(operand.U32(uint32(n*window/each*places)), order)
	}
	group := func(i int, from operand.Mem) {
		a.VMOVDQU(at(pb, i*panel), saturatingWeights(w))
		for r := range rows {
			a.VPBROADCASTD(from.Offset(pitch*r), saturatingSpread(w))
			a.saturatingQuads(w, at(pb, i*panel+w.bytes()), w.reg(r*panelVecs), w.reg(r*panelVecs+1))
		}
	}
	a.SUBQ(operand.U8(windows*window/each), k)
	a.JL(operand.LabelRef("fewer"))
	a.Label("windows")
	arrange(windows)
	p.add(operand.U32(uint32(windows * window)))
	for i := range windows * window / each {
		group(i, buffer.Offset(each*i))
	}
	a.ADDQ(operand.U32(uint32(windows*window/each*panel)), pb)
	a.SUBQ(operand.U8(windows*window/each), k)
	a.JGE(operand.LabelRef("windows"))
	a.Label("fewer")
	a.ADDQ(operand.U8((windows-1)*window/each), k)
	a.JL(operand.LabelRef("rest"))
	a.Label("window")
	arrange(1)
	p.add(operand.U32(window))
	for i := range window / each {
		group(i, buffer.Offset(each*i))
	}
	a.ADDQ(operand.U32(uint32(window/each*panel)), pb)
	a.SUBQ(operand.U8(window/each), k)
	a.JGE(operand.LabelRef("window"))
	a.Label("rest")
	a.ADDQ(operand.U8(window/each), k)
	a.JZ(operand.LabelRef("whole"))
	// The order of the last groups ends the last 16 places, too.
	back := a.GP64()
	a.LEAQ(operand.Mem{Disp: -window, Base: k, Index: k, Scale: 1}, back)
	a.LEAQ(operand.Mem{Base: back, Index: k, Scale: 2}, back)
	p.add(back)
	a.ADDQ(back, order)
	arrange(1)
	p.add(operand.U32(window))
	from := back
	a.NEGQ(from)
	a.LEAQ(buffer.Idx(from, 1), from)
	a.Label("last")
	group(0, at(from, 0))
	a.ADDQ(operand.U32(each), from)
	a.ADDQ(operand.U32(uint32(panel)), pb)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("last"))
	a.Label("whole")
}

// Places of the fields of simd.PairWindow, in bytes; a test there compares them.
const (
	pairSteps = 0
	pairSizes = pairSteps + 16*16
	pairLarge = pairSizes + 16*32
)

// pairWindows writes the kernels of simd.PairWindow. order is turnOrder.
func (a *asm) pairWindows(order operand.Mem) {
	a.function("splitPairsAVX2", "func(w *PairWindow, src *int8, quads int)")
	window, src, quads := a.Load(a.Param("w"), a.GP64()), a.Load(a.Param("src"), a.GP64()), a.Load(a.Param("quads"), a.GP64())
	large := a.GP64()
	a.LEAQ(at(window, pairLarge), large)
	sizes := a.GP64()
	a.LEAQ(at(window, pairSizes), sizes)
	byStep, zero, add := a.YMM(), a.XMM(), a.YMM()
	table, bits := a.GP64(), a.GP32()
	a.LEAQ(order, table)
	a.VBROADCASTI128(at(table, 0), byStep)
	a.VPXOR(zero, zero, zero)
	a.MOVL(operand.U32(64), bits)
	a.VMOVD(bits, add.AsX())
	a.VPBROADCASTB(add.AsX(), add)
	a.Label("quad")
	var columns [4]reg.VecVirtual // four columns each, by step
	for h := range 2 {
		y := a.YMM()
		a.VMOVDQU(at(src, 32*h), y)
		a.VPSHUFB(byStep, y, y)
		columns[2*h], columns[2*h+1] = y.AsX().(reg.VecVirtual), a.XMM()
		a.VEXTRACTI128(operand.U8(1), y, columns[2*h+1])
	}
	for pair, interleave := range []func(...operand.Op){a.VPUNPCKLDQ, a.VPUNPCKHDQ} {
		x, y := a.XMM(), a.XMM()
		interleave(columns[1], columns[0], x)
		interleave(columns[3], columns[2], y)
		for i, join := range []func(...operand.Op){a.VPUNPCKLQDQ, a.VPUNPCKHQDQ} {
			step, above, below := a.XMM(), a.YMM(), a.XMM()
			k := 2*pair + i
			join(y, x, step)
			a.VMOVDQU(step, at(window, 16*k))
			a.VPSUBSB(step, zero, below)
			a.VPMAXSB(zero, below, below)
			a.VPMAXSB(zero, step, above.AsX())
			a.VINSERTI128(operand.U8(1), below, above, above)
			a.VMOVDQU(above, at(sizes, 32*k))
			a.VPADDB(add, above, above)
			a.VPMOVMSKB(above, bits)
			a.POPCNTL(bits, bits)
			a.MOVB(bits.As8(), at(large, k))
		}
	}
	a.ADDQ(operand.U8(64), src)
	a.ADDQ(operand.U8(64), window)
	a.ADDQ(operand.U32(128), sizes)
	a.ADDQ(operand.U8(4), large)
	a.DECQ(quads)
	a.JNZ(operand.LabelRef("quad"))
	a.VZEROUPPER()
	a.RET()

	a.function("joinPairsAVX2", "func(dst *int8, w *PairWindow, places *uint8, quads int)")
	dst, window := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("w"), a.GP64())
	places, quads := a.Load(a.Param("places"), a.GP64()), a.Load(a.Param("quads"), a.GP64())
	a.Label("quad")
	var steps [4]reg.VecVirtual
	for k := range steps {
		place := a.GP64()
		a.MOVBQZX(at(places, k), place)
		a.SHLQ(operand.U8(4), place)
		steps[k] = a.XMM()
		a.VMOVDQU(operand.Mem{Base: window, Index: place, Scale: 1}, steps[k])
	}
	for h, interleave := range []func(...operand.Op){a.VPUNPCKLBW, a.VPUNPCKHBW} {
		x, y, z := a.XMM(), a.XMM(), a.XMM()
		interleave(steps[1], steps[0], x)
		interleave(steps[3], steps[2], y)
		a.VPUNPCKLWD(y, x, z)
		a.VMOVDQU(z, at(dst, 32*h))
		a.VPUNPCKHWD(y, x, z)
		a.VMOVDQU(z, at(dst, 32*h+16))
	}
	a.ADDQ(operand.U8(4), places)
	a.ADDQ(operand.U8(64), dst)
	a.DECQ(quads)
	a.JNZ(operand.LabelRef("quad"))
	a.RET()
}
