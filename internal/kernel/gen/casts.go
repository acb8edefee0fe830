package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// casts writes conversions between types of elements, which round to the nearest, ties to even, or towards zero.
func casts(a *asm) {
	for _, c := range []struct{ from, to string }{
		{"F32", "I32"},
		{"F32", "I64"},
		{"F32", "I8"},
		{"F32", "F64"},
		{"F32", "I16"},
		{"F32", "U32"},
		{"F64", "I8"},
		{"F64", "I16"},
		{"F64", "U32"},
		{"F16", "I16"},
		{"F16", "U32"},
		{"F64", "F32"},
		{"F64", "I32"},
		{"F64", "I64"},
		{"F16", "I32"},
		{"F16", "I64"},
		{"F16", "I8"},
		{"I8", "F32"},
		{"I8", "F16"},
		{"I8", "I32"},
		{"I8", "I64"},
		{"B", "F32"},
		{"B", "F16"},
		{"U8", "F32"},
		{"U8", "F16"},
		{"U8", "I32"},
		{"U8", "I64"},
		{"I32", "F32"},
		{"I32", "F64"},
		{"I32", "F16"},
		{"I32", "I8"},
		{"I32", "I64"},
		{"I64", "F32"},
		{"I64", "F64"},
		{"I64", "F16"},
		{"I64", "I8"},
		{"I64", "I32"},
	} {
		a.castWide(c.from, c.to)
	}
	a.convert("castF32I32", "func(dst, src *byte, n int)", 32, 32, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VCVTTPS2DQ(from, x)
		a.VMOVDQU(x, to)
	})
	one := a.StaticGlobal("oneInt")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		a.AddDatum(4*i, operand.U32(1))
	}
	a.convert("castBF32", "func(dst, src *byte, n int)", 32, 8, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VPMOVZXBD(from, x)
		a.VPMINUD(one, x, x)
		a.VCVTDQ2PS(x, x)
		a.VMOVUPS(x, to)
	})
	a.convert("castU8F32", "func(dst, src *byte, n int)", 32, 8, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VPMOVZXBD(from, x)
		a.VCVTDQ2PS(x, x)
		a.VMOVUPS(x, to)
	})
	a.convert("castI8F32", "func(dst, src *byte, n int)", 32, 8, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VPMOVSXBD(from, x)
		a.VCVTDQ2PS(x, x)
		a.VMOVUPS(x, to)
	})
	a.convert("castU8I32", "func(dst, src *byte, n int)", 32, 8, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VPMOVZXBD(from, x)
		a.VMOVDQU(x, to)
	})
}

// castSizes are the bytes of elements.
var castSizes = map[string]int{"I16": 2, "U32": 4, "F16": 2, "F32": 4, "F64": 8, "I8": 1, "U8": 1, "B": 1, "I32": 4, "I64": 8}

// castWide converts any number of elements, eight at a time.
func (a *asm) castWide(from, to string) {
	a.function("cast"+from+to+"AVX512", "func(dst, src *byte, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	a.masked("elements", n, 8, func(mask reg.Register) {
		x, y := a.loadEight(at(src, 0), from, mask), a.ZMM()
		half := y.AsY()
		m := at(dst, 0)
		put := func(store, some func(...operand.Op), v reg.Register) {
			if mask != nil {
				some(v, mask, m)
			} else {
				store(v, m)
			}
		}
		floats := func() { // to float32
			switch from {
			case "F64":
				a.VCVTPD2PS(x, half)
			case "I64":
				a.VCVTQQ2PS(x, half)
			case "F16", "F32":
				half = x.AsY()
			default:
				a.VCVTDQ2PS(x.AsY(), half)
			}
		}
		ints := func() { // to 32 bits, of which the lower ones count for less
			switch from {
			case "F64":
				a.VCVTTPD2DQ(x, half)
			case "I64":
				a.VPMOVQD(x, half)
			case "F16", "F32":
				a.VCVTTPS2DQ(x.AsY(), half)
			default:
				half = x.AsY()
			}
		}
		long := func() { // to 64 bits
			switch from {
			case "F64":
				a.VCVTTPD2QQ(x, y)
			case "F16", "F32":
				a.VCVTTPS2QQ(x.AsY(), y)
			default:
				a.VPMOVSXDQ(x.AsY(), y)
			}
		}
		switch to {
		case "I16": // the lower bits of 64, as of fewer
			long()
			put(a.VPMOVQW, a.VPMOVQW, y)
		case "U32":
			long()
			put(a.VPMOVQD, a.VPMOVQD, y)
		case "F32":
			floats()
			put(a.VMOVUPS, a.VMOVUPS, half)
		case "I32":
			ints()
			put(a.VMOVUPS, a.VMOVUPS, half)
		case "I8":
			if from == "F64" {
				long()
				put(a.VPMOVQB, a.VPMOVQB, y)
				return
			}
			ints()
			put(a.VPMOVDB, a.VPMOVDB, half)
		case "F16":
			floats()
			if mask != nil {
				a.VCVTPS2PH(operand.U8(0), half, mask, m)
			} else {
				a.VCVTPS2PH(operand.U8(0), half, m)
			}
		case "F64":
			switch from {
			case "F32":
				a.VCVTPS2PD(x.AsY(), y)
			case "I64":
				a.VCVTQQ2PD(x, y)
			default:
				a.VCVTDQ2PD(x.AsY(), y)
			}
			put(a.VMOVUPD, a.VMOVUPD, y)
		default:
			long()
			put(a.VMOVUPD, a.VMOVUPD, y)
		}
	}, step{src, 8 * castSizes[from]}, step{dst, 8 * castSizes[to]})
	a.VZEROUPPER()
	a.RET()
}

// loadEight loads eight elements, or those of a mask, as they are where they have 32 or 64 bits, else as float32 or as integers of 32 bits.
func (a *asm) loadEight(m operand.Mem, from string, mask reg.Register) reg.VecVirtual {
	v := a.ZMM()
	half := v.AsY()
	switch {
	case from == "F16" && mask != nil:
		a.VMOVDQU16_Z(m, mask, v.AsX())
		a.VCVTPH2PS(v.AsX(), half)
	case from == "F16":
		a.VCVTPH2PS(m, half)
	case castByte(from) && mask != nil:
		a.VPMOVZXBD_Z(m, mask, half)
	case castByte(from):
		a.VPMOVZXBD(m, half)
	case from == "I8" && mask != nil:
		a.VPMOVSXBD_Z(m, mask, half)
	case from == "I8":
		a.VPMOVSXBD(m, half)
	case castSizes[from] == 4:
		a.loadFloats(m, mask, half)
	case mask != nil:
		a.VMOVUPD_Z(m, mask, v)
	default:
		a.VMOVUPD(m, v)
	}
	if from == "B" { // anything but zero holds
		one := a.YMM()
		a.VPCMPEQD(one, one, one)
		a.VPABSD(one, one)
		a.VPMINUD(one, half, half)
	}
	return v
}

// castByte tells whether a type has bytes without a sign.
func castByte(from string) bool { return from == "U8" || from == "B" }
