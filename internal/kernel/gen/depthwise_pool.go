package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.Window, in bytes; a test there compares them.
const (
	windowDst = 8 * iota
	windowStepDst
	windowSrc
	windowStepSrc
	windowPlaces
	windowN
	windowOffs
	windowTaps
	windowW
	windowStepW
	windowBias
	windowMask
	windowMin
	windowBits
	windowMax   = windowMin + 4
	windowFlags = windowBits + 4
)

// Kinds of windows: with weights for each value or one for all values of a tap, the
// largest of the values (NaN never wins, or always), their sum, and the
// value of a single tap.
const (
	kindLanes = iota
	kindSpread
	kindLargest
	kindGreatest
	kindSum
	kindCopy
)

var kindNames = []string{"windowLanes", "windowSpread", "windowLargest", "windowGreatest", "windowSum", "windowCopy"}

func windows(a *asm) {
	for _, w := range []width{ymm, zmm} {
		a.windowLanes(w)
		for kind := kindLanes + 1; kind < len(kindNames); kind++ {
			a.window(w, kind)
		}
		a.intWindow(w, false, false)
		a.intWindow(w, true, false)
	}
	a.intWindow(zmm, false, true)
	a.intWindow(zmm, true, true)
	for _, w := range []width{ymm, zmm} {
		for n := 1; n <= 8; n++ {
			a.lags(w, n)
		}
	}
	a.every2()
	for each := 1; each <= 4; each++ {
		a.copyFloats(each)
	}
}

// windowWriter writes a kernel that goes over receptive fields. It holds the registers.
type windowWriter struct {
	*asm
	w    width
	kind int

	t                                       reg.Register
	dst, src, places, flags, col, remaining reg.GPVirtual
	p, pw, offs, taps, base                 reg.GPVirtual
	spread, lo, hi, value, mask             reg.VecPhysical
}

// window writes a kernel that goes over receptive fields. At each position it takes the taps in
// order: for four registers of values, for two, for one, and for the remaining values.
func (a *asm) window(w width, kind int) {
	a.function(kindNames[kind]+w.set, "func(t *Window)")
	s := &windowWriter{asm: a, w: w, kind: kind, t: a.Load(a.Param("t"), a.GP64())}
	s.loadFields()
	s.Label("place")
	s.XORQ(s.col, s.col)
	s.MOVQ(at(s.t, windowN), s.remaining)
	for _, size := range []struct {
		name, after string
		vecs        int
	}{{"four", "few", 4}, {"two", "less", 2}, {"one", "rest", 1}} {
		values := operand.U32(uint32(size.vecs * s.w.floats))
		s.Label(size.name)
		s.SUBQ(values, s.remaining)
		s.JLT(operand.LabelRef(size.after))
		s.part(size.name, size.vecs, false)
		s.ADDQ(operand.U32(uint32(size.vecs*s.w.bytes())), s.col)
		s.JMP(operand.LabelRef(size.name))
		s.Label(size.after)
		s.ADDQ(values, s.remaining)
	}
	s.JZ(operand.LabelRef("next"))
	s.part("masked", 1, true)
	s.Label("next")
	s.ADDQ(at(s.t, windowStepDst), s.dst)
	s.ADDQ(at(s.t, windowStepSrc), s.src)
	s.DECQ(s.places)
	s.JNZ(operand.LabelRef("place"))
	s.VZEROUPPER()
	s.RET()
}

// loadFields loads the pointers, the limits and the mask of the remaining values.
func (s *windowWriter) loadFields() {
	field := func(off int) reg.GPVirtual {
		r := s.GP64()
		s.MOVQ(at(s.t, off), r)
		return r
	}
	s.dst, s.src, s.places = field(windowDst), field(windowSrc), field(windowPlaces)
	s.spread, s.lo, s.hi = s.w.reg(8), s.w.reg(9), s.w.reg(10)
	s.value, s.mask = s.w.reg(11), s.w.reg(12)
	s.VBROADCASTSS(at(s.t, windowMin), s.lo)
	s.VBROADCASTSS(at(s.t, windowMax), s.hi)
	bits := s.GP64()
	s.flags = s.GP64()
	s.MOVL(at(s.t, windowBits), bits.As32())
	s.MOVL(at(s.t, windowFlags), s.flags.As32())
	if s.w == zmm {
		s.KMOVD(bits.As32(), reg.K1)
	} else {
		s.MOVQ(at(s.t, windowMask), bits)
		s.VMOVUPS(at(bits, 0), s.mask)
	}
	s.col, s.remaining = s.GP64(), s.GP64()
	s.p, s.pw, s.offs, s.taps, s.base = s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
}

// load reads a register of values, masked for the remaining ones.
func (s *windowWriter) load(m operand.Mem, v reg.VecPhysical, masked bool) {
	switch {
	case !masked:
		s.VMOVUPS(m, v)
	case s.w == zmm:
		s.VMOVUPS_Z(m, reg.K1, v)
	default:
		s.VMASKMOVPS(m, s.mask, v)
	}
}

// part takes all taps for vecs registers of values from column col on. name is the prefix of its
// labels.
func (s *windowWriter) part(name string, vecs int, masked bool) {
	s.MOVQ(at(s.t, windowOffs), s.offs)
	s.MOVQ(at(s.t, windowTaps), s.taps)
	s.LEAQ(operand.Mem{Base: s.src, Index: s.col, Scale: 1}, s.base)
	if s.kind == kindSpread {
		s.MOVQ(at(s.t, windowW), s.pw)
	}
	s.startResults(vecs)
	s.Label(name + "_tap")
	s.MOVQ(at(s.offs, 0), s.p)
	if s.kind == kindSpread {
		s.VBROADCASTSS(at(s.pw, 0), s.spread)
	}
	for v := range vecs {
		s.tap(v, masked)
	}
	s.ADDQ(operand.U8(8), s.offs)
	if s.kind == kindSpread {
		s.ADDQ(operand.U8(4), s.pw)
	}
	s.DECQ(s.taps)
	s.JNZ(operand.LabelRef(name + "_tap"))
	s.clampResults(name, vecs)
	s.storeResults(vecs, masked)
}

// startResults sets the results to the bias, to minus infinity or to zero, as the kind needs.
func (s *windowWriter) startResults(vecs int) {
	switch s.kind {
	case kindSpread:
		s.MOVQ(at(s.t, windowBias), s.p)
		s.VBROADCASTSS(at(s.p, 0), s.w.reg(0))
		for v := 1; v < vecs; v++ {
			s.VMOVUPS(s.w.reg(0), s.w.reg(v))
		}
	case kindLargest, kindGreatest:
		// Minus infinity is the smallest of all numbers.
		s.VPCMPEQD(reg.X0, reg.X0, reg.X0)
		s.VPSLLD(operand.U8(23), reg.X0, reg.X0)
		s.VBROADCASTSS(reg.X0, s.w.reg(0))
		for v := 1; v < vecs; v++ {
			s.VMOVUPS(s.w.reg(0), s.w.reg(v))
		}
	case kindSum:
		for v := range vecs {
			s.zero(s.w, s.w.reg(v))
		}
	}
}

// tap adds one tap to register v of the results.
func (s *windowWriter) tap(v int, masked bool) {
	m, sum := operand.Mem{Base: s.base, Index: s.p, Scale: 1, Disp: v * s.w.bytes()}, s.w.reg(v)
	switch s.kind {
	case kindSpread:
		s.load(m, s.value, masked)
		s.VFMADD231PS(s.spread, s.value, sum)
	case kindCopy:
		s.load(m, sum, masked)
	case kindSum:
		s.load(m, s.value, masked)
		s.VADDPS(s.value, sum, sum)
	case kindLargest:
		// The value if it is larger, else the earlier maximum, as a loop with > does.
		s.load(m, s.value, masked)
		s.VMAXPS(sum, s.value, sum)
	case kindGreatest:
		s.load(m, s.value, masked)
		if s.w == zmm {
			s.VCMPPS(operand.U8(3), s.value, s.value, reg.K2)
			s.VMAXPS(sum, s.value, sum)
			s.VMOVAPS(s.value, reg.K2, sum)
			break
		}
		s.VCMPPS(operand.U8(3), s.value, s.value, s.w.reg(13))
		s.VMAXPS(sum, s.value, sum)
		s.VORPS(s.w.reg(13), sum, sum)
	}
}

// clampResults limits the results: maxima always, sums with flagClamp, copies never.
func (s *windowWriter) clampResults(name string, vecs int) {
	if s.kind == kindCopy {
		return
	}
	optional := s.kind != kindLargest && s.kind != kindGreatest
	if optional {
		s.TESTL(operand.U32(flagClamp), s.flags.As32())
		s.JZ(operand.LabelRef(name + "_free"))
	}
	for v := range vecs {
		s.VMAXPS(s.w.reg(v), s.lo, s.w.reg(v))
		s.VMINPS(s.w.reg(v), s.hi, s.w.reg(v))
	}
	if optional {
		s.Label(name + "_free")
	}
}

// storeResults writes the results, masked for the remaining values.
func (s *windowWriter) storeResults(vecs int, masked bool) {
	s.MOVQ(s.dst, s.p)
	s.ADDQ(s.col, s.p)
	for v := range vecs {
		switch m := at(s.p, v*s.w.bytes()); {
		case !masked:
			s.VMOVUPS(s.w.reg(v), m)
		case s.w == zmm:
			s.VMOVUPS(s.w.reg(v), reg.K1, m)
		default:
			s.VMASKMOVPS(s.w.reg(v), s.mask, m)
		}
	}
}

// lanePlaces are the numbers of places that are computed together: the largest first, then
// smaller ones for the rest.
var lanePlaces = []int{8, 4, 2, 1}

// windowLanes writes a walk of windows with a weight for each value: a register of values at
// several places at a time, so that weights are read once for all of them, and what is multiplied
// comes from memory.
func (a *asm) windowLanes(w width) {
	a.function("windowLanes"+w.set, "func(t *Window)")
	t := a.Load(a.Param("t"), a.GP64())
	dst, src, places, step, step3, stepW := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(at(t, windowStepW), stepW)
	a.MOVQ(at(t, windowDst), dst)
	a.MOVQ(at(t, windowSrc), src)
	a.MOVQ(at(t, windowPlaces), places)
	weight, products, lo, hi, mask := w.reg(8), []reg.VecPhysical{w.reg(9), w.reg(10)}, w.reg(11), w.reg(12), w.reg(13)
	a.VBROADCASTSS(at(t, windowMin), lo)
	a.VBROADCASTSS(at(t, windowMax), hi)
	col, left, base, pw := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	p, p4, offs, taps := a.GP64(), a.GP64(), a.GP64(), a.GP64()

	lie := rowPointers{a: a, step: step, step3: step3, bases: []reg.GPVirtual{p, p4}}
	place := func(i int) operand.Mem { return lie.at(i, 0) }
	// steps sets the way from place to place, and far where the fifth one lies.
	steps := func(off int) {
		a.MOVQ(at(t, off), step)
		a.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, step3)
	}
	far := func(n int) {
		if n > 4 {
			a.LEAQ(operand.Mem{Base: p, Index: step, Scale: 4}, p4)
		}
	}
	load := func(m operand.Mem, masked bool, v reg.VecPhysical) {
		switch {
		case !masked:
			a.VMOVUPS(m, v)
		case w.masks:
			a.VMOVUPS_Z(m, reg.K1, v)
		default:
			a.VMASKMOVPS(m, mask, v)
		}
	}
	part := func(name string, n int, masked bool) {
		a.MOVQ(at(t, windowOffs), offs)
		a.MOVQ(at(t, windowTaps), taps)
		a.MOVQ(at(t, windowW), pw)
		a.ADDQ(col, pw)
		a.LEAQ(operand.Mem{Base: src, Index: col, Scale: 1}, base)
		steps(windowStepSrc)
		for i := range n {
			a.zero(w, w.reg(i))
		}
		a.Label(name + "_tap")
		a.MOVQ(at(offs, 0), p)
		a.ADDQ(base, p)
		far(n)
		load(at(pw, 0), masked, weight)
		for i := range n {
			product := products[i%len(products)]
			switch {
			case !masked:
				a.VMULPS(place(i), weight, product)
			case w.masks:
				a.VMULPS_Z(place(i), weight, reg.K1, product)
			default:
				load(place(i), true, product)
				a.VMULPS(weight, product, product)
			}
			a.VADDPS(product, w.reg(i), w.reg(i))
		}
		a.ADDQ(operand.U8(8), offs)
		a.ADDQ(stepW, pw)
		a.DECQ(taps)
		a.JNZ(operand.LabelRef(name + "_tap"))
		a.MOVQ(at(t, windowBias), pw)
		a.TESTQ(pw, pw)
		a.JZ(operand.LabelRef(name + "_nobias"))
		a.ADDQ(col, pw)
		load(at(pw, 0), masked, weight)
		for i := range n {
			a.VADDPS(weight, w.reg(i), w.reg(i))
		}
		a.Label(name + "_nobias")
		a.MOVL(at(t, windowFlags), pw.As32())
		a.TESTL(operand.U32(flagClamp), pw.As32())
		a.JZ(operand.LabelRef(name + "_free"))
		for i := range n {
			// With the sum last, a sum that is NaN stays.
			a.VMAXPS(w.reg(i), lo, w.reg(i))
			a.VMINPS(w.reg(i), hi, w.reg(i))
		}
		a.Label(name + "_free")
		steps(windowStepDst)
		a.LEAQ(operand.Mem{Base: dst, Index: col, Scale: 1}, p)
		far(n)
		for i := range n {
			switch {
			case !masked:
				a.VMOVUPS(w.reg(i), place(i))
			case w.masks:
				a.VMOVUPS(w.reg(i), reg.K1, place(i))
			default:
				a.VMASKMOVPS(w.reg(i), mask, place(i))
			}
		}
	}

	if w.masks {
		a.MOVL(at(t, windowBits), p.As32())
		a.KMOVW(p.As32(), reg.K1)
	} else {
		a.MOVQ(at(t, windowMask), p)
		a.VMOVUPS(at(p, 0), mask)
	}
	for _, n := range lanePlaces {
		name := label("places%d", n)
		a.Label(name)
		a.CMPQ(places, operand.U8(uint8(n)))
		a.JLT(operand.LabelRef(name + "_few"))
		a.XORQ(col, col)
		a.MOVQ(at(t, windowN), left)
		a.Label(name + "_block")
		a.SUBQ(operand.U8(uint8(w.floats)), left)
		a.JLT(operand.LabelRef(name + "_rest"))
		part(name+"_whole", n, false)
		a.ADDQ(operand.U8(uint8(w.bytes())), col)
		a.JMP(operand.LabelRef(name + "_block"))
		a.Label(name + "_rest")
		a.ADDQ(operand.U8(uint8(w.floats)), left)
		a.JZ(operand.LabelRef(name + "_next"))
		part(name+"_masked", n, true)
		a.Label(name + "_next")
		for _, to := range []struct {
			p   reg.GPVirtual
			off int
		}{{dst, windowStepDst}, {src, windowStepSrc}} {
			a.MOVQ(at(t, to.off), p)
			a.IMUL3Q(operand.U8(uint8(n)), p, p)
			a.ADDQ(p, to.p)
		}
		a.SUBQ(operand.U8(uint8(n)), places)
		a.JMP(operand.LabelRef(name))
		a.Label(name + "_few")
	}
	a.VZEROUPPER()
	a.RET()
}

// intWindow writes a walk of windows over 16-bit numbers with weights for each value, or
// one for all values of a tap (spread): two taps are interleaved, multiplied and added in
// one step. Values come in whole blocks of two registers.
func (a *asm) intWindow(w width, spread, dot bool) {
	set, kind := w.set, "intLanes"
	if dot {
		set = "VNNI"
	}
	if spread {
		kind = "intSpread"
	}
	a.function(kind+set, "func(t *IntWindow)")
	t := a.Load(a.Param("t"), a.GP64())
	field := func(off int) reg.GPVirtual {
		r := a.GP64()
		a.MOVQ(at(t, off), r)
		return r
	}
	dst, src, places := field(windowDst), field(windowSrc), field(windowPlaces)
	col, out, left := a.GP64(), a.GP64(), a.GP64()
	p, pw, offs, taps := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	x, y, low, high := w.reg(2), w.reg(3), w.reg(4), w.reg(5)
	a.Label("place")
	a.MOVQ(src, col)
	a.MOVQ(dst, out)
	a.MOVQ(at(t, windowW), pw)
	a.MOVQ(at(t, windowN), left)
	a.Label("block")
	if spread {
		a.MOVQ(at(t, windowW), pw)
	}
	a.zero(w, w.reg(0))
	a.zero(w, w.reg(1))
	a.MOVQ(at(t, windowOffs), offs)
	a.MOVQ(at(t, windowTaps), taps)
	a.Label("pair")
	a.MOVQ(at(offs, 0), p)
	a.loadInts(w, operand.Mem{Base: col, Index: p, Scale: 1}, x)
	a.MOVQ(at(offs, 8), p)
	a.loadInts(w, operand.Mem{Base: col, Index: p, Scale: 1}, y)
	a.VPUNPCKLWD(y, x, low)
	a.VPUNPCKHWD(y, x, high)
	weight := w.reg(6)
	if spread {
		a.VPBROADCASTD(at(pw, 0), weight)
		a.ADDQ(operand.U8(4), pw)
	}
	for i, v := range []reg.VecPhysical{low, high} {
		var by operand.Op = weight
		if !spread {
			by = at(pw, i*w.bytes())
		}
		if dot {
			a.VPDPWSSD(by, v, w.reg(i))
			continue
		}
		a.VPMADDWD(by, v, v)
		a.VPADDD(v, w.reg(i), w.reg(i))
	}
	if !spread {
		a.ADDQ(operand.U32(uint32(2*w.bytes())), pw)
	}
	a.ADDQ(operand.U8(16), offs)
	a.DECQ(taps)
	a.JNZ(operand.LabelRef("pair"))
	// The lower and the upper half of each lane of 128 bits lie apart.
	if w == ymm {
		a.VPERM2I128(operand.U8(0x20), w.reg(1), w.reg(0), x)
		a.VPERM2I128(operand.U8(0x31), w.reg(1), w.reg(0), y)
	} else {
		a.VSHUFI32X4(operand.U8(0x44), w.reg(1), w.reg(0), x)
		a.VSHUFI32X4(operand.U8(0xee), w.reg(1), w.reg(0), y)
		a.VSHUFI32X4(operand.U8(0xd8), x, x, x)
		a.VSHUFI32X4(operand.U8(0xd8), y, y, y)
	}
	a.VMOVUPS(x, at(out, 0))
	a.VMOVUPS(y, at(out, w.bytes()))
	a.ADDQ(operand.U32(uint32(w.bytes())), col)
	a.ADDQ(operand.U32(uint32(2*w.bytes())), out)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("block"))
	a.ADDQ(at(t, windowStepDst), dst)
	a.ADDQ(at(t, windowStepSrc), src)
	a.DECQ(places)
	a.JNZ(operand.LabelRef("place"))
	a.VZEROUPPER()
	a.RET()
}

// lags adds, for lanes that lie side by side, the products of values at some places with those n
// distances further on to sums, whose rows are step bytes apart, and with plain the values
// themselves to the row before. Lanes fill registers.
func (a *asm) lags(w width, n int) {
	a.function(label("lags%d%s", n, w.set), "func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)")
	sums := a.Load(a.Param("sums"), a.GP64())
	x := a.Load(a.Param("x"), a.GP64())
	left := a.Load(a.Param("lanes"), a.GP64())
	at0 := a.Load(a.Param("lags"), a.GP64())
	lag := make([]reg.GPVirtual, n)
	for i := range lag {
		lag[i] = a.GP64()
		a.MOVQ(at(at0, 8*i), lag[i])
	}
	place, count, base := a.GP64(), a.GP64(), a.GP64()
	own, whole := w.reg(n), w.reg(n+1)
	a.Label("lanes")
	for i := range n {
		a.zero(w, w.reg(i))
	}
	a.zero(w, whole)
	a.Load(a.Param("places"), place)
	a.Load(a.Param("count"), count)
	a.Label("place")
	a.MOVQ(at(place, 0), base)
	a.LEAQ(operand.Mem{Base: x, Index: base, Scale: 4}, base)
	a.VMOVUPS(at(base, 0), own)
	for i := range n {
		a.VFMADD231PS(operand.Mem{Base: base, Index: lag[i], Scale: 4}, own, w.reg(i))
	}
	a.VADDPS(own, whole, whole)
	a.ADDQ(operand.U8(8), place)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("place"))
	a.MOVQ(sums, base)
	step := a.Load(a.Param("step"), count)
	for i := range n {
		a.VADDPS(at(base, 0), w.reg(i), w.reg(i))
		a.VMOVUPS(w.reg(i), at(base, 0))
		a.ADDQ(step, base)
	}
	a.Load(a.Param("plain"), place)
	a.TESTQ(place, place)
	a.JZ(operand.LabelRef("next"))
	a.MOVQ(sums, base)
	a.SUBQ(step, base)
	a.VADDPS(at(base, 0), whole, whole)
	a.VMOVUPS(whole, at(base, 0))
	a.Label("next")
	a.ADDQ(operand.U8(w.bytes()), sums)
	a.ADDQ(operand.U8(w.bytes()), x)
	a.SUBQ(operand.U8(w.floats), left)
	a.JG(operand.LabelRef("lanes"))
	a.VZEROUPPER()
	a.RET()
}

// every2 copies every other value of lines, n of each. Masks are for the last 1 to 8 of a
// line: in for twice as many less one to read, out for those to write.
func (a *asm) every2() {
	a.function("every2AVX2", "func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int, in, out *int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	mask := a.Load(a.Param("in"), a.GP64())
	in0, in1, out := a.YMM(), a.YMM(), a.YMM()
	a.VMOVUPS(at(mask, 0), in0)
	a.VMOVUPS(at(mask, 32), in1)
	a.Load(a.Param("out"), mask)
	a.VMOVUPS(at(mask, 0), out)
	left, from, to := a.GP64(), a.GP64(), a.GP64()
	x, y := a.YMM(), a.YMM()
	a.Label("line")
	a.MOVQ(dst, to)
	a.MOVQ(src, from)
	a.Load(a.Param("n"), left)
	a.Label("step")
	a.SUBQ(operand.U8(8), left)
	a.JLE(operand.LabelRef("rest")) // the last of 16 values may not be there
	a.VMOVUPS(at(from, 0), x)
	a.VMOVUPS(at(from, 32), y)
	a.shuffleEven(x, y)
	a.VMOVUPS(x, at(to, 0))
	a.ADDQ(operand.U8(64), from)
	a.ADDQ(operand.U8(32), to)
	a.JMP(operand.LabelRef("step"))
	a.Label("rest")
	a.VMASKMOVPS(at(from, 0), in0, x)
	a.VMASKMOVPS(at(from, 32), in1, y)
	a.shuffleEven(x, y)
	a.VMASKMOVPS(x, out, at(to, 0))
	a.ADDQ(stepDst, dst)
	a.ADDQ(stepSrc, src)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()
}

// copyFloats copies lines of n values of which each, every other, third or fourth is wanted. The
// last register of a line has masks, whole or not.
func (a *asm) copyFloats(each int) {
	a.function(label("copyFloats%dAVX512", each), "func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	whole, bits, ones := a.GP64(), a.GP64(), a.GP64()
	in, out := []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4}[:each], reg.K5
	// Bits of the values that the last register writes, and of those that it reads.
	a.LEAQ(at(n, -1), whole)
	a.MOVQ(whole, bits)
	a.SHRQ(operand.U8(4), whole)
	a.ANDQ(operand.U8(15), bits)
	a.MOVQ(operand.I32(-1), ones)
	write := a.GP64()
	a.LEAQ(at(bits, 1), write)
	a.BZHIQ(write, ones, write)
	a.KMOVW(write.As32(), out)
	x, y := a.ZMM(), a.ZMM()
	// What is wanted of a register joins that of those before it.
	var places [4]reg.VecVirtual
	if each > 1 {
		a.IMUL3Q(operand.U8(uint64(each)), bits, bits)
		a.INCQ(bits)
		a.BZHIQ(bits, ones, bits)
		table := a.GP64()
		a.LEAQ(a.everyPlaces(each), table)
		for i := range each {
			a.KMOVW(bits.As32(), in[i])
			a.SHRQ(operand.U8(16), bits)
			if i > 0 {
				places[i] = a.ZMM()
				a.VPMOVZXBD(at(table, 16*(i-1)), places[i])
			}
		}
	} else {
		a.KMOVW(out, in[0])
	}
	left, from, to := a.GP64(), a.GP64(), a.GP64()
	take := func(masked bool) {
		for i := range each {
			to := x
			if i > 0 {
				to = y
			}
			if masked {
				a.VMOVUPS_Z(at(from, 64*i), in[i], to)
			} else {
				a.VMOVUPS(at(from, 64*i), to)
			}
			if i > 0 {
				a.VPERMT2PS(y, places[i], x)
			}
		}
	}
	a.Label("line")
	a.MOVQ(dst, to)
	a.MOVQ(src, from)
	a.MOVQ(whole, left)
	a.TESTQ(left, left)
	a.JZ(operand.LabelRef("rest"))
	a.Label("step")
	take(false)
	a.VMOVUPS(x, at(to, 0))
	a.ADDQ(operand.U32(uint32(64*each)), from)
	a.ADDQ(operand.U32(64), to)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("step"))
	a.Label("rest")
	take(true)
	a.VMOVUPS(x, out, at(to, 0))
	a.ADDQ(stepDst, dst)
	a.ADDQ(stepSrc, src)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()
}

// everyPlaces is a table of 16 bytes for each but the first of as many registers as each says:
// where a register that has every so many values of all takes its own from, of those there are,
// and the register from place 16 on.
func (a *asm) everyPlaces(each int) operand.Mem {
	m := a.StaticGlobal(label("every%d", each))
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for r := 1; r < each; r++ {
		for i := range 16 {
			place := i
			switch at := each * i; {
			case at/16 == r:
				place = at%16 + 16
			case r == 1 && at < 16:
				place = at // all there is yet is the first register itself
			}
			a.AddDatum(16*(r-1)+i, operand.U8(uint8(place)))
		}
	}
	return m
}

// shuffleEven leaves the even values of x and y in x.
func (a *asm) shuffleEven(x, y reg.Register) {
	a.VSHUFPS(operand.U8(0x88), y, x, x)
	a.VPERMPD(operand.U8(0xd8), x, x)
}
