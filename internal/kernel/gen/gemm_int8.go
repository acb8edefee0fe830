package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.IntTile, in bytes; a test there compares them.
const (
	intA = 8 * iota
	intRowA
	intSegA
	intK
	intSegs
	intB
	intC
	intRowC
	intFlags
	intStart
	intPanelB
	intAhead
	intOrder
	intBelow
)

// intBoth is what flags have where sums begin with what c has and start.
const intBoth = 2

func bytes(a *asm) {
	for _, dot := range []bool{false, true} {
		for _, w := range []width{ymm, zmm} {
			if dot && w == ymm {
				continue
			}
			rows := 6
			if w == zmm {
				rows = 12
			}
			for _, k := range []intKind{narrow, wide} {
				for r := 1; r <= rows; r++ {
					a.intTile(w, r, k, dot)
				}
			}
		}
	}
	for r := 1; r <= 12; r++ {
		a.intTile(zmm, r, quads, true)
		a.intTile(zmm, r, few, true)
		a.intTile(zmm, r, turned, true)
		a.intTile(zmm, r, half, true)
		a.intTile(zmm, r, narrowHalf, true)
	}
	for r := 1; r <= 6; r++ {
		a.intTile(ymm, r, quads, false)
		a.intTile(ymm, r, ordered, false)
	}
	a.quadsWide(zmm)
	a.gatherQuads(zmm)
	a.interleave()
	a.reach()
	for _, step := range []int{1, 2} {
		a.lines("widenLinesU", step, true, false)
		a.lines("widenLinesS", step, true, true)
		a.lines("copyBytes", step, false, false)
	}
	for _, w := range []width{ymm, zmm} {
		a.widen(w, true)
		a.widen(w, false)
		a.gatherPairs(w)
		a.requantise(w)
		if w == zmm {
			order := a.turnOrder()
			requantises(a, order)
			a.pairWindows(order)
		}
	}
}

// intKind is what numbers a product of integers has, and the name of its kernels.
type intKind string

// Pairs of 16-bit numbers by pairs of 8-bit numbers, or of 16-bit ones; fours of 8-bit numbers
// without a sign by fours with one, or the other way round; either by the first half of a panel,
// too.
const (
	narrow intKind = "narrow"
	wide   intKind = "wide"
	quads  intKind = "quads"
	turned intKind = "turned"
	half   intKind = "half"
	few    intKind = "few"
	sieve  intKind = "sifted" // quads by weights as sifted has them
	// quads whose activations are reordered within 16 bytes, see simd.IntTile.Order
	ordered intKind = "ordered"

	narrowHalf intKind = "narrowHalf"
)

// intTile writes the product of rows by a panel, with 32-bit sums. dot multiplies and adds in one
// instruction. Sums of fours begin with those of start, a row for all, or turned with a number
// for each; sums of pairs begin with zero.
func (a *asm) intTile(w width, rows int, kind intKind, dot bool) {
	set := w.set
	switch {
	case dot && w == ymm:
		set = "AVXVNNI"
	case dot:
		set = "VNNI"
	}
	a.function(label("%s%d%s", kind, rows, set), "func(t *IntTile)")
	vecs := panelVecs
	switch kind {
	case half:
		kind, vecs = turned, 1
	case few:
		kind, vecs = quads, 1
	case narrowHalf:
		kind, vecs = narrow, 1
	}
	t := a.Load(a.Param("t"), a.GP64())
	a.Label("tile")
	p := a.intProducts(t, w, rows, vecs, kind, dot, nil)
	p.set(at(t, intC), at(t, intRowC))
	for r := range rows {
		for v := range vecs {
			a.VMOVUPS(w.reg(r*vecs+v), p.at(r, v*w.bytes()))
		}
	}
	if w == ymm && rows == 6 {
		by := a.GP64()
		a.MOVQ(at(t, intBelow), by)
		a.TESTQ(by, by)
		a.JZ(operand.LabelRef("done"))
		a.DECQ(at(t, intBelow))
		for _, f := range []struct{ first, row int }{{intA, intRowA}, {intC, intRowC}} {
			a.MOVQ(at(t, f.row), by)
			a.LEAQ(operand.Mem{Base: by, Index: by, Scale: 2}, by)
			a.ADDQ(by, by)
			a.ADDQ(by, at(t, f.first))
		}
		a.JMP(operand.LabelRef("tile"))
		a.Label("done")
	}
	a.VZEROUPPER()
	a.RET()
}

// panelVecs is the number of registers of a panel's columns.
const panelVecs = 2

// byColumn tells whether weights are those of columns, of fours.
func (k intKind) byColumn() bool { return k == quads || k == sieve || k == ordered }

// intProducts computes the sums of rows by the first vecs registers of a panel: those of a row
// after those of the row before, in the first registers. It returns pointers to rows, for any
// use. Where further is set, rows of the left-hand matrix, or of c where sums go on from it,
// begin that much further on, the tile may have no segments, and sums may begin with what c has
// and start both.
func (a *asm) intProducts(t reg.Register, w width, rows, vecs int, kind intKind, dot bool, further operand.Op) *rowPointers {
	sum := func(r, v int) reg.VecPhysical { return w.reg(r*vecs + v) }
	each := func(f func(r, v int)) {
		for r := range rows {
			for v := range vecs {
				f(r, v)
			}
		}
	}
	flags := a.GP64()
	a.MOVQ(at(t, intFlags), flags)
	p := a.rowPointers(rows)
	a.TESTQ(flags, flags)
	a.JNZ(operand.LabelRef("continue"))
	start := a.GP64()
	if kind.byColumn() || kind == turned {
		a.MOVQ(at(t, intStart), start)
	}
	each(func(r, v int) {
		switch {
		case kind.byColumn():
			a.VMOVUPS(at(start, v*w.bytes()), sum(r, v))
		case kind == turned:
			a.VPBROADCASTD(at(start, 4*r), sum(r, v))
		default:
			a.zero(w, sum(r, v))
		}
	})
	a.JMP(operand.LabelRef("begin"))
	a.Label("continue")
	p.set(at(t, intC), at(t, intRowC))
	if further != nil {
		p.add(further)
	}
	each(func(r, v int) { a.VMOVUPS(p.at(r, v*w.bytes()), sum(r, v)) })
	if further != nil {
		a.CMPQ(flags, operand.U8(intBoth))
		a.JNE(operand.LabelRef("begin"))
		a.MOVQ(at(t, intStart), start)
		each(func(r, v int) {
			if kind.byColumn() {
				a.VPADDD(at(start, v*w.bytes()), sum(r, v), sum(r, v))
			} else {
				a.VPADDD_BCST(at(start, 4*r), sum(r, v), sum(r, v))
			}
		})
	}
	a.Label("begin")
	p.set(at(t, intA), at(t, intRowA))
	if further != nil {
		p.add(further)
	}
	if kind.byColumn() && !dot {
		a.saturatingOnes(w)
	}
	order := a.GP64()
	if kind == ordered {
		a.MOVQ(at(t, intOrder), order)
	}
	pb, k, segs, seg := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, intB), pb)
	a.MOVQ(at(t, intSegs), segs)
	a.MOVQ(at(t, intK), k)
	a.MOVQ(at(t, intSegA), seg)
	a.SHLQ(operand.U8(2), k)
	a.SUBQ(k, seg)
	if further != nil {
		a.TESTQ(segs, segs)
		a.JZ(operand.LabelRef("summed"))
	}
	a.Label("segment")
	a.MOVQ(at(t, intK), k)
	a.Label("step")
	switch {
	case kind == sieve:
		a.sieveStep(p, w, rows, vecs, pb, k)
	case kind == ordered:
		a.orderedStep(p, w, rows, pb, k, order)
	default:
		a.intStep(p, w, rows, vecs, kind, dot, pb, k)
	}
	p.add(seg)
	a.DECQ(segs)
	a.JNZ(operand.LabelRef("segment"))
	a.Label("summed")
	return p
}

// intStep goes along a segment, a step of all rows at a time.
func (a *asm) intStep(p *rowPointers, w width, rows, vecs int, kind intKind, dot bool, pb, k reg.Register) {
	sum := func(r, v int) reg.VecPhysical { return w.reg(r*vecs + v) }
	b := [panelVecs]reg.VecPhysical{w.reg(rows * vecs), w.reg(rows*vecs + 1)}
	spread := w.reg(rows*vecs + 2)
	step := w.bytes() // of a vector in the panel
	if kind.byColumn() && !dot {
		a.VMOVDQU(at(pb, 0), saturatingWeights(w))
		for r := range rows {
			a.VPBROADCASTD(p.at(r, 0), saturatingSpread(w))
			a.saturatingQuads(w, at(pb, step), sum(r, 0), sum(r, 1))
		}
		p.add(operand.U32(4))
		a.ADDQ(operand.U32(uint32(panelVecs*step)), pb)
		a.DECQ(k)
		a.JNZ(operand.LabelRef("step"))
		return
	}
	if kind == narrow {
		step /= 2
	}
	steps := func(n int) {
		for i := range n {
			for v := range vecs {
				if m := at(pb, (i*panelVecs+v)*step); kind == narrow {
					a.VPMOVSXBW(m, b[v])
				} else {
					a.loadInts(w, m, b[v])
				}
			}
			for r := range rows {
				a.VPBROADCASTD(p.at(r, 4*i), spread)
				for v := range vecs {
					switch {
					case kind == quads:
						a.dotInts(w, dotQuads, b[v], spread, sum(r, v))
					case kind == turned:
						a.dotInts(w, dotQuads, spread, b[v], sum(r, v))
					case dot:
						a.dotInts(w, dotPairs, b[v], spread, sum(r, v))
					default:
						product := w.reg(rows*vecs + 3)
						a.VPMADDWD(b[v], spread, product)
						a.VPADDD(product, sum(r, v), sum(r, v))
					}
				}
			}
		}
		p.add(operand.U32(uint32(4 * n)))
		a.ADDQ(operand.U32(uint32(n*panelVecs*step)), pb)
	}
	if dot || w != ymm {
		steps(1)
		a.DECQ(k)
		a.JNZ(operand.LabelRef("step"))
		return
	}
	// Two steps at a time leave the units that multiply and add more time.
	a.SUBQ(operand.U8(2), k)
	a.JL(operand.LabelRef("rest"))
	a.Label("two")
	steps(2)
	a.SUBQ(operand.U8(2), k)
	a.JGE(operand.LabelRef("two"))
	a.Label("rest")
	a.ADDQ(operand.U8(2), k)
	a.JZ(operand.LabelRef("stepped"))
	steps(1)
	a.Label("stepped")
}

// sieveStep goes along a segment, two fours of all rows at a time: each column takes its codes
// out of the eight.
func (a *asm) sieveStep(p *rowPointers, w width, rows, vecs int, pb, k reg.Register) {
	first := rows * vecs
	weight := func(v int) reg.VecPhysical { return w.reg(first + v) }
	place := func(v int) reg.VecPhysical { return w.reg(first + vecs + v) }
	taken := func(v int) reg.VecPhysical { return w.reg(first + 2*vecs + v) }
	spread := w.reg(first + 3*vecs)
	for v := range vecs {
		a.loadInts(w, at(pb, v*w.bytes()), weight(v))
		a.loadInts(w, at(pb, (panelVecs+v)*w.bytes()), place(v))
	}
	for r := range rows {
		a.VPBROADCASTQ(p.at(r, 0), spread)
		for v := range vecs {
			a.VPSHUFB(place(v), spread, taken(v))
			a.dotInts(w, dotQuads, weight(v), taken(v), w.reg(r*vecs+v))
		}
	}
	p.add(operand.U32(8))
	a.ADDQ(operand.U32(uint32(2*panelVecs*w.bytes())), pb)
	a.SUBQ(operand.U8(2), k)
	a.JNZ(operand.LabelRef("step"))
}

// quadsWide writes the product of fours of one row by four panels.
func (a *asm) quadsWide(w width) {
	a.function("quadsWideVNNI", "func(t *IntTile)")
	t := a.Load(a.Param("t"), a.GP64())
	field := func(off int) reg.GPVirtual {
		r := a.GP64()
		a.MOVQ(at(t, off), r)
		return r
	}
	row, k, pb, panel, c, start, panel3 := field(intA), field(intK), field(intB), field(intPanelB), field(intC), field(intStart), a.GP64()
	a.LEAQ(operand.Mem{Base: panel, Index: panel, Scale: 2}, panel3)
	const vecs = 8
	for v := range vecs {
		a.VMOVUPS(at(start, v*w.bytes()), w.reg(v))
	}
	spread := w.reg(vecs)
	a.Label("step")
	a.VPBROADCASTD(at(row, 0), spread)
	for v := range vecs {
		m := operand.Mem{Base: pb, Disp: v % 2 * w.bytes()}
		switch v / 2 {
		case 1:
			m.Index, m.Scale = panel, 1
		case 2:
			m.Index, m.Scale = panel, 2
		case 3:
			m.Index, m.Scale = panel3, 1
		}
		a.VPDPBUSD(m, spread, w.reg(v))
	}
	a.ADDQ(operand.U8(4), row)
	a.ADDQ(operand.U32(uint32(2*w.bytes())), pb)
	a.DECQ(k)
	a.JNZ(operand.LabelRef("step"))
	for v := range vecs {
		a.VMOVUPS(w.reg(v), at(c, v*w.bytes()))
	}
	a.VZEROUPPER()
	a.RET()
}

// gatherQuads is gather for rows of fours of 8-bit numbers: the values of four taps side by side.
func (a *asm) gatherQuads(w width) {
	a.function("gatherQuads"+w.set, "func(dst, src *byte, offs *int32, n int, runs *int32, nruns int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	offs := a.Load(a.Param("offs"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	runs := a.Load(a.Param("runs"), a.GP64())
	from, to, run, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	var taps [4]reg.GPVirtual
	a.Label("row")
	for i := range taps {
		taps[i] = a.GP64()
		a.MOVLQSX(at(offs, 4*i), taps[i])
		a.ADDQ(src, taps[i])
	}
	a.MOVQ(runs, run)
	a.Load(a.Param("nruns"), left)
	a.Label("run")
	a.MOVLQSX(at(run, 0), from)
	a.MOVLQSX(at(run, 4), to)
	for v := range 2 {
		x := a.vec(w)
		for i, tap := range taps {
			from := operand.Mem{Base: tap, Index: from, Scale: 1, Disp: v * w.floats}
			if i == 0 {
				a.VPMOVZXBD(from, x)
				continue
			}
			y := a.vec(w)
			a.VPMOVZXBD(from, y)
			a.VPSLLD(operand.U8(uint8(8*i)), y, y)
			a.or(w, y, x)
		}
		a.VMOVUPS(x, operand.Mem{Base: dst, Index: to, Scale: 4, Disp: v * w.bytes()})
	}
	a.ADDQ(operand.U32(8), run)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("run"))
	a.ADDQ(operand.U32(16), offs)
	a.ADDQ(operand.U32(uint32(2*w.bytes())), dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// interleave writes n fours of 32 columns, less a number, of rows step bytes apart.
func (a *asm) interleave() {
	a.function("interleaveAVX2", "func(dst, src *byte, step, n int, zero uint32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	row := a.Load(a.Param("step"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	zero := a.everyByte("zero")
	third := a.GP64()
	a.LEAQ(operand.Mem{Base: row, Index: row, Scale: 2}, third)
	a.loop(n, 1, func() {
		var x [4]reg.VecVirtual
		for i := range x {
			m := at(src, 0)
			switch i {
			case 1, 2:
				m.Index, m.Scale = row, uint8(i)
			case 3:
				m.Index, m.Scale = third, 1
			}
			x[i] = a.YMM()
			a.VMOVDQU(m, x[i])
			a.VPSUBB(zero, x[i], x[i])
		}
		// Halves of 16 columns, and of these the first and the last eight.
		var pairs, fours [4]reg.VecVirtual
		for i := range pairs {
			pairs[i], fours[i] = a.YMM(), a.YMM()
		}
		for i := range 2 {
			a.VPUNPCKLBW(x[2*i+1], x[2*i], pairs[i])
			a.VPUNPCKHBW(x[2*i+1], x[2*i], pairs[2+i])
		}
		for i := range 2 {
			a.VPUNPCKLWD(pairs[2*i+1], pairs[2*i], fours[2*i])
			a.VPUNPCKHWD(pairs[2*i+1], pairs[2*i], fours[2*i+1])
		}
		for i, f := range fours {
			a.VMOVDQU(f.AsX(), at(dst, 16*i))
			a.VEXTRACTI128(operand.U8(1), f, at(dst, 64+16*i))
		}
		a.LEAQ(operand.Mem{Base: src, Index: row, Scale: 4}, src)
	}, step{dst, 128})
	a.VZEROUPPER()
	a.RET()
}

// reach adds up by how much the k bytes of each row, of which some bits are turned first, lie
// above a number, and below it, and adds that to what is there. It reads whole vectors: mask has
// the bytes of the last one that count.
func (a *asm) reach() {
	a.function("reachAVX2", "func(src *byte, rows, k int, turn, from uint32, mask *byte, above, below *int32)")
	src := a.Load(a.Param("src"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	k := a.Load(a.Param("k"), a.GP64())
	turn, from, none, mask := a.everyByte("turn"), a.everyByte("from"), a.YMM(), a.YMM()
	a.VPXOR(none, none, none)
	a.VMOVDQU(at(a.Load(a.Param("mask"), a.GP64()), 0), mask)
	to := [2]reg.Register{a.Load(a.Param("above"), a.GP64()), a.Load(a.Param("below"), a.GP64())}
	sums := [2]reg.VecVirtual{a.YMM(), a.YMM()}
	p, n := a.GP64(), a.GP64()
	more := func(counts func(v reg.VecVirtual)) {
		x, y := a.YMM(), a.YMM()
		a.VPXOR(at(p, 0), turn, x)
		a.VPSUBUSB(x, from, y)
		a.VPSUBUSB(from, x, x)
		for i, v := range []reg.VecVirtual{x, y} {
			counts(v)
			a.VPSADBW(none, v, v)
			a.VPADDQ(v, sums[i], sums[i])
		}
	}
	a.Label("row")
	for _, s := range sums {
		a.VPXOR(s, s, s)
	}
	a.MOVQ(src, p)
	a.MOVQ(k, n)
	a.Label("whole")
	a.SUBQ(operand.U8(32), n)
	a.JLT(operand.LabelRef("part"))
	more(func(reg.VecVirtual) {})
	a.ADDQ(operand.U8(32), p)
	a.JMP(operand.LabelRef("whole"))
	a.Label("part")
	a.ADDQ(operand.U8(32), n)
	a.JZ(operand.LabelRef("sums"))
	more(func(v reg.VecVirtual) { a.VPAND(mask, v, v) })
	a.Label("sums")
	for i, s := range sums {
		x, y, r := a.XMM(), a.XMM(), a.GP32()
		a.VEXTRACTI128(operand.U8(1), s, x)
		a.VPADDQ(s.AsX(), x, x)
		a.VPSRLDQ(operand.U8(8), x, y)
		a.VPADDQ(y, x, x)
		a.VMOVD(x, r)
		a.ADDL(r, at(to[i], 0))
		a.ADDQ(operand.U8(4), to[i])
	}
	a.ADDQ(k, src)
	a.SUBQ(operand.U8(1), rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// everyByte has the lowest byte of a parameter in each byte.
func (a *asm) everyByte(name string) reg.VecVirtual {
	x, v, g := a.XMM(), a.YMM(), a.GP32()
	a.Load(a.Param(name), g)
	a.VMOVD(g, x)
	a.VPBROADCASTB(x, v)
	return v
}

// lines writes lines of n bytes, each one or every other, wide as 16-bit differences to a zero
// point, else with some bits turned. The last register of a line, which may be a whole one, has
// masks: in of the bytes that it reads, out of the values that it writes.
func (a *asm) lines(name string, each int, wide, signed bool) {
	params := "zero int16"
	if !wide {
		params = "turn int16"
	}
	to := "byte"
	if wide {
		to = "int16"
	}
	a.function(label("%s%dAVX512", name, each), "func(dst *"+to+", stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, "+params+")")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	bits, z := a.GP64(), a.GP32()
	in, out := reg.K1, reg.K2
	a.Load(a.Param("in"), bits)
	a.KMOVQ(bits, in)
	a.Load(a.Param("out"), bits)
	a.KMOVQ(bits, out)
	zero, zx, low := a.ZMM(), a.XMM(), a.ZMM()
	a.Load(a.Param(params[:4]), z)
	a.VMOVD(z, zx)
	a.VPBROADCASTW(zx, zero)
	if each == 2 && !signed {
		a.VPTERNLOGD(operand.U8(0xff), low, low, low)
		a.VPSRLW(operand.U8(8), low, low)
	}
	values := 32 // of a register
	if !wide && each == 1 {
		values = 64
	}
	move := func(from, to operand.Mem, last bool) {
		x := a.ZMM()
		switch {
		case each == 2 || !wide:
			if last {
				a.VMOVDQU8_Z(from, in, x)
			} else {
				a.VMOVDQU32(from, x)
			}
		case signed && last:
			a.VPMOVSXBW_Z(from, in, x)
		case signed:
			a.VPMOVSXBW(from, x)
		case last:
			a.VPMOVZXBW_Z(from, in, x)
		default:
			a.VPMOVZXBW(from, x)
		}
		if each == 2 && signed {
			a.VPSLLW(operand.U8(8), x, x)
			a.VPSRAW(operand.U8(8), x, x)
		} else if each == 2 {
			a.VPANDD(low, x, x)
		}
		switch {
		case wide:
			a.VPSUBW(zero, x, x)
			if last {
				a.VMOVDQU16(x, out, to)
			} else {
				a.VMOVDQU32(x, to)
			}
		case each == 2:
			a.VPXORD(zero, x, x)
			if last {
				a.VPMOVWB(x, out, to)
			} else {
				a.VPMOVWB(x, to)
			}
		default:
			a.VPXORD(zero, x, x)
			if last {
				a.VMOVDQU8(x, out, to)
			} else {
				a.VMOVDQU32(x, to)
			}
		}
	}
	size := values
	if wide {
		size *= 2
	}
	from, at1, left := a.GP64(), a.GP64(), a.GP64()
	a.Label("line")
	a.MOVQ(src, from)
	a.MOVQ(dst, at1)
	a.Load(a.Param("n"), left)
	a.Label("step")
	a.SUBQ(operand.U8(uint8(values)), left)
	a.JLE(operand.LabelRef("last"))
	move(at(from, 0), at(at1, 0), false)
	a.ADDQ(operand.U32(uint32(values*each)), from)
	a.ADDQ(operand.U32(uint32(size)), at1)
	a.JMP(operand.LabelRef("step"))
	a.Label("last")
	move(at(from, 0), at(at1, 0), true)
	a.ADDQ(stepDst, dst)
	a.ADDQ(stepSrc, src)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()
}

// loadInts loads a register of integers.
func (a *asm) loadInts(w width, m operand.Mem, v reg.Register) {
	if w == ymm {
		a.VMOVDQU(m, v)
		return
	}
	a.VMOVDQU32(m, v)
}

// widen writes the differences of n 8-bit numbers to a zero point, n a multiple of 16
// or 32, as 16-bit numbers.
func (a *asm) widen(w width, signed bool) {
	name := "widenUint8"
	if signed {
		name = "widenInt8"
	}
	a.function(name+w.set, "func(dst *int16, src *byte, n int, zero int16)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	zero := a.GP32()
	a.Load(a.Param("zero"), zero)
	x, z, z1 := a.vec(w), a.vec(w), a.XMM()
	a.VMOVD(zero, z1)
	a.VPBROADCASTW(z1, z)
	a.Label("step")
	if signed {
		a.VPMOVSXBW(at(src, 0), x)
	} else {
		a.VPMOVZXBW(at(src, 0), x)
	}
	a.VPSUBW(z, x, x)
	a.VMOVUPS(x, at(dst, 0))
	a.ADDQ(operand.U32(uint32(w.bytes()/2)), src)
	a.ADDQ(operand.U32(uint32(w.bytes())), dst)
	a.SUBQ(operand.U32(uint32(w.bytes()/2)), n)
	a.JNZ(operand.LabelRef("step"))
	a.VZEROUPPER()
	a.RET()
}

// or adds the bits of y to x.
func (a *asm) or(w width, y, x reg.Register) {
	if w == ymm {
		a.VPOR(y, x, x)
		return
	}
	a.VPORD(y, x, x)
}

// gatherPairs is gather for rows of pairs of 16-bit numbers: the values of two taps side
// by side.
func (a *asm) gatherPairs(w width) {
	a.function("gatherPairs"+w.set, "func(dst, src *int16, offs *int32, n int, runs *int32, nruns int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	offs := a.Load(a.Param("offs"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	runs := a.Load(a.Param("runs"), a.GP64())
	nruns := a.Load(a.Param("nruns"), a.GP64())
	first, second := a.GP64(), a.GP64()
	from, to, run, left := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("row")
	a.MOVLQSX(at(offs, 0), first)
	a.MOVLQSX(at(offs, 4), second)
	a.LEAQ(operand.Mem{Base: src, Index: first, Scale: 2}, first)
	a.LEAQ(operand.Mem{Base: src, Index: second, Scale: 2}, second)
	a.MOVQ(runs, run)
	a.MOVQ(nruns, left)
	a.Label("run")
	a.MOVLQSX(at(run, 0), from)
	a.MOVLQSX(at(run, 4), to)
	for v := range 2 {
		x, y := a.vec(w), a.vec(w)
		a.VPMOVZXWD(operand.Mem{Base: first, Index: from, Scale: 2, Disp: v * w.bytes() / 2}, x)
		a.VPMOVZXWD(operand.Mem{Base: second, Index: from, Scale: 2, Disp: v * w.bytes() / 2}, y)
		a.VPSLLD(operand.U8(16), y, y)
		a.or(w, y, x)
		a.VMOVUPS(x, operand.Mem{Base: dst, Index: to, Scale: 4, Disp: v * w.bytes()})
	}
	a.ADDQ(operand.U32(8), run)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("run"))
	a.ADDQ(operand.U32(8), offs)
	a.ADDQ(operand.U32(uint32(2*w.bytes())), dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// turnOrder is a table of 16 bytes that exchanges rows and columns of 4 by 4 words.
func (a *asm) turnOrder() operand.Mem {
	m := a.StaticGlobal("turnOrder")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		a.AddDatum(i, operand.U8(uint8(i%4*4+i/4)))
	}
	return m
}

// requantise turns rows of 32-bit sums into 8-bit values: the arithmetic of
// kernel.Requant for a register of channels at a time, whose numbers lie in arrays.
func (a *asm) requantise(w width) {
	a.function("requantise"+w.set, "func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	sums := a.Load(a.Param("sums"), a.GP64())
	stepSums := a.Load(a.Param("stepSums"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	spread := func(name string) reg.VecVirtual {
		v, x, g := a.vec(w), a.XMM(), a.GP32()
		a.Load(a.Param(name), g)
		a.VMOVD(g, x)
		a.VPBROADCASTD(x, v)
		return v
	}
	zero, lo, hi := spread("zero"), spread("lo"), spread("hi")
	half := a.vec(w)
	c := a.GP64()
	a.MOVQ(operand.U64(1<<30), c)
	cx := a.XMM()
	a.VMOVQ(c, cx)
	a.VPBROADCASTQ(cx, half)
	one := a.vec(w)
	a.MOVQ(operand.U64(1), c)
	a.VMOVQ(c, cx)
	a.VPBROADCASTD(cx, one)
	if w == zmm {
		a.MOVL(operand.U32(0xaaaa), c.As32())
		a.KMOVW(c.As32(), reg.K1)
	}
	// Channels after channels, for each of which the numbers stay in registers for all rows.
	from, to, left := a.GP64(), a.GP64(), a.GP64()
	var params [4]reg.Register
	for i, name := range []string{"mul", "up", "down", "bias"} {
		params[i] = a.Load(a.Param(name), a.GP64())
	}
	load := func(m operand.Mem) reg.VecVirtual {
		v := a.vec(w)
		a.loadInts(w, m, v)
		return v
	}
	a.Label("step")
	m, u, d, b := load(at(params[0], 0)), load(at(params[1], 0)), load(at(params[2], 0)), load(at(params[3], 0))
	odds, mask, middle := a.vec(w), a.vec(w), a.vec(w)
	a.VPSRLQ(operand.U8(32), m, odds)
	a.VPSLLVD(d, one, mask)
	a.VPSUBD(one, mask, mask)
	a.VPSRLD(operand.U8(1), mask, middle)
	a.MOVQ(sums, from)
	a.MOVQ(dst, to)
	a.MOVQ(rows, left)
	a.Label("row")
	x := a.vec(w)
	a.VPADDD(at(from, 0), b, x)
	a.VPSLLVD(u, x, x)
	// Products of even and of odd lanes, of 64 bits each.
	even, odd := a.vec(w), a.vec(w)
	a.VPMULDQ(m, x, even)
	a.VPSRLQ(operand.U8(32), x, odd)
	a.VPMULDQ(odds, odd, odd)
	a.VPADDQ(half, even, even)
	a.VPADDQ(half, odd, odd)
	// Bits 31 to 62 of each are the result.
	a.VPSRLQ(operand.U8(31), even, even)
	a.VPSLLQ(operand.U8(1), odd, odd)
	r := a.vec(w)
	if w == ymm {
		a.VPBLENDD(operand.U8(0xaa), odd, even, r)
	} else {
		a.VPBLENDMD(odd, even, reg.K1, r)
	}
	// Shift to the right, rounding; ties go away from zero.
	rest, sign := a.vec(w), a.vec(w)
	if w == ymm {
		a.VPAND(mask, r, rest)
	} else {
		a.VPANDD(mask, r, rest)
	}
	a.VPSRAD(operand.U8(31), r, sign)
	a.VPSUBD(sign, middle, sign)
	a.VPSRAVD(d, r, r)
	if w == ymm {
		a.VPCMPGTD(sign, rest, rest)
		a.VPSUBD(rest, r, r)
	} else {
		a.VPCMPGTD(sign, rest, reg.K2)
		a.VPADDD(one, r, reg.K2, r)
	}
	a.VPADDD(zero, r, r)
	a.VPMAXSD(lo, r, r)
	a.VPMINSD(hi, r, r)
	if w == ymm {
		// The lowest byte of each, four in a lane.
		lane := a.YMM()
		a.VPACKSSDW(r, r, lane)
		a.VPERMQ(operand.U8(0xd8), lane, lane)
		low := lane.AsX()
		byteMask := a.XMM()
		a.VPCMPEQW(byteMask, byteMask, byteMask)
		a.VPSRLW(operand.U8(8), byteMask, byteMask)
		a.VPAND(byteMask, low, low)
		a.VPACKUSWB(low, low, low)
		a.VMOVQ(low, at(to, 0))
	} else {
		short := a.XMM()
		a.VPMOVDB(r, short)
		a.VMOVDQU(short, at(to, 0))
	}
	a.ADDQ(stepDst, to)
	a.ADDQ(stepSums, from)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("row"))
	for _, p := range append(params[:], sums) {
		a.ADDQ(operand.U32(uint32(w.bytes())), p)
	}
	a.ADDQ(operand.U32(uint32(w.floats)), dst)
	a.SUBQ(operand.U32(uint32(w.floats)), n)
	a.JNZ(operand.LabelRef("step"))
	a.VZEROUPPER()
	a.RET()
}
