package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// places writes where rows have their largest value: the first of equals, 0 where that is NaN or
// all others are none.
func places(a *asm) {
	a.placesOfFloats()
	a.placesOfBytes()
	// Relations that hold of NaN, too.
	a.placesOfColumns("Most", 6)
	a.placesOfColumns("LastMost", 5)
	a.placesOfColumns("Least", 9)
	a.placesOfColumns("LastLeast", 10)
}

// placeLoop walks rows: most finds the largest value of a register's worth of elements, equal
// says which ones are as large.
func (a *asm) placeLoop(each, size int, begin func(row reg.Register), most func(p, mask reg.Register), all func(), equal func(p, mask reg.Register, bits reg.Register)) {
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	p, left, place, bits := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("row")
	a.XORQ(place, place)
	begin(src)
	a.MOVQ(src, p)
	a.MOVQ(n, left)
	a.masked("most", left, each, func(mask reg.Register) { most(p, mask) }, step{p, each * size})
	all()
	a.MOVQ(src, p)
	a.MOVQ(n, left)
	a.masked("equal", left, each, func(mask reg.Register) {
		equal(p, mask, bits)
		a.TESTQ(bits, bits)
		a.JNZ(operand.LabelRef("found"))
		if mask == nil {
			a.ADDQ(operand.U8(uint8(each)), place)
		}
	}, step{p, each * size})
	a.XORQ(place, place) // none is a number
	a.JMP(operand.LabelRef("next"))
	a.Label("found")
	a.TZCNTQ(bits, bits)
	a.ADDQ(bits, place)
	a.Label("next")
	a.MOVQ(place, at(dst, 0))
	a.ADDQ(operand.U8(8), dst)
	a.LEAQ(operand.Mem{Base: src, Index: n, Scale: uint8(size)}, src)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) placesOfFloats() {
	a.function("placesOfFloatsAVX512", "func(dst *int, src *float32, n, rows int)")
	least := a.number512(math.Float32bits(float32(math.Inf(-1))))
	top, first := a.ZMM(), a.XMM()
	load := func(p, mask reg.Register) reg.VecVirtual {
		x := a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(p, 0), mask, x)
		} else {
			a.VMOVUPS(at(p, 0), x)
		}
		return x
	}
	a.placeLoop(16, 4, func(row reg.Register) {
		a.VMOVAPS(least, top)
		a.VMOVSS(at(row, 0), first)
	}, func(p, mask reg.Register) {
		x := load(p, mask)
		// NaN leaves the largest as it is.
		if mask != nil {
			a.VMAXPS(top, x, mask, top)
		} else {
			a.VMAXPS(top, x, top)
		}
	}, func() {
		y, z := a.YMM(), a.XMM()
		a.VEXTRACTF64X4(operand.U8(1), top, y)
		a.VMAXPS(y, top.AsY(), y)
		a.VEXTRACTF128(operand.U8(1), y, z)
		a.VMAXPS(y.AsX(), z, z)
		w := a.XMM()
		for _, order := range []uint8{0x4e, 0xb1} {
			a.VPERMILPS(operand.U8(order), z, w)
			a.VMAXPS(w, z, z)
		}
		// A row whose first element is NaN has nothing that equals its largest.
		a.VCMPSS(operand.U8(3), first, first, w)
		a.VORPS(w, z, z)
		a.VBROADCASTSS(z, top)
	}, func(p, mask reg.Register, bits reg.Register) {
		x := load(p, mask)
		if mask != nil {
			a.VCMPPS(operand.U8(0), top, x, mask, reg.K2)
		} else {
			a.VCMPPS(operand.U8(0), top, x, reg.K2)
		}
		a.KMOVW(reg.K2, bits.(reg.GPVirtual).As32())
	})
}

func (a *asm) placesOfBytes() {
	a.function("placesOfBytesAVX512", "func(dst *int, src *byte, n, rows int, flip uint32)")
	flip, top := a.spreadByte("flip"), a.ZMM()
	load := func(p, mask reg.Register) reg.VecVirtual {
		x := a.loadBytes(at(p, 0), mask)
		a.VPXORD(flip, x, x)
		return x
	}
	a.placeLoop(64, 1, func(reg.Register) {
		a.VPXORD(top, top, top)
	}, func(p, mask reg.Register) {
		x := load(p, mask)
		if mask != nil {
			a.VPMAXUB(x, top, mask, top)
		} else {
			a.VPMAXUB(x, top, top)
		}
	}, func() {
		a.VPBROADCASTB(a.largestOf(top), top)
	}, func(p, mask reg.Register, bits reg.Register) {
		x := load(p, mask)
		if mask != nil {
			a.VPCMPEQB(top, x, mask, reg.K2)
		} else {
			a.VPCMPEQB(top, x, reg.K2)
		}
		a.KMOVQ(reg.K2, bits)
	})
}

// largestOf is the largest byte of a register, without a sign.
func (a *asm) largestOf(v reg.VecVirtual) reg.VecVirtual {
	y, x, z := a.YMM(), a.XMM(), a.XMM()
	a.VEXTRACTI64X4(operand.U8(1), v, y)
	a.VPMAXUB(y, v.AsY(), y)
	a.VEXTRACTI128(operand.U8(1), y, x)
	a.VPMAXUB(y.AsX(), x, x)
	for _, by := range []uint8{8, 4, 2, 1} {
		a.VPSRLDQ(operand.U8(by), x, z)
		a.VPMAXUB(z, x, x)
	}
	return x
}

// placesOfColumns writes, for n columns of lines that lie step bytes apart, in which line the
// largest or the smallest value is: the first one, or the last; the first that is NaN goes before
// all others.
func (a *asm) placesOfColumns(name string, better uint8) {
	a.function("placesOf"+name+"AVX512", "func(dst *int64, src *float32, step, lines, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	by := a.Load(a.Param("step"), a.GP64())
	lines := a.Load(a.Param("lines"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	one := a.number512(1)
	p, left := a.GP64(), a.GP64()
	columns := 0
	a.masked("columns", n, 8, func(mask reg.Register) {
		columns++
		row, last := label("row%d", columns), label("last%d", columns)
		best, place, line, x := a.YMM(), a.YMM(), a.YMM(), a.YMM()
		a.loadFloats(at(src, 0), mask, best)
		a.VPXORD(place, place, place)
		a.VPXORD(line, line, line)
		a.MOVQ(src, p)
		a.MOVQ(lines, left)
		a.Label(row)
		a.DECQ(left)
		a.JZ(operand.LabelRef(last))
		a.ADDQ(by, p)
		a.VPADDD(one.AsY(), line, line)
		a.loadFloats(at(p, 0), mask, x)
		a.VCMPPS(operand.U8(7), best, best, reg.K3) // what is a number may be beaten
		a.VCMPPS(operand.U8(better), best, x, reg.K3, reg.K2)
		a.VMOVAPS(x, reg.K2, best)
		a.VMOVDQA32(line, reg.K2, place)
		a.JMP(operand.LabelRef(row))
		a.Label(last)
		wide := a.ZMM()
		a.VPMOVSXDQ(place, wide)
		if mask != nil {
			a.VMOVDQU64(wide, mask, at(dst, 0))
		} else {
			a.VMOVDQU64(wide, at(dst, 0))
		}
	}, step{src, 32}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
