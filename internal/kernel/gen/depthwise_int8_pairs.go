package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of further fields of simd.ByteStrip.
const (
	byteLaneSrc = byteHi + 64
	byteLaneDst = byteLaneSrc + 8
	bytePart    = byteLaneDst + 8 // masks of the words of each tap
	bytePartOut = bytePart + 32*5
)

// pairVecs is the number of registers of 8 sums of a line.
const pairVecs = 4

func bytePairStrips(a *asm) {
	for _, c := range [][2]int{{3, 1}, {3, 2}, {5, 2}} {
		for _, dot := range []bool{false, true} {
			newPairWalk(a, c[0], c[1], dot).write()
		}
	}
}

// pairWalk is the walk of a k by k window over 8-bit channels down a strip of lines with AVX2: 16
// channels in each half of the registers, which are those of one position, of joined positions,
// or the same ones of two positions. Two taps of a channel are multiplied, as 16-bit numbers, and
// added in one step. They lie side by side in a line, those of the last column one above the
// other.
//
// The bytes of all taps of a line are put on the stack, from where they are interleaved.
type pairWalk struct {
	*asm
	k, step, live int
	dot           bool // products and sums are one instruction

	sums                                 [][]reg.VecPhysical
	temp                                 [4]reg.VecPhysical
	t                                    reg.Register
	stack                                operand.Mem
	pw, start, src0, src, dst            reg.GPVirtual
	lead, lines, between, row, tap, lane reg.GPVirtual
	from                                 reg.GPVirtual
	labels                               int
}

func newPairWalk(a *asm, k, step int, dot bool) *pairWalk {
	return &pairWalk{asm: a, k: k, step: step, live: (k-1)/step + 1, dot: dot}
}

// slot is the place on the stack of tap i of a line, in 32 bytes; see also prev and later.
func (b *pairWalk) slot(i int) operand.Mem { return b.stack.Offset(32 * i) }

// prev is the last tap of the line before. The others are constants: what flips signs, the edge,
// the mask of the lower bytes of words, and zero.
func (b *pairWalk) prev() operand.Mem { return b.slot(b.k) }
func (b *pairWalk) sign() operand.Mem { return b.slot(b.k + 1) }
func (b *pairWalk) edge() operand.Mem { return b.slot(b.k + 2) }
func (b *pairWalk) low() operand.Mem  { return b.slot(b.k + 3) }
func (b *pairWalk) none() operand.Mem { return b.slot(b.k + 4) }

// jump is a name for a jump.
func (b *pairWalk) jump(name string) string {
	b.labels++
	return label("%s%d", name, b.labels)
}

func (b *pairWalk) write() {
	set := ymm.set
	if b.dot {
		set = "AVXVNNI"
	}
	b.function(label("bytePairs%dby%d%s", b.k, b.step, set), "func(t *ByteStrip)")
	b.t = b.Load(b.Param("t"), b.GP64())
	next := 0
	fresh := func() reg.VecPhysical {
		next++
		return ymm.reg(next - 1)
	}
	b.sums = make([][]reg.VecPhysical, b.live)
	for j := range b.sums {
		for range pairVecs {
			b.sums[j] = append(b.sums[j], fresh())
		}
	}
	for i := range b.temp {
		b.temp[i] = fresh()
	}
	b.stack = b.alignedLocal(32 * (b.k + 5))
	field := func(off int) reg.GPVirtual {
		r := b.GP64()
		b.MOVQ(at(b.t, off), r)
		return r
	}
	b.pw, b.start, b.src0 = field(byteW), field(byteStart), field(byteSrc)
	b.tap, b.lane = field(byteTap), field(byteLaneSrc)
	b.src, b.dst, b.lead, b.lines, b.between, b.row, b.from = b.GP64(), b.GP64(), b.GP64(), b.GP64(), b.GP64(), b.GP64(), b.GP64()
	x, y := b.temp[0], b.temp[1]
	b.VPBROADCASTD(at(b.t, byteSign), x)
	b.VMOVDQU(x, b.sign())
	b.VPBROADCASTD(at(b.t, byteEdge), y)
	b.VPXOR(x, y, y)
	b.VMOVDQU(y, b.edge())
	b.VMOVDQU(y, b.prev())
	b.VPCMPEQD(x, x, x)
	b.VPSRLW(operand.U8(8), x, x)
	b.VMOVDQU(x, b.low())
	b.VPXOR(x, x, x)
	b.VMOVDQU(x, b.none())
	for _, line := range b.sums[:b.live-1] {
		for _, sum := range line {
			b.VPXOR(sum, sum, sum)
		}
	}
	b.walk()
}

// walk goes down the strips.
func (b *pairWalk) walk() {
	b.Label("strip")
	b.MOVQ(b.src0, b.src)
	b.ADDQ(at(b.t, byteAt), b.src)
	b.MOVQ(at(b.t, byteOut), b.dst)
	b.XORQ(b.row, b.row)
	b.SUBQ(at(b.t, byteTop), b.row)
	b.MOVQ(at(b.t, byteLead), b.lead)
	b.MOVQ(at(b.t, byteLines), b.lines)
	if b.step == 2 {
		b.MOVQ(at(b.t, byteOdd), b.between)
	}
	b.Label("line")
	b.line(0)
	b.DECQ(b.lead)
	b.JNS(operand.LabelRef("none"))
	b.store()
	b.ADDQ(at(b.t, byteLineDst), b.dst)
	b.Label("none")
	for j := range b.live - 1 {
		for v, sum := range b.sums[j+1] {
			b.VMOVDQA(sum, b.sums[j][v])
		}
	}
	b.DECQ(b.lines)
	if b.step == 2 {
		b.TESTQ(b.between, b.between)
		b.JZ(operand.LabelRef("all"))
		b.line(1)
		b.DECQ(b.between)
		b.TESTQ(b.lines, b.lines)
	}
	b.JNZ(operand.LabelRef("line"))
	if b.step == 2 {
		b.Label("all")
	}
	b.DECQ(at(b.t, byteN))
	b.JZ(operand.LabelRef("done"))
	b.MOVQ(at(b.t, byteNextDst), b.dst)
	b.ADDQ(b.dst, at(b.t, byteOut)) // never a pointer beyond the results
	b.ADDQ(at(b.t, byteNextSrc), b.src0)
	b.JMP(operand.LabelRef("strip"))
	b.Label("done")
	b.VZEROUPPER()
	b.RET()
}

// line reads a line, of the image or beyond it, and adds its products to the windows that see it:
// those that begin at even lines, or (parity) at odd ones, for steps of two.
func (b *pairWalk) line(parity int) {
	name, x := b.jump("line"), b.temp[0]
	keep := func(i int) { b.VMOVDQU(x, b.slot(i)) }
	read := func(i int) {
		b.VMOVDQU(at(b.from, 0), x.AsX())
		b.VINSERTI128(operand.U8(1), operand.Mem{Base: b.from, Index: b.lane, Scale: 1}, x, x)
		b.VPXOR(b.sign(), x, x)
		keep(i)
	}
	b.CMPQ(b.row, at(b.t, byteReal))
	b.JAE(operand.LabelRef(name + "_edge"))
	b.MOVQ(b.src, b.from)
	b.ADDQ(at(b.t, byteLineSrc), b.src)
	b.CMPQ(at(b.t, byteWhole), operand.U8(1))
	b.JB(operand.LabelRef(name + "_part"))
	next := func(i int) {
		if i < b.k-1 {
			b.ADDQ(b.tap, b.from)
		}
	}
	b.JE(operand.LabelRef(name + "_halves"))
	b.VMOVDQU(b.sign(), b.temp[1])
	for i := range b.k {
		b.VPXOR(at(b.from, 0), b.temp[1], x)
		keep(i)
		next(i)
	}
	b.JMP(operand.LabelRef(name + "_read"))
	b.Label(name + "_halves")
	for i := range b.k {
		read(i)
		next(i)
	}
	b.JMP(operand.LabelRef(name + "_read"))
	b.Label(name + "_part")
	for i := range b.k {
		there, next := label("%s_there%d", name, i), label("%s_next%d", name, i)
		b.CMPQ(at(b.t, byteMasks+8*i), operand.U8(1))
		b.JE(operand.LabelRef(there))
		b.VMOVDQU(b.edge(), x)
		b.JB(operand.LabelRef(next + "_keep"))
		// Several columns are joined, and some of them are there.
		mask := b.temp[1]
		b.VMOVDQU(at(b.t, bytePart+32*i), mask)
		b.VPANDN(x, mask, x)
		b.VPMASKMOVD(at(b.from, 0), mask, b.temp[2])
		b.VPAND(b.sign(), mask, mask)
		b.VPOR(mask, x, x)
		b.VPXOR(b.temp[2], x, x)
		b.Label(next + "_keep")
		keep(i)
		b.JMP(operand.LabelRef(next))
		b.Label(there)
		read(i)
		b.Label(next)
		b.ADDQ(b.tap, b.from)
	}
	b.JMP(operand.LabelRef(name + "_read"))
	b.Label(name + "_edge")
	b.VMOVDQU(b.edge(), x)
	for i := range b.k {
		keep(i)
	}
	b.Label(name + "_read")
	b.INCQ(b.row)
	b.products(parity)
	b.VMOVDQU(b.slot(b.k-1), x)
	b.VMOVDQU(x, b.prev())
}

// weights returns the pairs of line ky of a window: where the weights of each of them lie, in
// registers, or -1. The pair of the last column is one of two lines.
func (b *pairWalk) weights(ky int) (across []int, down int) {
	at := 0
	for y := range b.k {
		across, down = across[:0], -1
		for range b.k / 2 {
			across = append(across, at)
			at += pairVecs
		}
		if y%2 == 1 || y == b.k-1 {
			down = at
			at += pairVecs
		}
		if y == ky {
			break
		}
	}
	return across, down
}

// products adds the products of a line.
func (b *pairWalk) products(parity int) {
	t, u, q, p := b.temp[0], b.temp[1], b.temp[2], b.temp[3]
	for half, unpack := range []func(...operand.Op){b.VPUNPCKLBW, b.VPUNPCKHBW} {
		// The bytes of four taps of each channel: those of even places make pairs, and the others.
		order := [4]int{0, b.k, 1, 2} // the third tap and that above it
		if b.k == 5 {
			order = [4]int{0, 2, 1, 3}
		}
		b.VMOVDQU(b.slot(order[0]), t)
		unpack(b.slot(order[1]), t, t)
		b.VMOVDQU(b.slot(order[2]), u)
		unpack(b.slot(order[3]), u, u)
		b.VPUNPCKLWD(u, t, q)
		b.VPUNPCKHWD(u, t, t)
		for i, quads := range []reg.VecPhysical{q, t} {
			v := 2*half + i
			b.VPAND(b.low(), quads, u)
			b.VPSRLW(operand.U8(8), quads, quads)
			b.pairs(parity, v, u, p, func(across []int, _ int) int { return across[0] })
			b.pairs(parity, v, quads, p, func(across []int, down int) int {
				if b.k == 3 {
					return down
				}
				return across[1]
			})
		}
		if b.k == 3 {
			continue
		}
		b.VMOVDQU(b.prev(), t)
		unpack(b.slot(b.k-1), t, t)
		for i, widen := range []func(...operand.Op){b.VPUNPCKLBW, b.VPUNPCKHBW} {
			widen(b.none(), t, u)
			b.pairs(parity, 2*half+i, u, p, func(_ []int, down int) int { return down })
		}
	}
}

// pairs adds the products of pairs to register v of all windows that see the line. A window begins
// with its first ones, and with what its sums begin with.
func (b *pairWalk) pairs(parity, v int, pairs, product reg.VecPhysical, of func(across []int, down int) int) {
	for j := range b.live {
		ky := b.k - 1 - parity - j*b.step
		if ky < 0 {
			continue
		}
		across, down := b.weights(ky)
		i := of(across, down)
		if i < 0 {
			continue
		}
		w, sum := at(b.pw, 32*(i+v)), b.sums[j][v]
		first := ky == 0 && i == across[0]
		if b.dot {
			if first {
				b.VMOVDQU(at(b.start, 32*v), sum)
			}
			b.VMOVDQU(w, product)
			b.dotInts(ymm, dotPairs, product, pairs, sum)
			continue
		}
		b.VPMADDWD(w, pairs, product)
		if first {
			b.VPADDD(at(b.start, 32*v), product, sum)
		} else {
			b.VPADDD(product, sum, sum)
		}
	}
}

// store quantises the sums of a line and writes them, as byteWalk does.
func (b *pairWalk) store() {
	s := b.sums[0]
	at1 := func(v, kind int) operand.Mem { return at(b.start, 32*(pairVecs+5*v+kind)) }
	b.roundings(b.t, b.jump("round"), func(up bool) {
		for v := range s {
			b.quantiseSums256(s[v], b.temp[v%2*2], b.temp[v%2*2+1], at1(v, 0), at1(v, 1), at1(v, 2), at1(v, 3), at1(v, 4), up)
		}
	}, func() {
		for v := range s {
			b.VMOVDQU(at1(v, 0), b.temp[v])
			b.fuseSums(s[v], b.temp[v], at1(v, 1), at1(v, 2))
		}
	}, func() {
		for v := range s {
			b.VCVTDQ2PS(s[v], s[v])
			b.VMULPS(at1(v, 0), s[v], s[v])
			b.VCVTPS2DQ(s[v], s[v])
			b.VPADDD(at1(v, 1), s[v], s[v])
		}
	})
	b.VPACKSSDW(s[1], s[0], s[0])
	b.VPACKSSDW(s[3], s[2], s[2])
	b.VPACKSSWB(s[2], s[0], s[0])
	whole := b.jump("whole")
	b.CMPQ(at(b.t, byteFinish), operand.U8(finishSigned))
	b.JE(operand.LabelRef(whole))
	b.VPMAXSB(at(b.t, byteLo), s[0], s[0])
	b.VPMINSB(at(b.t, byteHi), s[0], s[0])
	b.VPBROADCASTD(at(b.t, byteTurn), b.temp[0])
	b.VPXOR(b.temp[0], s[0], s[0])
	b.Label(whole)
	part, written := b.jump("part"), b.jump("written")
	b.CMPQ(at(b.t, byteStores), operand.U8(0))
	b.JNE(operand.LabelRef(part))
	b.MOVQ(at(b.t, byteLaneDst), b.from)
	b.VMOVDQU(s[0].AsX(), at(b.dst, 0))
	b.VEXTRACTI128(operand.U8(1), s[0], operand.Mem{Base: b.dst, Index: b.from, Scale: 1})
	b.JMP(operand.LabelRef(written))
	b.Label(part)
	b.VMOVDQU(at(b.t, bytePartOut), b.temp[0])
	b.VPMASKMOVD(s[0], b.temp[0], at(b.dst, 0))
	b.Label(written)
}

// quantiseSums256 is quantiseSums with AVX2 and the shift.
func (a *asm) quantiseSums256(v, even, odd reg.Register, twice, twiceOdd, half, halfOdd, down operand.Op, up bool) {
	a.VPMULUDQ(twice, v, even)
	a.VPSRLQ(operand.U8(32), v, odd)
	a.VPMULUDQ(twiceOdd, odd, odd)
	a.VPADDQ(half, even, even)
	a.VPADDQ(halfOdd, odd, odd)
	a.VMOVSHDUP(even, even)
	a.VPBLENDD(operand.U8(0xaa), odd, even, even)
	if !up {
		a.VPSRAD(operand.U8(31), v, v)
		a.VPSUBD(v, even, even)
	}
	a.VPSRAVD(down, even, v)
}
