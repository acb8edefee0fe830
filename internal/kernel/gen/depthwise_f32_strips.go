package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.Strip, in bytes; a test there compares them.
const (
	stripDst = 8 * iota
	stripLineDst
	stripNextDst
	stripSrc
	stripLineSrc
	stripNextSrc
	stripW
	stripStepW
	stripNextW
	stripBias
	stripNextBias
	stripN
	stripAt
	stripTap
	stripLead
	stripLines
	stripOdd
	stripLast
	stripMasks
	stripMin // and Max
	stripBits
	stripMax   = stripMin + 4
	stripFlags = stripBits + 24
)

// Bits of simd.Strip.Flags: the first line is one between; all values of a strip are there.
const (
	flagOdd   = 1 << 4
	flagWhole = 1 << 5
)

// stripKind says what stands side by side in a strip.
type stripKind string

const (
	spreadStrip stripKind = "Spread" // positions of a line; one weight for all of them
	laneStrip   stripKind = "Lanes"  // channels of a position; products and sums are rounded apart
	// a register of channels of each of several positions; rounded apart
	columnStrip stripKind = "Columns"
)

func strips(a *asm) {
	a.strip(ymm, 3, 1, 1, spreadStrip)
	a.strip(ymm, 3, 1, 1, laneStrip)
	a.strip(ymm, 3, 1, 2, laneStrip)
	a.strip(zmm, 3, 3, 2, columnStrip)
	a.strip(zmm, 3, 4, 2, columnStrip)
	for _, k := range []int{3, 5, 7} {
		for step := 1; step <= 2; step++ {
			a.strip(ymm512, k, 1, step, spreadStrip)
			a.strip(zmm, k, 1, step, spreadStrip)
			if k == 3 && step == 1 {
				a.strip(zmm, k, 2, step, spreadStrip)
				a.strip(zmm, k, 2, step, laneStrip)
			}
			if k < 7 {
				a.strip(zmm, k, 1, step, laneStrip)
			}
		}
	}
}

// strip writes the walk of a k by k window down a strip of lines, of one or two registers
// of values: a line is read once, and gives what it has to give to each of the k results
// whose windows are on it. These stand in registers, the oldest first. With a step of
// two, lines alternate: even ones are the first of a window and end one, odd ones lie
// between; the strip of the exact kind has the columns that its values see where it is
// told, that of the other kind takes every other value.
func (a *asm) strip(w width, k, vecs, step int, kind stripKind) {
	exact, columns := kind != spreadStrip, kind == columnStrip
	a.function(label("strip%s%dx%dby%d%s", kind, k, vecs, step, w.set), "func(t *Strip)")
	t := a.Load(a.Param("t"), a.GP64())
	next := 0
	fresh := func() reg.VecPhysical {
		next++
		return w.reg(next - 1)
	}
	live := (k-1)/step + 1
	sums := make([][]reg.VecPhysical, live) // by age, by register of the strip
	for j := range sums {
		for range vecs {
			sums[j] = append(sums[j], fresh())
		}
	}
	value, product := fresh(), reg.VecPhysical(nil)
	if exact {
		product = fresh()
	}
	// Weights stay in registers: one for all values (spread), or others for each (lanes).
	sets := 1
	if kind == laneStrip {
		sets = vecs
	}
	apart := step == 2 && !exact // every other value of registers
	three := apart && k == 3     // of one pair of registers all taps
	var pair [2]reg.VecPhysical
	var order, even, odds reg.VecPhysical
	if apart {
		pair[0], pair[1], order = fresh(), fresh(), fresh()
	}
	if three {
		even, odds = fresh(), fresh()
	}
	weights := make([][]reg.VecPhysical, k*k)
	for i := range weights {
		for range sets {
			if next < w.regs {
				weights[i] = append(weights[i], fresh())
			}
		}
	}
	var mask reg.VecPhysical
	if !w.masks {
		mask = fresh()
	}

	// The limits stay in registers as well, if there are any left.
	var least, most reg.VecPhysical
	if next+2 <= w.regs {
		least, most = fresh(), fresh()
		a.VBROADCASTSS(at(t, stripMin), least)
		a.VBROADCASTSS(at(t, stripMax), most)
	}

	field := func(off int) reg.GPVirtual {
		r := a.GP64()
		a.MOVQ(at(t, off), r)
		return r
	}
	dst0, src0, pw, bias := field(stripDst), field(stripSrc), field(stripW), field(stripBias)
	n, tap, masks := field(stripN), field(stripTap), a.GP64()
	flags := a.GP64()
	a.MOVL(at(t, stripFlags), flags.As32())
	loads := k * vecs // of a line, each with its mask
	if columns {
		loads = (vecs-1)*step + k
	}
	if apart {
		loads = k + 1
		index := a.GP64()
		a.MOVQ(at(t, stripMasks), index)
		a.VMOVUPS(at(index, 0), order)
		if three {
			loads = k
			a.VMOVUPS(at(index, 64), odds)
		}
	}
	src, dst, lines, left, tapW := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	tap3 := a.GP64()
	if columns {
		a.LEAQ(operand.Mem{Base: tap, Index: tap, Scale: 2}, tap3)
	}
	// A mask for each tap of a line and register: 16 bits. The last register is for those that
	// find no other, and for results.
	held := []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4, reg.K5, reg.K6}
	kmask := func(i int) reg.OpmaskPhysical {
		if i < len(held) {
			return held[i]
		}
		a.KMOVW(at(t, stripBits+2*i), reg.K7)
		return reg.K7
	}
	if w.masks {
		for i := range min(loads, len(held)) {
			a.KMOVW(at(t, stripBits+2*i), held[i])
		}
	} else {
		a.MOVQ(at(t, stripMasks), masks)
	}
	// load reads a register of values of tap kx.
	load := func(v, kx int) {
		m := operand.Mem{Base: left, Disp: v * w.bytes()}
		if w.masks {
			a.VMOVUPS_Z(m, kmask(kx*vecs+v), value)
			return
		}
		a.VMOVUPS(at(masks, 32*kx), mask)
		a.VMASKMOVPS(m, mask, value)
	}
	// multiply adds products of tap kx to register v of all results that see the line.
	multiply := func(parity, kx, v, set int, value reg.VecPhysical) {
		for j := range live { // result j is met by line ky of its window
			ky := k - 1 - parity - j*step
			if ky < 0 {
				continue
			}
			i := ky*k + kx
			switch {
			case exact:
				a.VMULPS(weights[i][set], value, product)
				a.VADDPS(product, sums[j][v], sums[j][v])
			case weights[i] == nil:
				// Broadcasting is part of the instruction.
				a.VFMADD231PS_BCST(at(pw, 4*i), value, sums[j][v])
			default:
				a.VFMADD231PS(weights[i][0], value, sums[j][v])
			}
		}
	}
	// column is memory in column c from p on; far is room for pointers.
	far := a.GP64()
	column := func(p reg.GPVirtual, c int) operand.Mem {
		if c > 0 && c%4 == 0 {
			a.LEAQ(operand.Mem{Base: p, Index: tap, Scale: uint8(c)}, far)
		}
		if c >= 4 {
			p = far
		}
		m := operand.Mem{Base: p}
		switch c % 4 {
		case 1:
			m.Index, m.Scale = tap, 1
		case 2:
			m.Index, m.Scale = tap, 2
		case 3:
			m.Index, m.Scale = tap3, 1
		}
		return m
	}
	lineOfColumns := func(parity int) {
		for c := range loads {
			a.VMOVUPS_Z(column(src, c), kmask(c), value)
			for v := range vecs {
				if kx := c - v*step; kx >= 0 && kx < k {
					multiply(parity, kx, v, 0, value)
				}
			}
		}
		a.ADDQ(at(t, stripLineSrc), src)
	}
	// lineOfThree takes a pair of registers apart into what the second and the third tap see, so
	// that lines of whole registers are read at places that these have; the first tap sees what
	// the third one does, moved by one, and a value before.
	lineOfThree := func(parity int) {
		odd, upper := pair[0], pair[1]
		a.VMOVUPS_Z(at(src, 4), kmask(0), odd)
		a.VMOVUPS_Z(at(src, 4+w.bytes()), kmask(1), upper)
		a.VMOVAPS(odd, even)
		a.VPERMT2PS(upper, order, even)
		a.VPERMT2PS(upper, odds, odd)
		multiply(parity, 1, 0, 0, even)
		multiply(parity, 2, 0, 0, odd)
		a.VBROADCASTSS_Z(at(src, 0), kmask(2), value)
		a.VALIGND(operand.U8(uint8(w.floats-1)), value, odd, value)
		multiply(parity, 0, 0, 0, value)
		a.ADDQ(at(t, stripLineSrc), src)
	}
	// line reads a line: with a step of two those of one parity.
	line := func(parity int) {
		if three {
			lineOfThree(parity)
			return
		}
		if columns {
			lineOfColumns(parity)
			return
		}
		a.MOVQ(src, left)
		for kx := range k {
			for v := range vecs {
				if !apart {
					load(v, kx)
				} else {
					if kx%2 == 0 {
						for i := range pair {
							a.VMOVUPS_Z(operand.Mem{Base: left, Disp: i*w.bytes() + 4*kx}, kmask(kx+i), pair[i])
						}
					}
					// Results stand in the order that this gives until they are written.
					a.VSHUFPS(operand.U8([]uint8{0x88, 0xdd}[kx%2]), pair[1], pair[0], value)
				}
				multiply(parity, kx, v, v, value)
			}
			if kx < k-1 && !apart {
				a.ADDQ(tap, left)
			}
		}
		a.ADDQ(at(t, stripLineSrc), src)
	}
	begin := func(j int) {
		for v := range vecs {
			if exact {
				a.zero(w, sums[j][v])
			} else {
				a.VBROADCASTSS(at(bias, 0), sums[j][v])
			}
		}
	}
	shift := func() {
		for j := range live - 1 {
			for v := range vecs {
				a.VMOVAPS(sums[j+1][v], sums[j][v])
			}
		}
	}
	// read takes what is next to the results; results makes its mask ready.
	results := func() {
		if !w.masks {
			a.VMOVUPS(at(masks, 32*k), mask)
		}
	}
	read := func(m operand.Mem, v int, to reg.VecPhysical) {
		if w.masks {
			a.KMOVW(at(t, stripBits+2*(loads+v)), reg.K7)
			a.VMOVUPS_Z(m, reg.K7, to)
			return
		}
		a.VMASKMOVPS(m, mask, to)
	}
	// store writes the oldest result.
	store := func(name string) {
		results()
		if exact {
			a.TESTQ(bias, bias)
			a.JZ(operand.LabelRef(name + "_nobias"))
			for v := range vecs {
				if v == 0 || !columns {
					read(at(bias, v*w.bytes()), v, value)
				}
				a.VADDPS(value, sums[0][v], sums[0][v])
			}
			a.Label(name + "_nobias")
		}
		lo, hi := least, most
		if least == nil {
			lo, hi = value, value
			a.TESTL(operand.U32(flagClamp), flags.As32())
			a.JZ(operand.LabelRef(name + "_free"))
			a.VBROADCASTSS(at(t, stripMin), lo)
		}
		// With the sum last, a sum that is NaN stays.
		for v := range vecs {
			a.VMAXPS(sums[0][v], lo, sums[0][v])
		}
		if least == nil {
			a.VBROADCASTSS(at(t, stripMax), hi)
		}
		for v := range vecs {
			a.VMINPS(sums[0][v], hi, sums[0][v])
		}
		a.Label(name + "_free")
		if !w.masks {
			// Writing with a mask takes some processors a dozen cycles.
			a.TESTL(operand.U32(flagWhole), flags.As32())
			a.JZ(operand.LabelRef(name + "_part"))
			for v := range vecs {
				a.VMOVUPS(sums[0][v], at(dst, v*w.bytes()))
			}
			a.JMP(operand.LabelRef(name + "_written"))
			a.Label(name + "_part")
		}
		for v := range vecs {
			m, sum := at(dst, v*w.bytes()), sums[0][v]
			if apart && !three {
				a.VPERMPD(sum, order, value)
				sum = value
			}
			if columns {
				m = column(dst, v)
			}
			if w.masks {
				if v == 0 || !columns {
					a.KMOVW(at(t, stripBits+2*(loads+v)), reg.K7)
				}
				a.VMOVUPS(sum, reg.K7, m)
			} else {
				a.VMASKMOVPS(sum, mask, m)
			}
		}
		a.Label(name + "_written")
		a.ADDQ(at(t, stripLineDst), dst)
	}

	a.Label("strip")
	if exact {
		a.MOVQ(pw, tapW)
		results()
	}
	for i := range weights {
		if exact && i > 0 {
			a.ADDQ(at(t, stripStepW), tapW)
		}
		for v, r := range weights[i] {
			if exact {
				read(at(tapW, v*w.bytes()), v, r)
			} else {
				a.VBROADCASTSS(at(pw, 4*i), r)
			}
		}
	}
	a.MOVQ(src0, src)
	a.ADDQ(at(t, stripAt), src)
	a.MOVQ(dst0, dst)
	for j := range live {
		begin(j)
	}
	// Lines after which no result is whole come first.
	lead := a.GP64()
	a.MOVQ(at(t, stripLead), lead)
	a.MOVQ(at(t, stripLines), lines)
	between := a.GP64()
	if step == 2 {
		a.MOVQ(at(t, stripOdd), between)
		a.TESTL(operand.U32(flagOdd), flags.As32())
		a.JNZ(operand.LabelRef("odd"))
	}
	a.Label("line")
	line(0)
	a.DECQ(lead)
	a.JNS(operand.LabelRef("none"))
	store("line")
	a.Label("none")
	shift()
	begin(live - 1)
	a.DECQ(lines)
	if step == 2 {
		a.TESTQ(between, between)
		a.JZ(operand.LabelRef("all"))
		a.Label("odd")
		line(1)
		a.DECQ(between)
		a.TESTQ(lines, lines)
	}
	a.JNZ(operand.LabelRef("line"))
	if step == 2 {
		a.Label("all")
	}
	// Results whose windows end below the last line.
	a.MOVQ(at(t, stripLast), lines)
	a.TESTQ(lines, lines)
	a.JZ(operand.LabelRef("done"))
	a.Label("last")
	store("last")
	shift()
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("last"))
	a.Label("done")
	a.ADDQ(at(t, stripNextDst), dst0)
	a.ADDQ(at(t, stripNextSrc), src0)
	a.ADDQ(at(t, stripNextW), pw)
	a.ADDQ(at(t, stripNextBias), bias)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("strip"))
	a.VZEROUPPER()
	a.RET()
}
