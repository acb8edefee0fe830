package main

import (
	"slices"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pools writes loops of pooling windows over 8-bit numbers: down the lines of an image first,
// then along.
func pools(a *asm) {
	for _, signed := range []bool{false, true} {
		a.addBytes(signed)
	}
	for _, codes := range []string{"U8", "S8", "S16"} {
		a.largestBytes(codes)
		a.largestTaps(codes)
	}
	a.averageTaps()
	a.addFloats()
	a.pools256()
}

// addFloats writes the sums of lines of n numbers, step bytes apart, in order.
func (a *asm) addFloats() {
	a.function("addFloatsAVX512", "func(dst, src *float32, step, lines, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	by := a.Load(a.Param("step"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p, left := a.GP64(), a.GP64()
	// sums adds up registers side by side, which hides how long a sum takes.
	sums := func(name string, vecs int, mask reg.Register) {
		var sum [4]reg.VecVirtual
		for i := range vecs {
			sum[i] = a.ZMM()
			a.VPXORD(sum[i], sum[i], sum[i])
		}
		a.MOVQ(src, p)
		a.MOVQ(lines, left)
		a.Label(name)
		for i := range vecs {
			if mask != nil {
				x := a.ZMM()
				a.VMOVUPS_Z(at(p, 0), mask, x)
				a.VADDPS(x, sum[i], sum[i])
			} else {
				a.VADDPS(at(p, 64*i), sum[i], sum[i])
			}
		}
		a.ADDQ(by, p)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
		for i := range vecs {
			if mask != nil {
				a.VMOVUPS(sum[i], mask, at(dst, 64*i))
			} else {
				a.VMOVUPS(sum[i], at(dst, 64*i))
			}
		}
	}
	a.several(n, 16, sums, src, dst)
	a.VZEROUPPER()
	a.RET()
}

// several runs body for four registers of each values at a time, then for one at a time, then
// with a mask for those that are left of n. body begins its labels with the name that it is
// given; pointers go on with what was done.
func (a *asm) several(n reg.Register, each int, body func(name string, vecs int, mask reg.Register), pointers ...reg.Register) {
	a.Label("wide")
	a.CMPQ(n, operand.U32(uint32(4*each)))
	a.JLT(operand.LabelRef("narrow"))
	body("wide_line", 4, nil)
	var steps []step
	for _, p := range pointers {
		a.ADDQ(operand.U32(256), p)
		steps = append(steps, step{p, 64})
	}
	a.SUBQ(operand.U32(uint32(4*each)), n)
	a.JMP(operand.LabelRef("wide"))
	a.Label("narrow")
	a.masked("columns", n, each, func(mask reg.Register) {
		name := "line"
		if mask != nil {
			name = "some_line"
		}
		body(name, 1, mask)
	}, steps...)
}

// masked runs body for n values, each at a time, then for those that are left, with a mask.
func (a *asm) masked(name string, n reg.Register, each int, body func(mask reg.Register), steps ...step) {
	next := func() {
		for _, s := range steps {
			a.ADDQ(operand.U32(uint32(s.by)), s.p)
		}
	}
	a.Label(name + "_many")
	a.SUBQ(operand.U8(uint8(each)), n)
	a.JLT(operand.LabelRef(name + "_few"))
	body(nil)
	next()
	a.JMP(operand.LabelRef(name + "_many"))
	a.Label(name + "_few")
	a.ADDQ(operand.U8(uint8(each)), n)
	a.JZ(operand.LabelRef(name + "_end"))
	bits := a.GP64()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVQ(bits, reg.K1)
	body(reg.K1)
	a.Label(name + "_end")
}

// chains runs body on n numbers, each at a time and several such together, whose instructions are
// interleaved: one alone, in which all waits for what comes before, leaves the processor little
// to do. body gets how many numbers of four bytes lie before its own, and which of those together
// it is.
func (a *asm) chains(name string, n reg.Register, each, together int, body func(off, chain int, mask reg.Register), steps ...step) {
	a.Label(name + "_together")
	a.SUBQ(operand.U32(uint32(each*together)), n)
	a.JLT(operand.LabelRef(name + "_single"))
	var bodies []func()
	for i := range together {
		bodies = append(bodies, func() { body(4*each*i, i, nil) })
	}
	a.takeTurns(bodies...)
	for _, s := range steps {
		a.ADDQ(operand.U32(uint32(s.by*together)), s.p)
	}
	a.JMP(operand.LabelRef(name + "_together"))
	a.Label(name + "_single")
	a.ADDQ(operand.U32(uint32(each*together)), n)
	a.masked(name, n, each, func(mask reg.Register) { body(0, 0, mask) }, steps...)
}

// takeTurns writes the instructions of bodies alternately.
func (a *asm) takeTurns(bodies ...func()) {
	file, _ := a.Result() // what is wrong is found at the end
	all := file.Functions()
	f := all[len(all)-1]
	from := len(f.Nodes)
	parts := make([][]ir.Node, len(bodies))
	longest := 0
	for i, body := range bodies {
		body()
		parts[i] = slices.Clone(f.Nodes[from:])
		longest = max(longest, len(parts[i]))
		f.Nodes = f.Nodes[:from]
	}
	for k := range longest {
		for _, part := range parts {
			if k < len(part) {
				f.AddNode(part[k])
			}
		}
	}
}

// widenBytes loads 16 bytes, or those of a mask, as 32-bit numbers.
func (a *asm) widenBytes(m operand.Mem, mask reg.Register, signed bool, x reg.Register) {
	switch {
	case signed && mask != nil:
		a.VPMOVSXBD_Z(m, mask, x)
	case signed:
		a.VPMOVSXBD(m, x)
	case mask != nil:
		a.VPMOVZXBD_Z(m, mask, x)
	default:
		a.VPMOVZXBD(m, x)
	}
}

// addBytes adds lines of n bytes, step apart, to n sums, or writes the sums.
func (a *asm) addBytes(signed bool) {
	a.function("addBytes"+signName(signed)+"AVX512", "func(dst *int32, src *byte, step, lines, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	by := a.Load(a.Param("step"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p, left := a.GP64(), a.GP64()
	blocks := 0
	a.masked("bytes", n, 16, func(mask reg.Register) {
		name := label("line%d", blocks)
		blocks++
		sum, x := a.ZMM(), a.ZMM()
		a.VPXORD(sum, sum, sum)
		a.MOVQ(src, p)
		a.MOVQ(lines, left)
		a.Label(name)
		a.widenBytes(at(p, 0), mask, signed, x)
		a.VPADDD(x, sum, sum)
		a.ADDQ(by, p)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
		if mask != nil {
			a.VMOVDQU32(sum, mask, at(dst, 0))
		} else {
			a.VMOVDQU32(sum, at(dst, 0))
		}
	}, step{src, 16}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) largerBytes(codes string, m operand.Mem, mask reg.Register, x reg.Register) {
	larger := map[string]func(...operand.Op){"U8": a.VPMAXUB, "S8": a.VPMAXSB, "S16": a.VPMAXSW}[codes]
	if mask != nil {
		y := a.ZMM()
		a.VMOVDQU8_Z(m, mask, y)
		larger(y, x, x)
		return
	}
	larger(m, x, x)
}

func (a *asm) storeBytes(x reg.Register, mask reg.Register, m operand.Mem) {
	if mask != nil {
		a.VMOVDQU8(x, mask, m)
	} else {
		a.VMOVDQU32(x, m)
	}
}

func (a *asm) someBytes(m operand.Mem, mask reg.Register, x reg.Register) {
	if mask != nil {
		a.VMOVDQU8_Z(m, mask, x)
	} else {
		a.VMOVDQU32(m, x)
	}
}

// largestBytes writes the largest of the codes of lines, step apart; all sizes are in bytes.
func (a *asm) largestBytes(codes string) {
	a.function("largestBytes"+codes+"AVX512", "func(dst, src *byte, step, lines, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	by := a.Load(a.Param("step"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p, left := a.GP64(), a.GP64()
	blocks := 0
	a.masked("bytes", n, 64, func(mask reg.Register) {
		x := a.ZMM()
		a.largest(label("line%d", blocks), codes, src, by, lines, mask, p, left, x)
		blocks++
		a.storeBytes(x, mask, at(dst, 0))
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// largest leaves the largest codes of count places from src on, by apart, in x.
func (a *asm) largest(name, codes string, src, by, count, mask, p, left, x reg.Register) {
	a.someBytes(at(src, 0), mask, x)
	a.MOVQ(src, p)
	a.MOVQ(count, left)
	a.Label(name)
	a.DECQ(left)
	a.JZ(operand.LabelRef(name + "_done"))
	a.ADDQ(by, p)
	a.largerBytes(codes, at(p, 0), mask, x)
	a.JMP(operand.LabelRef(name))
	a.Label(name + "_done")
}

// places runs body at places, with pointers to n values of each.
func (a *asm) places(each, size int, body func(name string, dst, src, mask reg.Register)) {
	a.eachPlace(func(dst, src, n reg.GPVirtual) {
		blocks := 0
		a.masked("bytes", n, each, func(mask reg.Register) {
			body(label("tap%d", blocks), dst, src, mask)
			blocks++
		}, step{dst, each}, step{src, each * size})
	})
}

// eachPlace is a function that runs body at each of places, with pointers to n values.
func (a *asm) eachPlace(body func(dst, src, n reg.GPVirtual)) {
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst0, stepDst, src0, stepSrc, count := load("dst"), load("stepDst"), load("src"), load("stepSrc"), load("places")
	dst, src, n := a.GP64(), a.GP64(), a.GP64()
	a.Label("place")
	a.MOVQ(dst0, dst)
	a.MOVQ(src0, src)
	a.Load(a.Param("n"), n)
	body(dst, src, n)
	a.ADDQ(stepDst, dst0)
	a.ADDQ(stepSrc, src0)
	a.DECQ(count)
	a.JNZ(operand.LabelRef("place"))
	a.VZEROUPPER()
	a.RET()
}

// largestTaps writes at each place the largest of taps that lie tap bytes apart.
func (a *asm) largestTaps(codes string) {
	a.function("largestTaps"+codes+"AVX512", "func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int)")
	tap := a.Load(a.Param("tap"), a.GP64())
	taps := a.Load(a.Param("taps"), a.GP64())
	p, left := a.GP64(), a.GP64()
	a.places(64, 1, func(name string, dst, src, mask reg.Register) {
		x := a.ZMM()
		a.largest(name, codes, src, tap, taps, mask, p, left, x)
		a.storeBytes(x, mask, at(dst, 0))
	})
}

// averageTaps writes at each place the sum of taps that lie tap bytes apart, divided and rounded,
// halves away from zero: the quotient of numbers below 2^24 never rounds up to a whole one that
// it does not reach.
func (a *asm) averageTaps() {
	a.function("averageTapsAVX512", "func(dst *byte, stepDst int, src *int32, stepSrc, tap, taps, places, n int, by, half float32, lo, hi int32)")
	tap := a.Load(a.Param("tap"), a.GP64())
	taps := a.Load(a.Param("taps"), a.GP64())
	by, half, lo, hi := a.spread512("by"), a.spread512("half"), a.spread512("lo"), a.spread512("hi")
	sign := a.ZMM()
	a.VPTERNLOGD(operand.U8(0xff), sign, sign, sign)
	a.VPSLLD(operand.U8(31), sign, sign)
	p, left := a.GP64(), a.GP64()
	a.places(16, 4, func(name string, dst, src, mask reg.Register) {
		sum, y := a.ZMM(), a.ZMM()
		a.VPXORD(sum, sum, sum)
		a.MOVQ(src, p)
		a.MOVQ(taps, left)
		a.Label(name)
		if mask != nil {
			a.VMOVDQU32_Z(at(p, 0), mask, y)
			a.VPADDD(y, sum, sum)
		} else {
			a.VPADDD(at(p, 0), sum, sum)
		}
		a.ADDQ(tap, p)
		a.DECQ(left)
		a.JNZ(operand.LabelRef(name))
		a.VCVTDQ2PS(sum, sum)
		a.VPANDD(sign, sum, y)
		a.VPANDND(sum, sign, sum)
		a.VADDPS(half, sum, sum)
		a.VDIVPS(by, sum, sum)
		a.VPORD(y, sum, sum)
		a.VCVTTPS2DQ(sum, sum)
		a.VPMAXSD(lo, sum, sum)
		a.VPMINSD(hi, sum, sum)
		if mask != nil {
			a.VPMOVDB(sum, mask, at(dst, 0))
		} else {
			a.VPMOVDB(sum, at(dst, 0))
		}
	})
}
