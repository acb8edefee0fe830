package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the fields of simd.ByteStrip, in bytes; a test there compares them.
const (
	byteDst = 8 * iota
	byteLineDst
	byteNextDst
	byteOut
	byteSrc
	byteLineSrc
	byteNextSrc
	byteW
	byteNextW
	byteStart
	byteNextStart
	byteN
	byteAt
	byteTap
	byteTop
	byteReal
	byteLead
	byteLines
	byteOdd
	byteIndex
	byteMasks
	byteStores = byteMasks + 8*5
	byteEdge   = byteStores + 8
	byteSign   = byteEdge + 4
	byteTurn   = byteSign + 4
	byteRound  = byteTurn + 4
	byteWrite  = byteRound + 4
	byteWhole  = byteWrite + 8
	byteFinish = byteWhole + 8
	byteLo     = byteFinish + 8 + 8
	byteHi     = byteLo + 64
)

func byteStrips(a *asm) {
	for _, k := range []int{3, 5} {
		for step := 1; step <= 2; step++ {
			for _, w := range []width{zmm, ymm} {
				newByteWalk(a, k, step, 4, w).lanes(false)
				newByteWalk(a, k, step, 4, w).lanes(true)
			}
			if k == 5 {
				newByteWalk(a, k, step, 1, zmm).codes()
			}
			for _, vecs := range []int{1, 2, 4} {
				newByteWalk(a, k, step, vecs, zmm).spread()
			}
		}
	}
}

// byteWalk is the walk of a k by k window over 8-bit numbers down a strip of lines;
// see strip. Four taps of a line are multiplied and added in one step, the weights of
// those that are missing being zero. Lines beyond the image are made of the edge.
type byteWalk struct {
	*asm
	k, step, vecs, live, groups int
	bytes                       int // of a register
	next                        int // register that is free
	wide                        bool
	sums                        [][]reg.VecPhysical
	weights                     []reg.VecPhysical // in memory without registers
	edge, sign                  reg.VecPhysical
	temp                        [5]reg.VecPhysical
	t                           reg.Register
	dst0, src0, pw, start, n    reg.GPVirtual
	src, dst, lead, lines       reg.GPVirtual
	between, row, tap           reg.GPVirtual
	lines0                      int // lines that were written
}

func newByteWalk(a *asm, k, step, vecs int, w width) *byteWalk {
	return &byteWalk{asm: a, k: k, step: step, vecs: vecs, live: (k-1)/step + 1, groups: (k + 3) / 4, bytes: w.bytes(), wide: w == zmm}
}

// fresh is the next free register.
func (b *byteWalk) fresh() reg.VecPhysical {
	b.next++
	r := zmm.reg(b.next - 1)
	if b.wide {
		return r
	}
	return r.AsY().(reg.VecPhysical)
}

func byteMask(i int) reg.OpmaskPhysical {
	return []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3, reg.K4, reg.K5, reg.K6, reg.K7}[i]
}

// open begins the function, loads masks and names registers.
func (b *byteWalk) open(name string, masks, dst int) {
	b.function(name, "func(t *ByteStrip)")
	b.t = b.Load(b.Param("t"), b.GP64())
	b.sums = make([][]reg.VecPhysical, b.live)
	for j := range b.sums {
		for range b.vecs {
			b.sums[j] = append(b.sums[j], b.fresh())
		}
	}
	b.edge, b.sign = b.fresh(), b.fresh()
	for i := range b.temp {
		b.temp[i] = b.fresh()
	}
	field := func(off int) reg.GPVirtual {
		r := b.GP64()
		b.MOVQ(at(b.t, off), r)
		return r
	}
	b.dst0, b.src0, b.pw, b.start, b.n = field(dst), field(byteSrc), field(byteW), field(byteStart), field(byteN)
	b.src, b.dst, b.lead, b.lines, b.between, b.row = b.GP64(), b.GP64(), b.GP64(), b.GP64(), b.GP64(), b.GP64()
	b.tap = field(byteTap)
	for i := range masks {
		b.KMOVQ(at(b.t, byteMasks+8*i), byteMask(i))
	}
	b.VPBROADCASTD(at(b.t, byteEdge), b.edge)
	b.VPBROADCASTD(at(b.t, byteSign), b.sign)
}

// load reads numbers that there are, without a sign.
func (b *byteWalk) load(mask int, m operand.Mem, to reg.VecPhysical) {
	b.VMOVDQA64(b.edge, to)
	b.VMOVDQU8(m, byteMask(mask), to)
	b.VPXORD(b.sign, to, to)
}

// line meets a line, of the image or beyond it, with the windows that see it: those that begin at
// even lines, or (parity) at odd ones, for steps of two.
func (b *byteWalk) line(parity int, there func(parity int), edge func(parity int)) {
	name := label("line%d", b.lines0)
	b.lines0++
	b.CMPQ(b.row, at(b.t, byteReal))
	b.JAE(operand.LabelRef(name + "_edge"))
	there(parity)
	b.ADDQ(at(b.t, byteLineSrc), b.src)
	b.JMP(operand.LabelRef(name + "_end"))
	b.Label(name + "_edge")
	b.VPXORD(b.sign, b.edge, b.temp[0])
	edge(parity)
	b.Label(name + "_end")
	b.INCQ(b.row)
}

// walk goes down the strips.
func (b *byteWalk) walk(prepare func(), begin func(j int), there, edge func(parity int), store func()) {
	b.Label("strip")
	b.MOVQ(b.src0, b.src)
	b.ADDQ(at(b.t, byteAt), b.src)
	b.MOVQ(b.dst0, b.dst)
	prepare()
	for j := range b.live {
		begin(j)
	}
	b.XORQ(b.row, b.row)
	b.SUBQ(at(b.t, byteTop), b.row)
	b.MOVQ(at(b.t, byteLead), b.lead)
	b.MOVQ(at(b.t, byteLines), b.lines)
	if b.step == 2 {
		b.MOVQ(at(b.t, byteOdd), b.between)
	}
	b.Label("line")
	b.line(0, there, edge)
	b.DECQ(b.lead)
	b.JNS(operand.LabelRef("none"))
	store()
	b.ADDQ(at(b.t, byteLineDst), b.dst)
	b.Label("none")
	for j := range b.live - 1 {
		for v := range b.vecs {
			b.VMOVDQA64(b.sums[j+1][v], b.sums[j][v])
		}
	}
	begin(b.live - 1)
	b.DECQ(b.lines)
	if b.step == 2 {
		b.TESTQ(b.between, b.between)
		b.JZ(operand.LabelRef("all"))
		b.line(1, there, edge)
		b.DECQ(b.between)
		b.TESTQ(b.lines, b.lines)
	}
	b.JNZ(operand.LabelRef("line"))
	if b.step == 2 {
		b.Label("all")
	}
	b.ADDQ(at(b.t, byteNextDst), b.dst0)
	b.ADDQ(at(b.t, byteNextSrc), b.src0)
	b.ADDQ(at(b.t, byteNextW), b.pw)
	b.ADDQ(at(b.t, byteNextStart), b.start)
	b.DECQ(b.n)
	b.JNZ(operand.LabelRef("strip"))
	b.VZEROUPPER()
	b.RET()
}

// seen calls f for each line of taps of the windows that see a line, with the sums that it adds to.
func (b *byteWalk) seen(parity int, f func(ky, j int)) {
	for j := range b.live {
		if ky := b.k - 1 - parity - j*b.step; ky >= 0 {
			f(ky, j)
		}
	}
}

// spread computes 16 positions in each of vecs registers: the bytes are put where they are
// needed, from one load.
func (b *byteWalk) spread() {
	b.open(label("byteSpread%dx%dby%dVNNI", b.k, b.vecs, b.step), b.vecs, byteDst)
	var index []reg.VecPhysical
	p := b.GP64()
	b.MOVQ(at(b.t, byteIndex), p)
	for g := range b.groups {
		index = append(index, b.fresh())
		b.VMOVDQU64(at(p, 64*g), index[g])
	}
	add := func(parity, g, v int, quads reg.VecPhysical) {
		b.seen(parity, func(ky, j int) { b.VPDPBUSD_BCST(at(b.pw, 4*(ky*b.groups+g)), quads, b.sums[j][v]) })
	}
	b.walk(func() {}, func(j int) {
		for v := range b.vecs {
			b.VPBROADCASTD(at(b.start, 0), b.sums[j][v])
		}
	}, func(parity int) {
		for v := range b.vecs {
			b.load(v, operand.Mem{Base: b.src, Disp: 16 * b.step * v}, b.temp[0])
			for g := range b.groups {
				b.VPERMB(b.temp[0], index[g], b.temp[1+g])
				add(parity, g, v, b.temp[1+g])
			}
		}
	}, func(parity int) {
		for g := range b.groups {
			for v := range b.vecs {
				add(parity, g, v, b.temp[0])
			}
		}
	}, func() {
		for v := range b.vecs {
			b.KMOVW(at(b.t, byteStores+2*v), reg.K7)
			b.VMOVDQU32(b.sums[0][v], reg.K7, at(b.dst, 64*v))
		}
	})
}

// lanes computes channels, whose taps are interleaved, 64 or 32 of them in four registers of
// sums, each of which has four channels of each sixteen. It writes sums in order, or (quantised)
// 8-bit numbers.
func (b *byteWalk) lanes(quantised bool) {
	name, dst := "byteLanes", byteDst
	if quantised {
		name, dst = "byteCodes", byteOut
	}
	b.open(label("%s%dx%dby%dVNNI", name, b.k, b.bytes, b.step), b.k, dst)
	if b.k == 3 {
		for range b.k * b.vecs {
			b.weights = append(b.weights, b.fresh())
		}
	}
	store := b.storeSums
	if quantised {
		evens := b.GP32()
		b.MOVL(operand.U32(0x5555), evens)
		b.KMOVW(evens, reg.K6)
		b.KMOVQ(at(b.t, byteWrite), reg.K7)
		store = b.storeCodes
	}
	add := func(parity, g, v int, quads reg.VecPhysical) {
		b.seen(parity, func(ky, j int) {
			if b.weights != nil {
				b.VPDPBUSD(b.weights[ky*b.vecs+v], quads, b.sums[j][v])
				return
			}
			b.VPDPBUSD(at(b.pw, b.bytes*((ky*b.groups+g)*b.vecs+v)), quads, b.sums[j][v])
		})
	}
	b.walk(b.takeWeights, func(j int) {
		for v := range b.vecs {
			b.VMOVDQU64(at(b.start, b.bytes*v), b.sums[j][v])
		}
	}, func(parity int) {
		from := b.GP64()
		b.MOVQ(b.src, from)
		for g := range b.groups {
			there := min(4, b.k-4*g)
			part, loaded := label("part%d_%d", b.lines0, g), label("loaded%d_%d", b.lines0, g)
			b.CMPQ(at(b.t, byteWhole), operand.U8(0))
			b.JE(operand.LabelRef(part))
			for i := range there {
				b.VPXORD(operand.Mem{Base: from}, b.sign, b.temp[i])
				b.ADDQ(b.tap, from)
			}
			b.JMP(operand.LabelRef(loaded))
			b.Label(part)
			for i := range there {
				b.load(4*g+i, operand.Mem{Base: from}, b.temp[i])
				b.ADDQ(b.tap, from)
			}
			b.Label(loaded)
			for v, q := range b.interleave(there) {
				add(parity, g, v, q)
			}
		}
	}, func(parity int) {
		for g := range b.groups {
			for v := range b.vecs {
				add(parity, g, v, b.temp[0])
			}
		}
	}, store)
}

// takeWeights loads the weights of a strip.
func (b *byteWalk) takeWeights() {
	for i, w := range b.weights {
		b.VMOVDQU64(at(b.pw, b.bytes*i), w)
	}
}

// interleave puts the first numbers of temp side by side, four of each channel.
func (b *byteWalk) interleave(there int) [4]reg.VecPhysical {
	x := [4]reg.VecPhysical{b.temp[0], b.temp[0], b.temp[0], b.temp[0]}
	copy(x[:], b.temp[:there])
	t0, t1, t2, t3, t4 := b.temp[0], b.temp[1], b.temp[2], b.temp[3], b.temp[4]
	b.VPUNPCKLBW(x[1], x[0], t4)
	b.VPUNPCKHBW(x[1], x[0], t0)
	switch there {
	case 1:
		// All four are the same.
		b.VMOVDQA64(t4, t1)
		b.VMOVDQA64(t0, t2)
	default:
		if there == 3 {
			// The first one has gone, and the weight of the fourth is zero.
			x[3] = x[2]
		}
		b.VPUNPCKLBW(x[3], x[2], t1)
		b.VPUNPCKHBW(x[3], x[2], t2)
	}
	b.VPUNPCKLWD(t1, t4, t3)
	b.VPUNPCKHWD(t1, t4, t4)
	b.VPUNPCKLWD(t2, t0, t1)
	b.VPUNPCKHWD(t2, t0, t0)
	return [4]reg.VecPhysical{t3, t4, t1, t0}
}

// storeSums writes the sums of a line in the order of channels.
func (b *byteWalk) storeSums() {
	s, temp := b.sums[0], b.temp
	if !b.wide {
		for i, by := range []uint8{0, 3} {
			b.VSHUFI32X4(operand.U8(by), s[1], s[0], temp[0])
			b.VMOVDQU64(temp[0], at(b.dst, 64*i))
			b.VSHUFI32X4(operand.U8(by), s[3], s[2], temp[1])
			b.VMOVDQU64(temp[1], at(b.dst, 64*i+32))
		}
		return
	}
	for i, by := range []uint8{0x44, 0xee} {
		b.VSHUFI32X4(operand.U8(by), s[1], s[0], temp[i])
		b.VSHUFI32X4(operand.U8(by), s[3], s[2], temp[2+i])
	}
	for i, by := range []uint8{0x88, 0xdd} {
		b.VSHUFI32X4(operand.U8(by), temp[2], temp[0], temp[4])
		b.VMOVDQU64(temp[4], at(b.dst, 64*i))
		b.VSHUFI32X4(operand.U8(by), temp[3], temp[1], temp[4])
		b.VMOVDQU64(temp[4], at(b.dst, 128+64*i))
	}
}

// quantised lets one of four loops quantise sums.
func (b *byteWalk) quantised(quantise func(up bool), fuse, scale func()) {
	b.roundings(b.t, label("%d", b.lines0), quantise, fuse, scale)
}

// roundings lets one of four loops quantise sums, by how the block of a simd.ByteStrip rounds: as
// it is defined, where no result is below the zero point, with the numbers of simd.Fused, or by
// real scales. name ends its labels.
func (a *asm) roundings(t reg.Register, name string, quantise func(up bool), fuse, scale func()) {
	up, fused, scaled, done := "up"+name, "fused"+name, "scaled"+name, "quantised"+name
	a.CMPL(at(t, byteRound), operand.U8(2))
	a.JA(operand.LabelRef(scaled))
	a.JE(operand.LabelRef(fused))
	a.CMPL(at(t, byteRound), operand.U8(1))
	a.JE(operand.LabelRef(up))
	quantise(false)
	a.JMP(operand.LabelRef(done))
	a.Label(up)
	quantise(true)
	a.JMP(operand.LabelRef(done))
	a.Label(fused)
	fuse()
	a.JMP(operand.LabelRef(done))
	a.Label(scaled)
	scale()
	a.Label(done)
}

// scaleSums rescales sums as [asm.rescaleTile] does, and adds the zero point.
func (b *byteWalk) scaleSums(v reg.Register, scale, zero operand.Op) {
	b.VCVTDQ2PS(v, v)
	b.VMULPS(scale, v, v)
	b.VCVTPS2DQ(v, v)
	b.VPADDD(zero, v, v)
}

// limited writes what limits codes, which is left out where they have a sign and no limits but
// those of 8 bits.
func (b *byteWalk) limited(limit func()) {
	whole := label("whole%d", b.lines0)
	b.CMPQ(at(b.t, byteFinish), operand.U8(finishSigned))
	b.JE(operand.LabelRef(whole))
	limit()
	b.Label(whole)
}

// storeCodes quantises the sums of a line. Behind what the sums begin with lie the numbers of
// quantiseSums, for each register all five kinds, or the three of fuseSums, or scales and zero
// points.
func (b *byteWalk) storeCodes() {
	s := b.sums[0]
	at1 := func(v, kind int) operand.Mem { return at(b.start, b.bytes*(b.vecs+5*v+kind)) }
	b.quantised(func(up bool) {
		for v := range b.vecs {
			even, odd := b.temp[v%2*2], b.temp[v%2*2+1]
			b.quantiseSums(s[v], even, odd, reg.K6, at1(v, 0), at1(v, 1), at1(v, 2), at1(v, 3), up)
			b.VPSRAVD(at1(v, 4), odd, s[v])
		}
	}, func() {
		for v := range b.vecs {
			b.VMOVDQU64(at1(v, 0), b.temp[v])
			b.fuseSums(s[v], b.temp[v], at1(v, 1), at1(v, 2))
		}
	}, func() {
		for v := range b.vecs {
			b.scaleSums(s[v], at1(v, 0), at1(v, 1))
		}
	})
	b.VPACKSSDW(s[1], s[0], s[0])
	b.VPACKSSDW(s[3], s[2], s[2])
	b.VPACKSSWB(s[2], s[0], s[0])
	b.limited(func() {
		b.VPMAXSB(at(b.t, byteLo), s[0], s[0])
		b.VPMINSB(at(b.t, byteHi), s[0], s[0])
		b.VPXORD_BCST(at(b.t, byteTurn), s[0], s[0])
	})
	b.VMOVDQU8(s[0], reg.K7, at(b.dst, 0))
}

// codes computes 16 channels and quantises them, for windows whose weights would not fit into
// registers with lanes: four taps of all come into a register with a load each, a fifth one into
// another, and all that does not change stays in registers. Behind what the sums begin with lie
// the numbers of quantiseSums.
func (b *byteWalk) codes() {
	b.open(label("byteCodes%dx16by%dVNNI", b.k, b.step), b.k, byteOut)
	for range b.k * b.groups {
		b.weights = append(b.weights, b.fresh())
	}
	index, start, lo, hi := b.fresh(), b.fresh(), b.fresh(), b.fresh()
	var scale [5]reg.VecPhysical
	for i := range scale {
		scale[i] = b.fresh()
	}
	p := b.GP64()
	b.MOVQ(at(b.t, byteIndex), p)
	b.VMOVDQU64(at(p, 0), index)
	b.VMOVDQU64(at(b.t, byteLo), lo.AsX())
	b.VMOVDQU64(at(b.t, byteHi), hi.AsX())
	evens := b.GP32()
	b.MOVL(operand.U32(0x5555), evens)
	b.KMOVW(evens, reg.K6)
	add := func(parity, g int, quads reg.VecPhysical) {
		b.seen(parity, func(ky, j int) { b.VPDPBUSD(b.weights[ky*b.groups+g], quads, b.sums[j][0]) })
	}
	b.walk(func() {
		b.takeWeights()
		b.VMOVDQU64(at(b.start, 0), start)
		for i, s := range scale {
			b.VMOVDQU64(at(b.start, 64+64*i), s)
		}
	}, func(j int) { b.VMOVDQA64(start, b.sums[j][0]) }, func(parity int) {
		from, x, last := b.GP64(), b.temp[0], b.temp[1]
		b.MOVQ(b.src, from)
		b.VMOVDQA64(b.edge, x)
		for i := range min(4, b.k) {
			b.VBROADCASTI32X4(at(from, 0), byteMask(i), x)
			b.ADDQ(b.tap, from)
		}
		b.VPXORD(b.sign, x, x)
		b.VPERMB(x, index, x)
		add(parity, 0, x)
		if b.k > 4 {
			b.VMOVDQA64(b.edge, last)
			b.VPMOVZXBD(at(from, 0), byteMask(4), last)
			b.VPXORD(b.sign, last, last)
			add(parity, 1, last)
		}
	}, func(parity int) {
		for g := range b.groups {
			add(parity, g, b.temp[0])
		}
	}, func() {
		x, even, odd := b.sums[0][0], b.temp[2], b.temp[3]
		b.quantised(func(up bool) {
			b.quantiseSums(x, even, odd, reg.K6, scale[0], scale[1], scale[2], scale[3], up)
			b.VPSRAVD(scale[4], odd, x)
		}, func() { b.fuseSums(x, scale[0], scale[1], scale[2]) }, func() { b.scaleSums(x, scale[0], scale[1]) })
		b.VPMOVSDB(x, x.AsX())
		b.limited(func() {
			b.VPMAXSB(lo.AsX(), x.AsX(), x.AsX())
			b.VPMINSB(hi.AsX(), x.AsX(), x.AsX())
			b.VPXORD_BCST(at(b.t, byteTurn), x.AsX(), x.AsX())
		})
		b.VMOVDQU64(x.AsX(), at(b.dst, 0))
	})
}
