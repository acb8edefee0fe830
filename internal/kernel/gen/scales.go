package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scales writes loops between codes or sums and real numbers that have registers of 512 bits: they take any number of
// elements.
func (a *asm) scales() {
	a.addScaled()
	for _, signed := range []bool{false, true} {
		a.dequantise(signed)
	}
	for _, signed := range []bool{false, true} {
		a.dequantise16(signed)
	}
	a.quantise16()
	for _, together := range []bool{false, true} {
		a.scaleRows(together)
	}
}

// quantise16 writes codes of 16 bits: src/scale, limited and rounded to even, plus zero. What is no number becomes the lower limit.
func (a *asm) quantise16() {
	a.function("quantise16AVX512", "func(dst *uint16, src *float32, n int, scale, lo, hi float32, zero int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	scale, lo, hi, zero := a.spread512("scale"), a.spread512("lo"), a.spread512("hi"), a.spread512("zero")
	a.masked("words", n, 16, func(mask reg.Register) {
		x := a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(src, 0), mask, x)
		} else {
			a.VMOVUPS(at(src, 0), x)
		}
		a.VDIVPS(scale, x, x)
		a.VMAXPS(lo, x, x)
		a.VMINPS(hi, x, x)
		a.VCVTPS2DQ(x, x)
		a.VPADDD(zero, x, x)
		if mask != nil {
			a.VPMOVDW(x, mask, at(dst, 0))
		} else {
			a.VPMOVDW(x, at(dst, 0))
		}
	}, step{src, 64}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// dequantise16 is dequantise for codes of 16 bits.
func (a *asm) dequantise16(signed bool) {
	name := "dequantiseU16AVX512"
	if signed {
		name = "dequantiseS16AVX512"
	}
	a.function(name, "func(dst *float32, src *uint16, n int, zero int32, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	zero, scale := a.spread512("zero"), a.spread512("scale")
	a.masked("words", n, 16, func(mask reg.Register) {
		x := a.ZMM()
		switch {
		case signed && mask != nil:
			a.VPMOVSXWD_Z(at(src, 0), mask, x)
		case signed:
			a.VPMOVSXWD(at(src, 0), x)
		case mask != nil:
			a.VPMOVZXWD_Z(at(src, 0), mask, x)
		default:
			a.VPMOVZXWD(at(src, 0), x)
		}
		a.VPSUBD(zero, x, x)
		a.VCVTDQ2PS(x, x)
		a.VMULPS(scale, x, x)
		a.storeFloats(x, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// dequantise writes (src - zero)·scale.
func (a *asm) dequantise(signed bool) {
	a.function("dequantise"+signName(signed)+"AVX512", "func(dst *float32, src *byte, n int, zero int32, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	zero, scale := a.spread512("zero"), a.spread512("scale")
	a.masked("codes", n, 16, func(mask reg.Register) {
		x := a.ZMM()
		a.widenBytes(at(src, 0), mask, signed, x)
		a.VPSUBD(zero, x, x)
		a.VCVTDQ2PS(x, x)
		a.VMULPS(scale, x, x)
		a.storeFloats(x, mask, at(dst, 0))
	}, step{src, 16}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) storeFloats(x, mask reg.Register, m operand.Mem) {
	if mask != nil {
		a.VMOVUPS(x, mask, m)
	} else {
		a.VMOVUPS(x, m)
	}
}

// scaleRows writes rows of n sums times the weight of their column times scale, in this order or (together) the sum
// times the product of both, plus the bias of the column, if there is one.
func (a *asm) scaleRows(together bool) {
	name := "scaleRows"
	if together {
		name = "scaleRowsTogether"
	}
	a.function(name+"AVX512", "func(dst *float32, sums *int32, rows, n int, weights, bias *float32, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	sums := a.Load(a.Param("sums"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	weights, bias, left := a.GP64(), a.GP64(), a.GP64()
	scale := a.spread512("scale")
	load := func(p reg.Register, mask reg.Register) reg.VecVirtual {
		x := a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(p, 0), mask, x)
		} else {
			a.VMOVUPS(at(p, 0), x)
		}
		return x
	}
	blocks := 0
	a.Label("row")
	a.Load(a.Param("n"), left)
	a.Load(a.Param("weights"), weights)
	a.Load(a.Param("bias"), bias)
	last := a.GP64()
	a.MOVQ(left, last)
	a.ANDQ(operand.U8(15), last)
	a.masked("sums", left, 16, func(mask reg.Register) {
		x, w := load(sums, mask), load(weights, mask)
		a.VCVTDQ2PS(x, x)
		if together {
			a.VMULPS(scale, w, w)
			a.VMULPS(w, x, x)
		} else {
			a.VMULPS(w, x, x)
			a.VMULPS(scale, x, x)
		}
		none := label("nobias%d", blocks)
		blocks++
		a.TESTQ(bias, bias)
		a.JZ(operand.LabelRef(none))
		b := load(bias, mask)
		a.VADDPS(b, x, x)
		a.ADDQ(operand.U8(64), bias)
		a.Label(none)
		a.storeFloats(x, mask, at(dst, 0))
	}, step{sums, 64}, step{weights, 64}, step{dst, 64})
	// The pointers have not moved over what a mask was for.
	a.SHLQ(operand.U8(2), last)
	a.ADDQ(last, sums)
	a.ADDQ(last, dst)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// addScaled adds ((w·by)·scales)·scale, rounded after each step, to n values.
func (a *asm) addScaled() {
	a.function("addScaledAVX512", "func(dst, w, scales *float32, n int, by, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	w := a.Load(a.Param("w"), a.GP64())
	scales := a.Load(a.Param("scales"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	by, scale := a.spread512("by"), a.spread512("scale")
	a.masked("values", n, 16, func(mask reg.Register) {
		v := a.ZMM()
		if mask != nil {
			a.VMULPS_Z(at(w, 0), by, mask, v)
			a.VMULPS_Z(at(scales, 0), v, mask, v)
			a.VMULPS(scale, v, v)
			a.VADDPS_Z(at(dst, 0), v, mask, v)
		} else {
			a.VMULPS(at(w, 0), by, v)
			a.VMULPS(at(scales, 0), v, v)
			a.VMULPS(scale, v, v)
			a.VADDPS(at(dst, 0), v, v)
		}
		a.storeFloats(v, mask, at(dst, 0))
	}, step{w, 64}, step{scales, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}
