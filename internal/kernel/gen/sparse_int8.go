package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.SparseIntTile, in bytes; a test there compares them.
const (
	sparseIntX = 8 * iota
	sparseIntOffs
	sparseIntVals
	sparseIntCounts
	sparseIntUnits
	sparseIntY
	sparseIntRow // of y
	sparseIntStart
	sparseIntMore
)

func sparseBytes(a *asm) {
	for _, s := range []struct {
		w   width
		dot bool
	}{{ymm, false}, {zmm, false}, {ymm, true}, {zmm, true}} {
		a.sparseBytesTile(s.w, 1, true, s.dot)
		a.sparseBytesTile(s.w, 1, false, s.dot)
		a.sparseBytesTile(s.w, 4, false, s.dot)
	}
	a.splitWords()
}

// splitWords takes fours of 32 positions apart: of rows of 32 words it makes, in their place,
// four lines of 32 bytes each.
func (a *asm) splitWords() {
	byByte := a.turnOrder()
	apart := a.StaticGlobal("halvesApart")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		a.AddDatum(i, operand.U8(uint8(i%2*4+i/2)))
	}
	a.function("splitWordsAVX2", "func(x *byte, rows int)")
	x := a.Load(a.Param("x"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	order, places := a.YMM(), a.YMM()
	table := a.GP64()
	a.LEAQ(byByte, table)
	a.VBROADCASTI128(operand.Mem{Base: table}, order)
	a.LEAQ(apart, table)
	a.VPMOVZXBD(operand.Mem{Base: table}, places)
	var v, t [4]reg.VecVirtual
	for i := range v {
		v[i], t[i] = a.YMM(), a.YMM()
	}
	a.Label("row")
	for i := range v {
		a.VMOVDQU(at(x, 32*i), v[i])
		a.VPSHUFB(order, v[i], v[i])
	}
	for i := range 2 {
		a.VPUNPCKLDQ(v[2*i+1], v[2*i], t[2*i])
		a.VPUNPCKHDQ(v[2*i+1], v[2*i], t[2*i+1])
	}
	for i := range 2 {
		a.VPUNPCKLQDQ(t[2+i], t[i], v[2*i])
		a.VPUNPCKHQDQ(t[2+i], t[i], v[2*i+1])
	}
	for i := range v {
		a.VPERMD(v[i], places, v[i])
		a.VMOVDQU(v[i], at(x, 32*i))
	}
	a.ADDQ(operand.U32(128), x)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// sparseInt is a tile in the making: sums of rows by vecs registers, and others from base on.
type sparseInt struct {
	w          width
	rows, vecs int
	together   bool
	dot        bool
	base       int
}

func (s *sparseInt) sum(r, v int) reg.VecPhysical { return s.w.reg(r*s.vecs + v) }
func (s *sparseInt) reg(i int) reg.VecPhysical    { return s.w.reg(s.base + i) }

// sparseBytesTile writes the products of fours of 8-bit weights, row after row, or of four rows
// at a time that have them at the same steps, by a panel of codes without a sign. Where the fours
// lie together, a panel has the codes of four steps of a position side by side; else it has a
// line for each step, and four lines are woven into each other in registers: 16 bytes of each at
// a time, so that sums stand in another order until they are written. dot multiplies and adds
// fours in one instruction; else every other code is multiplied as a pair of 16 bits, and weights
// have been split so.
func (a *asm) sparseBytesTile(w width, rows int, together, dot bool) {
	s := &sparseInt{w: w, rows: rows, vecs: 4, together: together, dot: dot}
	halves := 1
	if rows > 1 && w == ymm {
		s.vecs, halves = 2, 2 // there are registers for half of the positions only
	}
	s.base = rows * s.vecs
	kind, set := "Lines", w.set
	if together {
		kind = "Fours"
	}
	if dot {
		set = "VNNI"
		if w == ymm {
			set = "HalfVNNI"
		}
	}
	a.function(label("sparse%s%d%s", kind, rows, set), "func(t *SparseIntTile)")
	t := a.Load(a.Param("t"), a.GP64())
	y, step, step3, start, counts := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	x, offs, vals, count := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, sparseIntX), x)
	a.MOVQ(at(t, sparseIntOffs), offs)
	a.MOVQ(at(t, sparseIntVals), vals)
	a.MOVQ(at(t, sparseIntCounts), counts)
	a.MOVQ(at(t, sparseIntY), y)
	a.MOVQ(at(t, sparseIntStart), start)
	a.MOVQ(at(t, sparseIntRow), step)
	if rows > 1 {
		a.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, step3)
	}
	lie := rowPointers{a: a, step: step, step3: step3, bases: []reg.GPVirtual{y}}
	row := lie.at
	if !dot {
		low := s.reg(s.spare() + 1)
		if w == zmm {
			a.VPTERNLOGD(operand.U8(0xff), low, low, low)
		} else {
			a.VPCMPEQW(low, low, low)
		}
		a.VPSRLW(operand.U8(8), low, low)
	}
	a.Label("unit")
	if halves > 1 {
		// The same list once more: the tile keeps its place.
		a.MOVQ(offs, at(t, sparseIntOffs))
		a.MOVQ(vals, at(t, sparseIntVals))
	}
	for half := range halves {
		name := func(l string) string { return label("%s%d", l, half) }
		for r := range rows {
			for v := range s.vecs {
				a.zero(w, s.sum(r, v))
			}
		}
		if half > 0 {
			a.MOVQ(at(t, sparseIntOffs), offs)
			a.MOVQ(at(t, sparseIntVals), vals)
		}
		a.MOVL(at(counts, 0), count.As32())
		a.TESTQ(count, count)
		a.JZ(operand.LabelRef(name("end")))
		a.Label(name("step"))
		a.sparseCodes(s, half, halves, x, offs)
		if dot {
			a.sparseDots(s, vals)
		} else {
			a.sparsePairs(s, vals)
		}
		places, bytes := 4, 4*rows
		if together {
			places = 1
		}
		if !dot {
			bytes *= 2
		}
		a.ADDQ(operand.U32(uint32(2*places)), offs)
		a.ADDQ(operand.U32(uint32(bytes)), vals)
		a.DECQ(count)
		a.JNZ(operand.LabelRef(name("step")))
		a.Label(name("end"))
		outs := make([][]sparseOut, rows)
		for r := range rows {
			outs[r] = a.sparseOrder(s, r, half)
		}
		a.MOVQ(at(t, sparseIntMore), count)
		a.TESTQ(count, count)
		a.JNZ(operand.LabelRef(name("more")))
		for r := range rows {
			spread := s.reg(s.spare())
			a.VPBROADCASTD(at(start, 4*r), spread)
			for _, o := range outs[r] {
				a.VPADDD(spread, o.from, o.from)
				a.VMOVUPS(o.from, row(r, o.at))
			}
		}
		a.JMP(operand.LabelRef(name("written")))
		a.Label(name("more"))
		for r := range rows {
			for _, o := range outs[r] {
				a.VPADDD(row(r, o.at), o.from, o.from)
				a.VMOVUPS(o.from, row(r, o.at))
			}
		}
		a.Label(name("written"))
	}
	a.ADDQ(operand.U32(4), counts)
	a.ADDQ(operand.U32(uint32(4*rows)), start)
	if rows > 1 {
		a.LEAQ(operand.Mem{Base: y, Index: step, Scale: 4}, y)
	} else {
		a.ADDQ(step, y)
	}
	a.DECQ(at(t, sparseIntUnits))
	a.JNZ(operand.LabelRef("unit"))
	a.VZEROUPPER()
	a.RET()
}

// spare is the first register behind those of codes.
func (s *sparseInt) spare() int {
	if s.vecs == 2 || s.together {
		return 4
	}
	return 8
}

// code is the register with the fours of codes of sums v.
func (s *sparseInt) code(v int) reg.VecPhysical {
	if s.vecs == 2 {
		return s.reg(1 + 2*v)
	}
	return s.reg(v)
}

// sparseCodes makes fours of codes, of all positions or of every other eight of them.
func (a *asm) sparseCodes(s *sparseInt, half, halves int, x, offs reg.GPVirtual) {
	w, place := s.w, a.GP64()
	if s.together {
		a.MOVWQZX(at(offs, 0), place)
		for v := range s.vecs {
			a.loadInts(w, operand.Mem{Base: x, Index: place, Scale: 1, Disp: v * w.bytes()}, s.reg(v))
		}
		return
	}
	for i := range 4 {
		place := a.GP64()
		a.MOVWQZX(at(offs, 2*i), place)
		a.loadInts(w, operand.Mem{Base: x, Index: place, Scale: 1}, s.reg(i))
	}
	weave := func(y, x, lo, hi reg.VecPhysical) {
		if hi != nil {
			a.VPUNPCKHBW(y, x, hi)
		}
		if lo != nil {
			a.VPUNPCKLBW(y, x, lo)
		}
	}
	if halves == 2 {
		if half == 0 {
			weave(s.reg(1), s.reg(0), s.reg(0), nil)
			weave(s.reg(3), s.reg(2), s.reg(2), nil)
		} else {
			weave(s.reg(1), s.reg(0), nil, s.reg(0))
			weave(s.reg(3), s.reg(2), nil, s.reg(2))
		}
		a.VPUNPCKLWD(s.reg(2), s.reg(0), s.code(0))
		a.VPUNPCKHWD(s.reg(2), s.reg(0), s.code(1))
		return
	}
	weave(s.reg(1), s.reg(0), s.reg(4), s.reg(5))
	weave(s.reg(3), s.reg(2), s.reg(6), s.reg(7))
	for v := range 2 {
		a.VPUNPCKLWD(s.reg(6+v), s.reg(4+v), s.code(2*v))
		a.VPUNPCKHWD(s.reg(6+v), s.reg(4+v), s.code(2*v+1))
	}
}

// sparseDots adds products of fours.
func (a *asm) sparseDots(s *sparseInt, vals reg.GPVirtual) {
	spread := s.reg(s.spare())
	for r := range s.rows {
		a.VPBROADCASTD(at(vals, 4*r), spread)
		for v := range s.vecs {
			a.VPDPBUSD(spread, s.code(v), s.sum(r, v))
		}
	}
}

// sparsePairs adds products of the first and third codes, and of the others.
func (a *asm) sparsePairs(s *sparseInt, vals reg.GPVirtual) {
	first := s.spare()
	spread, low, other, even := s.reg(first), s.reg(first+1), s.reg(first+2), s.reg(first+3)
	and := func(x, y, z reg.Register) {
		if s.w == zmm {
			a.VPANDD(x, y, z)
		} else {
			a.VPAND(x, y, z)
		}
	}
	if s.rows == 1 {
		a.VPBROADCASTD(at(vals, 0), spread)
		a.VPBROADCASTD(at(vals, 4), other)
	}
	for v := range s.vecs {
		odd := s.code(v)
		and(low, odd, even)
		a.VPSRLW(operand.U8(8), odd, odd)
		if s.rows == 1 {
			a.VPMADDWD(spread, even, even)
			a.VPMADDWD(other, odd, odd)
			a.VPADDD(even, s.sum(0, v), s.sum(0, v))
			a.VPADDD(odd, s.sum(0, v), s.sum(0, v))
			continue
		}
		for r := range s.rows {
			a.VPBROADCASTD(at(vals, 8*r), spread)
			a.VPBROADCASTD(at(vals, 8*r+4), other)
			a.VPMADDWD(even, spread, spread)
			a.VPMADDWD(odd, other, other)
			a.VPADDD(spread, s.sum(r, v), s.sum(r, v))
			a.VPADDD(other, s.sum(r, v), s.sum(r, v))
		}
	}
}

// sparseOut is a register of sums and its place in a row of them, in bytes.
type sparseOut struct {
	from reg.VecPhysical
	at   int
}

// sparseOrder puts the sums of a row into the order of positions.
func (a *asm) sparseOrder(s *sparseInt, r, half int) (outs []sparseOut) {
	w := s.w
	switch {
	case s.together:
		for v := range s.vecs {
			outs = append(outs, sparseOut{s.sum(r, v), v * w.bytes()})
		}
	case w == ymm:
		for p := range s.vecs / 2 {
			lo, hi, spare := s.sum(r, 2*p), s.sum(r, 2*p+1), s.reg(0)
			a.VPERM2I128(operand.U8(0x20), hi, lo, spare)
			a.VPERM2I128(operand.U8(0x31), hi, lo, hi)
			a.VMOVDQU(spare, lo)
			outs = append(outs, sparseOut{lo, 32 * (p + half)}, sparseOut{hi, 64 + 32*(p+half)})
		}
	default:
		var t [4]reg.VecPhysical
		for p := range 2 {
			for i, order := range []uint8{0x44, 0xee} {
				t[2*p+i] = s.reg(2*p + i)
				a.VSHUFI32X4(operand.U8(order), s.sum(r, 2*p+1), s.sum(r, 2*p), t[2*p+i])
			}
		}
		for i := range 4 {
			order := []uint8{0x88, 0xdd}[i%2]
			a.VSHUFI32X4(operand.U8(order), t[2+i/2], t[i/2], s.sum(r, i))
			outs = append(outs, sparseOut{s.sum(r, i), i * w.bytes()})
		}
	}
	return outs
}
