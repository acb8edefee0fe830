package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// planeShapes lists the strips over planes with AVX2: window size and stride, and by registers of a
// plane the number of planes that a second kernel computes together.
var planeShapes = []struct {
	k, step int
	planes  []int
}{
	{3, 1, []int{4, 2, 1, 1}},
	{3, 2, []int{4, 2, 1, 1}},
	{5, 1, []int{2, 1}},
	{5, 2, []int{3, 1, 1}},
	{7, 1, []int{2, 1}},
	{7, 2, []int{2, 1}},
}

func planeStrips(a *asm) {
	for _, q := range planeShapes {
		for i, planes := range q.planes {
			a.planeStrip(q.k, q.step, i+1, 1)
			if planes > 1 {
				a.planeStrip(q.k, q.step, i+1, planes)
			}
		}
	}
}

// planeStrip writes a spread strip for AVX2: vecs registers of each of so many planes. A sum waits
// for the one before it, so that a single register of results would take several times as long as
// its products. Weights that no registers are left for are read again for each line.
//
// With a stride of two, every other value of a pair of registers is selected; results stay in the
// order of this shuffle until they are written.
type planeStrip struct {
	*asm
	k, step, vecs, planes, live int

	sums    [][]reg.VecPhysical // by age, oldest first, by register of all planes
	values  [][2]reg.VecPhysical
	weights []reg.VecPhysical // those that stay in registers
	masks   []reg.VecPhysical // of the loads of a column, if all planes share them
	temp    reg.VecPhysical

	t                               reg.Register
	src, dst, left, pw, bias        reg.GPVirtual
	firstDst, firstSrc, strips      reg.GPVirtual
	lines, lead, between, off, off3 reg.GPVirtual
}

func (a *asm) planeStrip(k, step, vecs, planes int) {
	a.function(label("stripPlanes%dby%dx%dof%dAVX2", k, step, vecs, planes), "func(t *Strip)")
	s := &planeStrip{asm: a, k: k, step: step, vecs: vecs, planes: planes, live: (k-1)/step + 1}
	s.allocate()
	s.t = a.Load(a.Param("t"), a.GP64())
	field := func(off int) reg.GPVirtual { return a.field(s.t, off) }
	s.firstDst, s.firstSrc, s.pw, s.bias, s.strips = field(stripDst), field(stripSrc), field(stripW), field(stripBias), field(stripN)
	s.src, s.dst, s.left = a.GP64(), a.GP64(), a.GP64()
	s.lines, s.lead, s.between, s.off, s.off3 = a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	s.Label("strip")
	for i, r := range s.weights {
		s.VBROADCASTSS(at(s.pw, 4*i), r)
	}
	s.MOVQ(s.firstSrc, s.src)
	s.ADDQ(at(s.t, stripAt), s.src)
	s.MOVQ(s.firstDst, s.dst)
	for j := range s.live {
		s.startResult(j)
	}
	s.walkLines(s, step, s.t, at(s.t, stripFlags), s.lines, s.lead, s.between)
	s.Label("done")
	for range s.planes {
		s.ADDQ(at(s.t, stripNextDst), s.firstDst)
		s.ADDQ(at(s.t, stripNextSrc), s.firstSrc)
		s.ADDQ(at(s.t, stripNextW), s.pw)
		s.ADDQ(at(s.t, stripNextBias), s.bias)
	}
	s.DECQ(s.strips)
	s.JNZ(operand.LabelRef("strip"))
	s.VZEROUPPER()
	s.RET()
}

// allocate assigns the registers: first the sums, then the values of as many registers of a plane
// as there is room for, then weights.
func (s *planeStrip) allocate() {
	next := 0
	fresh := func() reg.VecPhysical {
		next++
		return ymm.reg(next - 1)
	}
	s.sums = make([][]reg.VecPhysical, s.live)
	for j := range s.sums {
		for range s.vecs * s.planes {
			s.sums[j] = append(s.sums[j], fresh())
		}
	}
	s.temp = fresh()
	for range s.vecs {
		if next+s.step <= ymm.regs {
			var pair [2]reg.VecPhysical
			for i := range s.step {
				pair[i] = fresh()
			}
			s.values = append(s.values, pair)
		}
	}
	for range s.step {
		if s.planes > 1 && s.vecs == 1 && next < ymm.regs {
			s.masks = append(s.masks, fresh())
		}
	}
	for next < ymm.regs && s.planes == 1 && len(s.weights) < s.k*s.k {
		s.weights = append(s.weights, fresh())
	}
}

// apart sets the registers that plane adds to addresses: the field is the distance between planes.
func (s *planeStrip) apart(field int) {
	if s.planes == 1 {
		return
	}
	s.MOVQ(at(s.t, field), s.off)
	if s.planes > 3 {
		s.LEAQ(operand.Mem{Base: s.off, Index: s.off, Scale: 2}, s.off3)
	}
}

// plane is memory in plane p.
func (s *planeStrip) plane(base reg.GPVirtual, p, disp int) operand.Mem {
	m := at(base, disp)
	switch p {
	case 1, 2:
		m.Index, m.Scale = s.off, uint8(p)
	case 3:
		m.Index, m.Scale = s.off3, 1
	}
	return m
}

// startResult sets the sums of result j to the bias.
func (s *planeStrip) startResult(j int) {
	s.apart(stripNextBias)
	for r, sum := range s.sums[j] {
		s.VBROADCASTSS(s.plane(s.bias, r/s.vecs, 0), sum)
	}
}

// shiftResults drops the oldest result.
func (s *planeStrip) shiftResults() {
	for j := range s.live - 1 {
		for r, sum := range s.sums[j+1] {
			s.VMOVAPS(sum, s.sums[j][r])
		}
	}
}

// startLast starts the newest result.
func (s *planeStrip) startLast() { s.startResult(s.live - 1) }

// masked tells which registers of a plane have masks, and how many before v do.
func masked(vecs, v int) (i int, ok bool) {
	if v > 0 && v == vecs-1 {
		return 1, true
	}
	return v, v == 0
}

// load reads values of register v, the i-th load of it in a line.
func (s *planeStrip) load(m operand.Mem, v, i int, to reg.VecPhysical) {
	at0, ok := masked(s.vecs, v)
	if !ok {
		s.VMOVUPS(m, to)
		return
	}
	mask := s.temp
	if at := i % s.step; at < len(s.masks) {
		mask = s.masks[at]
	} else {
		s.VMOVUPS(s.maskAt(i, at0), mask)
	}
	s.VMASKMOVPS(m, mask, to)
}

// maskAt is the mask of load i of a line, for the first or the last register of a plane.
func (s *planeStrip) maskAt(i, last int) operand.Mem {
	return at(s.t, stripWide+32*(i*min(s.vecs, 2)+last))
}

// line reads a line of input and adds its products; parity is as for stripWriter.
func (s *planeStrip) line(parity int) {
	s.apart(stripNextSrc)
	s.MOVQ(s.src, s.left)
	for kx := 0; kx < s.k; kx += s.step {
		for i, mask := range s.masks {
			s.VMOVUPS(s.maskAt(kx+i, 0), mask)
		}
		for p := range s.planes {
			for v := 0; v < s.vecs; v += len(s.values) {
				group := s.values[:min(len(s.values), s.vecs-v)]
				for i, to := range group {
					if s.step == 1 {
						s.load(s.plane(s.left, p, 32*(v+i)), v+i, kx, to[0])
						continue
					}
					s.load(s.plane(s.left, p, 64*(v+i)+4*kx), v+i, kx, to[0])
					s.load(s.plane(s.left, p, 64*(v+i)+4*kx+32), v+i, kx+1, s.temp)
					s.VSHUFPS(operand.U8(0x88), s.temp, to[0], to[1])
					if kx < s.k-1 {
						s.VSHUFPS(operand.U8(0xdd), s.temp, to[0], to[0])
					}
				}
				for tap := kx; tap < min(kx+s.step, s.k); tap++ {
					s.multiply(parity, tap, p, v, group)
				}
			}
		}
		if s.step == 1 && kx < s.k-1 {
			s.ADDQ(at(s.t, stripTap), s.left)
		}
	}
	s.ADDQ(at(s.t, stripLineSrc), s.src)
}

// multiply adds the products of column kx of the window to the results that use the line, for the
// registers from v of plane p. The even values of a pair come second.
func (s *planeStrip) multiply(parity, kx, p, v int, group [][2]reg.VecPhysical) {
	for j := range s.live {
		ky := s.k - 1 - parity - j*s.step
		if ky < 0 {
			continue
		}
		i, w := ky*s.k+kx, s.temp
		if i < len(s.weights) {
			w = s.weights[i]
		} else {
			s.VBROADCASTSS(at(s.pw, 4*(p*s.k*s.k+i)), w)
		}
		for g, value := range group {
			sum := s.sums[j][p*s.vecs+v+g]
			s.VFMADD231PS(w, value[(s.step-1)*(1-kx%2)], sum)
		}
	}
}

// storeOldest clamps the oldest result and writes it.
func (s *planeStrip) storeOldest(name string) {
	limit := s.values[0][0]
	s.TESTL(operand.U32(flagClamp), at(s.t, stripFlags))
	s.JZ(operand.LabelRef(name + "_free"))
	// With the sum last, a sum that is NaN stays.
	s.VBROADCASTSS(at(s.t, stripMin), limit)
	s.VBROADCASTSS(at(s.t, stripMax), s.temp)
	for _, sum := range s.sums[0] {
		s.VMAXPS(sum, limit, sum)
		s.VMINPS(sum, s.temp, sum)
	}
	s.Label(name + "_free")
	s.apart(stripNextDst)
	if s.step == 2 {
		for _, sum := range s.sums[0] {
			s.VPERMPD(operand.U8(0xd8), sum, sum)
		}
	}
	last := s.vecs - 1
	for r, sum := range s.sums[0] {
		if v := r % s.vecs; v < last {
			s.VMOVUPS(sum, s.plane(s.dst, r/s.vecs, 32*v))
		}
	}
	// Writing with a mask takes some processors a dozen cycles.
	s.TESTL(operand.U32(flagWhole), at(s.t, stripFlags))
	s.JZ(operand.LabelRef(name + "_part"))
	for p := range s.planes {
		s.VMOVUPS(s.sums[0][p*s.vecs+last], s.plane(s.dst, p, 32*last))
	}
	s.JMP(operand.LabelRef(name + "_written"))
	s.Label(name + "_part")
	s.VMOVUPS(at(s.t, stripWide+32*s.loads()), s.temp)
	for p := range s.planes {
		s.VMASKMOVPS(s.sums[0][p*s.vecs+last], s.temp, s.plane(s.dst, p, 32*last))
	}
	s.Label(name + "_written")
	s.ADDQ(at(s.t, stripLineDst), s.dst)
}

// loads is the number of masks of a line; that of the results follows.
func (s *planeStrip) loads() int { return (s.k + s.step - 1) * min(s.vecs, 2) }
