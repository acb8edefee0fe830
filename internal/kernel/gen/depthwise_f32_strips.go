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
	stripWide  = stripFlags + 8
)

// Bits of simd.Strip.Flags: the first line is one between; all values of a strip are there.
const (
	flagOdd   = 1 << 4
	flagWhole = 1 << 5
)

// stripKind says what the adjacent values of a strip are.
type stripKind string

const (
	spreadStrip stripKind = "Spread" // positions of a line, with one weight for all of them
	// channels of a position; multiplications and sums are rounded separately
	laneStrip stripKind = "Lanes"
	// a register of channels for each of several positions; rounded separately
	columnStrip stripKind = "Columns"
)

func strips(a *asm) {
	planeStrips(a)
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

// stripWriter writes one strip kernel. It holds the shape of the kernel and its registers.
type stripWriter struct {
	*asm
	w             width
	k, vecs, step int  // kernel size, registers of a strip, stride
	exact         bool // multiply and add separately, each rounded
	columns       bool // the kind is columnStrip
	apart         bool // select every other value of a pair of registers
	three         bool // one pair of registers serves all three taps
	live          int  // results that one line of input can belong to
	loads         int  // masked loads of a line

	sums                 [][]reg.VecPhysical // by age, oldest first, by register of the strip
	weights              [][]reg.VecPhysical // by tap, by register of the strip
	value, product, mask reg.VecPhysical
	pair                 [2]reg.VecPhysical
	order, even, odds    reg.VecPhysical // permutations of a pair; the even values
	least, most          reg.VecPhysical // limits; nil where no registers are free

	t                                                      reg.Register
	src, dst, left, pw, bias, tap, tap3, far, masks, flags reg.GPVirtual

	firstDst, firstSrc, strips, lines, tapW reg.GPVirtual
}

// strip writes a k by k depthwise convolution that goes down a strip of lines. The strip is vecs
// registers of values wide. Each line is read once, and its products are added to each of the up
// to k results whose receptive fields contain it. The sums of these results stay in registers.
// With a stride of two, lines alternate: an even line is the first of one receptive field and the
// last of another, an odd line lies between. The exact kinds read the columns of their values at
// given addresses. The spread kind selects every other value of a pair of registers.
func (a *asm) strip(w width, k, vecs, step int, kind stripKind) {
	a.function(label("strip%s%dx%dby%d%s", kind, k, vecs, step, w.set), "func(t *Strip)")
	exact := kind != spreadStrip
	s := &stripWriter{
		asm: a, w: w, k: k, vecs: vecs, step: step, exact: exact, columns: kind == columnStrip,
		apart: step == 2 && !exact, three: step == 2 && !exact && k == 3,
		t: a.Load(a.Param("t"), a.GP64()),
	}
	s.allocate(kind == laneStrip)
	s.loadFields()
	s.loadMasks()
	s.far = a.GP64()
	s.Label("strip")
	s.startStrip()
	s.walkLines(s, step, s.t, s.flags.As32(), s.lines, s.GP64(), s.GP64())
	s.nextStrip()
}

// allocate assigns the vector registers and loads the limits. lanes says that each value has
// weights of its own.
func (s *stripWriter) allocate(lanes bool) {
	next := 0
	fresh := func() reg.VecPhysical {
		next++
		return s.w.reg(next - 1)
	}
	s.live = (s.k-1)/s.step + 1
	s.sums = make([][]reg.VecPhysical, s.live)
	for j := range s.sums {
		for range s.vecs {
			s.sums[j] = append(s.sums[j], fresh())
		}
	}
	s.value = fresh()
	if s.exact {
		s.product = fresh()
	}
	// The weights stay in registers: one for all values, or with lanes one for each value.
	sets := 1
	if lanes {
		sets = s.vecs
	}
	if s.apart {
		s.pair[0], s.pair[1], s.order = fresh(), fresh(), fresh()
	}
	if s.three {
		s.even, s.odds = fresh(), fresh()
	}
	s.weights = make([][]reg.VecPhysical, s.k*s.k)
	for i := range s.weights {
		for range sets {
			if next < s.w.regs {
				s.weights[i] = append(s.weights[i], fresh())
			}
		}
	}
	if !s.w.masks {
		s.mask = fresh()
	}

	// The limits stay in registers as well, if enough registers are free.
	if next+2 <= s.w.regs {
		s.least, s.most = fresh(), fresh()
		s.VBROADCASTSS(at(s.t, stripMin), s.least)
		s.VBROADCASTSS(at(s.t, stripMax), s.most)
	}
}

// loadFields loads the pointers and counts of the strip, and the orders of a pair of registers.
func (s *stripWriter) loadFields() {
	field := func(off int) reg.GPVirtual {
		r := s.GP64()
		s.MOVQ(at(s.t, off), r)
		return r
	}
	s.firstDst, s.firstSrc = field(stripDst), field(stripSrc)
	s.pw, s.bias = field(stripW), field(stripBias)
	s.strips, s.tap, s.masks = field(stripN), field(stripTap), s.GP64()
	s.flags = s.GP64()
	s.MOVL(at(s.t, stripFlags), s.flags.As32())
	s.loads = s.k * s.vecs
	if s.columns {
		s.loads = (s.vecs-1)*s.step + s.k
	}
	if s.apart {
		s.loads = s.k + 1
		index := s.GP64()
		s.MOVQ(at(s.t, stripMasks), index)
		s.VMOVUPS(at(index, 0), s.order)
		if s.three {
			s.loads = s.k
			s.VMOVUPS(at(index, 64), s.odds)
		}
	}
	s.src, s.dst, s.lines, s.left, s.tapW = s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.tap3 = s.GP64()
	if s.columns {
		s.LEAQ(operand.Mem{Base: s.tap, Index: s.tap, Scale: 2}, s.tap3)
	}
}

// heldMasks are the mask registers that keep the masks of the first loads of a line. K7 holds
// the masks of further loads, and those of the results.
var heldMasks = []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4, reg.K5, reg.K6}

// loadMasks loads the masks of 16 bits, one for each tap of a line and each register, or their
// address where the instruction set has no mask registers.
func (s *stripWriter) loadMasks() {
	if !s.w.masks {
		s.MOVQ(at(s.t, stripMasks), s.masks)
		return
	}
	for i := range min(s.loads, len(heldMasks)) {
		s.KMOVW(at(s.t, stripBits+2*i), heldMasks[i])
	}
}

// tapMask returns the mask register of load i of a line.
func (s *stripWriter) tapMask(i int) reg.OpmaskPhysical {
	if i < len(heldMasks) {
		return heldMasks[i]
	}
	s.KMOVW(at(s.t, stripBits+2*i), reg.K7)
	return reg.K7
}

// startStrip loads the weights of a strip, sets its pointers and starts its results.
func (s *stripWriter) startStrip() {
	if s.exact {
		s.MOVQ(s.pw, s.tapW)
		s.loadResultMask()
	}
	for i := range s.weights {
		if s.exact && i > 0 {
			s.ADDQ(at(s.t, stripStepW), s.tapW)
		}
		for v, r := range s.weights[i] {
			if s.exact {
				s.readMasked(at(s.tapW, v*s.w.bytes()), v, r)
			} else {
				s.VBROADCASTSS(at(s.pw, 4*i), r)
			}
		}
	}
	s.MOVQ(s.firstSrc, s.src)
	s.ADDQ(at(s.t, stripAt), s.src)
	s.MOVQ(s.firstDst, s.dst)
	for j := range s.live {
		s.startResult(j)
	}
}

// stripSteps are the steps of a strip: a line of input, whose parity counts with a stride of two,
// and what happens to results.
type stripSteps interface {
	line(parity int)
	storeOldest(name string)
	shiftResults()
	startLast()
}

// walkLines goes down the lines of input and writes each result after its last line, then the
// results whose receptive fields end below the last line. flags is where the flags are.
func (a *asm) walkLines(s stripSteps, step int, t reg.Register, flags operand.Op, lines, lead, between reg.GPVirtual) {
	// After the first lines, no result is complete yet.
	a.MOVQ(at(t, stripLead), lead)
	a.MOVQ(at(t, stripLines), lines)
	if step == 2 {
		a.MOVQ(at(t, stripOdd), between)
		a.TESTL(operand.U32(flagOdd), flags)
		a.JNZ(operand.LabelRef("odd"))
	}
	a.Label("line")
	s.line(0)
	a.DECQ(lead)
	a.JNS(operand.LabelRef("none"))
	s.storeOldest("line")
	a.Label("none")
	s.shiftResults()
	s.startLast()
	a.DECQ(lines)
	if step == 2 {
		a.TESTQ(between, between)
		a.JZ(operand.LabelRef("all"))
		a.Label("odd")
		s.line(1)
		a.DECQ(between)
		a.TESTQ(lines, lines)
	}
	a.JNZ(operand.LabelRef("line"))
	if step == 2 {
		a.Label("all")
	}
	a.MOVQ(at(t, stripLast), lines)
	a.TESTQ(lines, lines)
	a.JZ(operand.LabelRef("done"))
	a.Label("last")
	s.storeOldest("last")
	s.shiftResults()
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("last"))
}

// startLast starts the newest result.
func (s *stripWriter) startLast() { s.startResult(s.live - 1) }

// nextStrip advances to the next strip, or returns after the last one.
func (s *stripWriter) nextStrip() {
	s.Label("done")
	s.ADDQ(at(s.t, stripNextDst), s.firstDst)
	s.ADDQ(at(s.t, stripNextSrc), s.firstSrc)
	s.ADDQ(at(s.t, stripNextW), s.pw)
	s.ADDQ(at(s.t, stripNextBias), s.bias)
	s.DECQ(s.strips)
	s.JNZ(operand.LabelRef("strip"))
	s.VZEROUPPER()
	s.RET()
}

// loadTap reads the values of tap kx into the value register, for register v of the strip.
func (s *stripWriter) loadTap(v, kx int) {
	m := operand.Mem{Base: s.left, Disp: v * s.w.bytes()}
	if s.w.masks {
		s.VMOVUPS_Z(m, s.tapMask(kx*s.vecs+v), s.value)
		return
	}
	s.VMOVUPS(at(s.masks, 32*kx), s.mask)
	s.VMASKMOVPS(m, s.mask, s.value)
}

// multiply adds the products of tap kx to register v of every result that uses the line.
// parity is 1 for the odd lines of a stride of two, else 0.
func (s *stripWriter) multiply(parity, kx, v, set int, value reg.VecPhysical) {
	for j := range s.live { // result j is met by line ky of its window
		ky := s.k - 1 - parity - j*s.step
		if ky < 0 {
			continue
		}
		i := ky*s.k + kx
		switch {
		case s.exact:
			s.VMULPS(s.weights[i][set], value, s.product)
			s.VADDPS(s.product, s.sums[j][v], s.sums[j][v])
		case s.weights[i] == nil:
			// Broadcasting is part of the instruction.
			s.VFMADD231PS_BCST(at(s.pw, 4*i), value, s.sums[j][v])
		default:
			s.VFMADD231PS(s.weights[i][0], value, s.sums[j][v])
		}
	}
}

// column returns the address of column c, counted from p. It overwrites the register far.
func (s *stripWriter) column(p reg.GPVirtual, c int) operand.Mem {
	if c > 0 && c%4 == 0 {
		s.LEAQ(operand.Mem{Base: p, Index: s.tap, Scale: uint8(c)}, s.far)
	}
	if c >= 4 {
		p = s.far
	}
	m := operand.Mem{Base: p}
	switch c % 4 {
	case 1:
		m.Index, m.Scale = s.tap, 1
	case 2:
		m.Index, m.Scale = s.tap, 2
	case 3:
		m.Index, m.Scale = s.tap3, 1
	}
	return m
}

// line reads a line of input and adds its products. With a stride of two, parity selects the
// even or the odd lines.
func (s *stripWriter) line(parity int) {
	if s.three {
		s.threeTapLine(parity)
		return
	}
	if s.columns {
		s.columnLine(parity)
		return
	}
	s.MOVQ(s.src, s.left)
	for kx := range s.k {
		for v := range s.vecs {
			if !s.apart {
				s.loadTap(v, kx)
			} else {
				if kx%2 == 0 {
					for i := range s.pair {
						s.VMOVUPS_Z(operand.Mem{Base: s.left, Disp: i*s.w.bytes() + 4*kx}, s.tapMask(kx+i), s.pair[i])
					}
				}
				// Results stay in the order of this shuffle until they are written.
				s.VSHUFPS(operand.U8([]uint8{0x88, 0xdd}[kx%2]), s.pair[1], s.pair[0], s.value)
			}
			s.multiply(parity, kx, v, v, s.value)
		}
		if kx < s.k-1 && !s.apart {
			s.ADDQ(s.tap, s.left)
		}
	}
	s.ADDQ(at(s.t, stripLineSrc), s.src)
}

// columnLine is line for a column strip: each column of input serves several positions.
func (s *stripWriter) columnLine(parity int) {
	for c := range s.loads {
		s.VMOVUPS_Z(s.column(s.src, c), s.tapMask(c), s.value)
		for v := range s.vecs {
			if kx := c - v*s.step; kx >= 0 && kx < s.k {
				s.multiply(parity, kx, v, 0, s.value)
			}
		}
	}
	s.ADDQ(at(s.t, stripLineSrc), s.src)
}

// threeTapLine is line for three taps with a stride of two. It splits a pair of registers into
// the values of the second and of the third tap, so that lines of whole registers are read at
// aligned addresses. The first tap uses the values of the third, shifted by one, and one value
// before them.
func (s *stripWriter) threeTapLine(parity int) {
	odd, upper := s.pair[0], s.pair[1]
	s.VMOVUPS_Z(at(s.src, 4), s.tapMask(0), odd)
	s.VMOVUPS_Z(at(s.src, 4+s.w.bytes()), s.tapMask(1), upper)
	s.VMOVAPS(odd, s.even)
	s.VPERMT2PS(upper, s.order, s.even)
	s.VPERMT2PS(upper, s.odds, odd)
	s.multiply(parity, 1, 0, 0, s.even)
	s.multiply(parity, 2, 0, 0, odd)
	s.VBROADCASTSS_Z(at(s.src, 0), s.tapMask(2), s.value)
	s.VALIGND(operand.U8(uint8(s.w.floats-1)), s.value, odd, s.value)
	s.multiply(parity, 0, 0, 0, s.value)
	s.ADDQ(at(s.t, stripLineSrc), s.src)
}

// startResult sets the sums of result j to the bias, or to zero in the exact kinds.
func (s *stripWriter) startResult(j int) {
	for v := range s.vecs {
		if s.exact {
			s.zero(s.w, s.sums[j][v])
		} else {
			s.VBROADCASTSS(at(s.bias, 0), s.sums[j][v])
		}
	}
}

// shiftResults drops the oldest result: every other one moves down by one.
func (s *stripWriter) shiftResults() {
	for j := range s.live - 1 {
		for v := range s.vecs {
			s.VMOVAPS(s.sums[j+1][v], s.sums[j][v])
		}
	}
}

// loadResultMask loads the mask that readMasked and storeOldest use without mask registers.
func (s *stripWriter) loadResultMask() {
	if !s.w.masks {
		s.VMOVUPS(at(s.masks, 32*s.k), s.mask)
	}
}

// readMasked reads the values that belong to register v of the results.
func (s *stripWriter) readMasked(m operand.Mem, v int, to reg.VecPhysical) {
	if s.w.masks {
		s.KMOVW(at(s.t, stripBits+2*(s.loads+v)), reg.K7)
		s.VMOVUPS_Z(m, reg.K7, to)
		return
	}
	s.VMASKMOVPS(m, s.mask, to)
}

// storeOldest adds the bias in the exact kinds, clamps the oldest result and writes it. name is
// the prefix of its labels.
func (s *stripWriter) storeOldest(name string) {
	s.loadResultMask()
	if s.exact {
		s.TESTQ(s.bias, s.bias)
		s.JZ(operand.LabelRef(name + "_nobias"))
		for v := range s.vecs {
			if v == 0 || !s.columns {
				s.readMasked(at(s.bias, v*s.w.bytes()), v, s.value)
			}
			s.VADDPS(s.value, s.sums[0][v], s.sums[0][v])
		}
		s.Label(name + "_nobias")
	}
	s.clampOldest(name)
	s.writeOldest(name)
}

// clampOldest limits the oldest result to the minimum and the maximum.
func (s *stripWriter) clampOldest(name string) {
	lo, hi := s.least, s.most
	if s.least == nil {
		lo, hi = s.value, s.value
		s.TESTL(operand.U32(flagClamp), s.flags.As32())
		s.JZ(operand.LabelRef(name + "_free"))
		s.VBROADCASTSS(at(s.t, stripMin), lo)
	}
	// With the sum last, a sum that is NaN stays.
	for v := range s.vecs {
		s.VMAXPS(s.sums[0][v], lo, s.sums[0][v])
	}
	if s.least == nil {
		s.VBROADCASTSS(at(s.t, stripMax), hi)
	}
	for v := range s.vecs {
		s.VMINPS(s.sums[0][v], hi, s.sums[0][v])
	}
	s.Label(name + "_free")
}

// writeOldest writes the oldest result and advances dst to the next line.
func (s *stripWriter) writeOldest(name string) {
	if !s.w.masks {
		// Writing with a mask takes some processors a dozen cycles.
		s.TESTL(operand.U32(flagWhole), s.flags.As32())
		s.JZ(operand.LabelRef(name + "_part"))
		for v := range s.vecs {
			s.VMOVUPS(s.sums[0][v], at(s.dst, v*s.w.bytes()))
		}
		s.JMP(operand.LabelRef(name + "_written"))
		s.Label(name + "_part")
	}
	for v := range s.vecs {
		m, sum := at(s.dst, v*s.w.bytes()), s.sums[0][v]
		if s.apart && !s.three {
			s.VPERMPD(sum, s.order, s.value)
			sum = s.value
		}
		if s.columns {
			m = s.column(s.dst, v)
		}
		if s.w.masks {
			if v == 0 || !s.columns {
				s.KMOVW(at(s.t, stripBits+2*(s.loads+v)), reg.K7)
			}
			s.VMOVUPS(sum, reg.K7, m)
		} else {
			s.VMASKMOVPS(sum, s.mask, m)
		}
	}
	s.Label(name + "_written")
	s.ADDQ(at(s.t, stripLineDst), s.dst)
}
