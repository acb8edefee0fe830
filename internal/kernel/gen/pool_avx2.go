package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pools256 writes the AVX2 forms of the kernels of pools.
func (a *asm) pools256() {
	for _, signed := range []bool{false, true} {
		a.addBytes256(signed)
	}
	for _, codes := range []string{"U8", "S8", "S16"} {
		a.largestBytes256(codes)
		a.largestTaps256(codes)
	}
	a.averageTaps256()
	a.addFloats256()
}

// sizes256 runs body for n bytes in blocks of each size, the largest first.
func (a *asm) sizes256(n reg.Register, sizes []int, body func(name string, size int), steps ...step) {
	for _, size := range sizes {
		name, next := label("of%d", size), label("below%d", size)
		a.Label(name)
		a.CMPQ(n, operand.U8(uint8(size)))
		a.JLT(operand.LabelRef(next))
		body(name, size)
		for _, s := range steps {
			a.ADDQ(operand.U32(uint32(size*s.by)), s.p)
		}
		a.SUBQ(operand.U8(uint8(size)), n)
		a.JMP(operand.LabelRef(name))
		a.Label(next)
	}
}

// loadBytes256 reads size bytes.
func (a *asm) loadBytes256(size int, m operand.Mem, x reg.VecVirtual) {
	switch size {
	case 32:
		a.VMOVDQU(m, x)
	case 16:
		a.VMOVDQU(m, x.AsX())
	case 8:
		a.VMOVQ(m, x.AsX())
	case 4:
		a.VMOVD(m, x.AsX())
	case 2:
		a.VPXOR(x.AsX(), x.AsX(), x.AsX())
		a.VPINSRW(operand.U8(0), m, x.AsX(), x.AsX())
	case 1:
		a.VPXOR(x.AsX(), x.AsX(), x.AsX())
		a.VPINSRB(operand.U8(0), m, x.AsX(), x.AsX())
	}
}

// storeBytes256 writes size bytes.
func (a *asm) storeBytes256(size int, x reg.VecVirtual, m operand.Mem) {
	switch size {
	case 32:
		a.VMOVDQU(x, m)
	case 16:
		a.VMOVDQU(x.AsX(), m)
	case 8:
		a.VMOVQ(x.AsX(), m)
	case 4:
		a.VMOVD(x.AsX(), m)
	case 2:
		a.VPEXTRW(operand.U8(0), x.AsX(), m)
	case 1:
		a.VPEXTRB(operand.U8(0), x.AsX(), m)
	}
}

// lines256 calls add for each of count lines, by bytes apart, with a pointer to it.
func (a *asm) lines256(name string, src, by, count reg.Register, add func(p reg.Register)) {
	p, left := a.GP64(), a.GP64()
	a.MOVQ(src, p)
	a.MOVQ(count, left)
	a.Label(name + "_line")
	add(p)
	a.ADDQ(by, p)
	a.DECQ(left)
	a.JNZ(operand.LabelRef(name + "_line"))
}

// addBytes256 is addBytes.
func (a *asm) addBytes256(signed bool) {
	a.function("addBytes"+signName(signed)+"AVX2", "func(dst *int32, src *byte, step, lines, n int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, src, by, lines, n := load("dst"), load("src"), load("step"), load("lines"), load("n")
	widen := a.VPMOVZXBD
	if signed {
		widen = a.VPMOVSXBD
	}
	a.addLines256(dst, src, by, lines, n, 1, func(sum reg.Register) { a.VPXOR(sum, sum, sum) }, func(size, i int, p, sum reg.Register) {
		x := a.YMM()
		if size < 8 {
			a.loadBytes256(size, at(p, 0), x)
			widen(x.AsX(), x)
		} else {
			widen(at(p, 8*i), x)
		}
		a.VPADDD(x, sum, sum)
	})
}

// addLines256 writes n sums over lines of values of some bytes. add takes up to eight values of one
// line.
func (a *asm) addLines256(dst, src, by, lines, n reg.Register, bytes int, clear func(sum reg.Register), add func(size, i int, p, sum reg.Register)) {
	a.sizes256(n, []int{32, 8, 1}, func(name string, size int) {
		var sums []reg.VecVirtual
		for range (size + 7) / 8 {
			sum := a.YMM()
			clear(sum)
			sums = append(sums, sum)
		}
		a.lines256(name, src, by, lines, func(p reg.Register) {
			for i, sum := range sums {
				add(size, i, p, sum)
			}
		})
		for i, sum := range sums {
			a.storeBytes256(min(4*size, 32), sum, at(dst, 32*i))
		}
	}, step{src, bytes}, step{dst, 4})
	a.VZEROUPPER()
	a.RET()
}

// addFloats256 is addFloats.
func (a *asm) addFloats256() {
	a.function("addFloatsAVX2", "func(dst, src *float32, step, lines, n int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, src, by, lines, n := load("dst"), load("src"), load("step"), load("lines"), load("n")
	a.addLines256(dst, src, by, lines, n, 4, func(sum reg.Register) { a.VXORPS(sum, sum, sum) }, func(size, i int, p, sum reg.Register) {
		x := a.YMM()
		a.loadBytes256(min(4*size, 32), at(p, 32*i), x)
		a.VADDPS(x, sum, sum)
	})
}

// codeSizes256 are the sizes of blocks of quantised values.
func codeSizes256(codes string) []int {
	if codes == "S16" {
		return []int{32, 16, 8, 2}
	}
	return []int{32, 16, 8, 1}
}

// largest256 writes the largest values of count places from src on, by apart.
func (a *asm) largest256(name, codes string, size int, dst, src, by, count reg.Register) {
	larger := map[string]func(...operand.Op){"U8": a.VPMAXUB, "S8": a.VPMAXSB, "S16": a.VPMAXSW}[codes]
	x, y := a.YMM(), a.YMM()
	a.loadBytes256(size, at(src, 0), x)
	a.lines256(name, src, by, count, func(p reg.Register) {
		a.loadBytes256(size, at(p, 0), y)
		larger(y, x, x)
	})
	a.storeBytes256(size, x, at(dst, 0))
}

// largestBytes256 is largestBytes.
func (a *asm) largestBytes256(codes string) {
	a.function("largestBytes"+codes+"AVX2", "func(dst, src *byte, step, lines, n int)")
	load := func(name string) reg.Register { return a.Load(a.Param(name), a.GP64()) }
	dst, src, by, lines, n := load("dst"), load("src"), load("step"), load("lines"), load("n")
	a.sizes256(n, codeSizes256(codes), func(name string, size int) {
		a.largest256(name, codes, size, dst, src, by, lines)
	}, step{src, 1}, step{dst, 1})
	a.VZEROUPPER()
	a.RET()
}

// places256 is places for blocks of sizes.
func (a *asm) places256(sizes []int, size int, body func(name string, size int, dst, src reg.Register)) {
	a.eachPlace(func(dst, src, n reg.GPVirtual) {
		a.sizes256(n, sizes, func(name string, size int) { body(name, size, dst, src) }, step{dst, 1}, step{src, size})
	})
}

// largestTaps256 is largestTaps.
func (a *asm) largestTaps256(codes string) {
	a.function("largestTaps"+codes+"AVX2", "func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int)")
	tap, taps := a.Load(a.Param("tap"), a.GP64()), a.Load(a.Param("taps"), a.GP64())
	a.places256(codeSizes256(codes), 1, func(name string, size int, dst, src reg.Register) {
		a.largest256(name, codes, size, dst, src, tap, taps)
	})
}

// averageTaps256 is averageTaps.
func (a *asm) averageTaps256() {
	a.function("averageTapsAVX2", "func(dst *byte, stepDst int, src *int32, stepSrc, tap, taps, places, n int, by, half float32, lo, hi int32)")
	tap, taps := a.Load(a.Param("tap"), a.GP64()), a.Load(a.Param("taps"), a.GP64())
	by, half, lo, hi := a.spreadParam("by"), a.spreadParam("half"), a.spreadParam("lo"), a.spreadParam("hi")
	sign, low := a.YMM(), a.lowBytes()
	a.VPCMPEQD(sign, sign, sign)
	a.VPSLLD(operand.U8(31), sign, sign)
	a.places256([]int{8, 1}, 4, func(name string, size int, dst, src reg.Register) {
		sum, y := a.YMM(), a.YMM()
		a.VPXOR(sum, sum, sum)
		a.lines256(name, src, tap, taps, func(p reg.Register) {
			a.loadBytes256(4*size, at(p, 0), y)
			a.VPADDD(y, sum, sum)
		})
		a.VCVTDQ2PS(sum, sum)
		a.VPAND(sign, sum, y)
		a.VPANDN(sum, sign, sum)
		a.VADDPS(half, sum, sum)
		a.VDIVPS(by, sum, sum)
		a.VPOR(y, sum, sum)
		a.VCVTTPS2DQ(sum, sum)
		a.VPMAXSD(lo, sum, sum)
		a.VPMINSD(hi, sum, sum)
		a.VEXTRACTI128(operand.U8(1), sum, y.AsX())
		a.VPACKSSDW(y.AsX(), sum.AsX(), sum.AsX())
		a.VPAND(low.AsX(), sum.AsX(), sum.AsX())
		a.VPACKUSWB(sum.AsX(), sum.AsX(), sum.AsX())
		a.storeBytes256(size, sum, at(dst, 0))
	})
}
