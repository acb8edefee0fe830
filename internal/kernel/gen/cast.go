package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// casts writes conversions between types of elements, which round to the nearest, ties to even,
// or towards zero.
func casts(a *asm) {
	for _, c := range []struct{ from, to string }{
		{"F32", "F64 F16 BF16 I8 I16 I32 U32 I64 U64"},
		{"F64", "F32 F16 BF16 I8 I16 I32 U32 I64 U64"},
		{"F16", "F64 BF16 I8 I16 I32 U32 I64 U64"},
		{"BF16", "F32 F64 F16 I32 I64"},
		{"B", "F32 F16"},
		{"I8", "F32 F16 BF16 I32 I64"},
		{"U8", "F32 F16 BF16 I32 I64"},
		{"I16", "F32 F64 F16 BF16 I32 I64"},
		{"U16", "F32 F64 F16 BF16 I32 I64"},
		{"I32", "F32 F64 F16 BF16 I8 I16 I64"},
		{"U32", "F32 F64 F16 BF16 I64"},
		{"I64", "F32 F64 F16 BF16 I8 I16 I32"},
		{"U64", "F32 F64 F16 BF16"},
	} {
		for to := range strings.FieldsSeq(c.to) {
			a.castWide(c.from, to)
		}
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
var castSizes = map[string]int{
	"B": 1, "I8": 1, "U8": 1, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "F32": 4, "I32": 4, "U32": 4, "F64": 8, "I64": 8, "U64": 8,
}

// castWide converts any number of elements, eight at a time.
func (a *asm) castWide(from, to string) {
	a.function("cast"+from+to+"AVX512", "func(dst, src *byte, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	c := &caster{asm: a, from: from}
	switch to {
	case "F16":
		c.one = a.number512(1)
	case "BF16":
		c.one, c.below, c.quiet = a.number512(1), a.number512(0x7fff), a.number512(0x40)
	case "U64":
		c.far, c.farther = a.double512(1<<63), a.double512(1<<64)
	}
	a.masked("elements", n, 8, func(mask reg.Register) {
		x, m := a.loadEight(at(src, 0), from, mask), at(dst, 0)
		put := func(store, some func(...operand.Op), v reg.Register) {
			if mask != nil {
				some(v, mask, m)
			} else {
				store(v, m)
			}
		}
		switch to {
		case "I16": // the lower bits of 64, as of fewer
			put(a.VPMOVQW, a.VPMOVQW, c.long(x))
		case "U32":
			put(a.VPMOVQD, a.VPMOVQD, c.long(x))
		case "F32":
			put(a.VMOVUPS, a.VMOVUPS, c.floats(x))
		case "I32":
			put(a.VMOVUPS, a.VMOVUPS, c.ints(x))
		case "I8":
			if from == "F64" {
				put(a.VPMOVQB, a.VPMOVQB, c.long(x))
			} else {
				put(a.VPMOVDB, a.VPMOVDB, c.ints(x))
			}
		case "F16":
			y := c.odd(x)
			if mask != nil {
				a.VCVTPS2PH(operand.U8(0), y, mask, m)
			} else {
				a.VCVTPS2PH(operand.U8(0), y, m)
			}
		case "BF16":
			put(a.VPMOVDW, a.VPMOVDW, c.upperHalves(c.odd(x)))
		case "F64":
			put(a.VMOVUPD, a.VMOVUPD, c.doubles(x))
		case "U64":
			put(a.VMOVUPD, a.VMOVUPD, c.longUnsigned(x))
		default:
			put(a.VMOVUPD, a.VMOVUPD, c.long(x))
		}
	}, step{src, 8 * castSizes[from]}, step{dst, 8 * castSizes[to]})
	a.VZEROUPPER()
	a.RET()
}

// caster converts eight elements that [asm.loadEight] has loaded.
type caster struct {
	*asm
	from              string
	one, below, quiet reg.VecVirtual // 32-bit words, for results of 16 bits
	far, farther      reg.VecVirtual // 2^63 and 2^64
}

// floats are float32.
func (c *caster) floats(x reg.VecVirtual) reg.VecVirtual {
	y := c.YMM()
	switch c.from {
	case "F64":
		c.VCVTPD2PS(x, y)
	case "I64":
		c.VCVTQQ2PS(x, y)
	case "U64":
		c.VCVTUQQ2PS(x, y)
	case "U32":
		c.VCVTUDQ2PS(x.AsY(), y)
	case "F16", "BF16", "F32":
		return x.AsY().(reg.VecVirtual)
	default:
		c.VCVTDQ2PS(x.AsY(), y)
	}
	return y
}

// doubles are float64.
func (c *caster) doubles(x reg.VecVirtual) reg.VecVirtual {
	y := c.ZMM()
	switch c.from {
	case "F64":
		return x
	case "F16", "BF16", "F32":
		c.VCVTPS2PD(x.AsY(), y)
	case "I64":
		c.VCVTQQ2PD(x, y)
	case "U64":
		c.VCVTUQQ2PD(x, y)
	case "U32":
		c.VCVTUDQ2PD(x.AsY(), y)
	default:
		c.VCVTDQ2PD(x.AsY(), y)
	}
	return y
}

// odd are float32 that are rounded right when they are rounded once more, to fewer bits: what
// float32 does not hold is cut off, and its last bit set.
func (c *caster) odd(x reg.VecVirtual) reg.VecVirtual {
	if c.from != "F64" && castSizes[c.from] < 4 || c.from == "F32" {
		return c.floats(x)
	}
	d, y, back := c.doubles(x), c.YMM(), c.ZMM()
	c.VCVTPD2PS_RZ_SAE(d, y.AsY())
	c.VCVTPS2PD(y, back)
	c.VCMPPD(operand.U8(12), d, back, reg.K2) // ordered and not equal
	c.VPORD(c.one.AsY(), y, reg.K2, y)
	return y
}

// upperHalves rounds float32 to bfloat16, which lie in the lower halves of words.
func (c *caster) upperHalves(x reg.VecVirtual) reg.VecVirtual {
	y, none := c.YMM(), c.YMM()
	c.VPSRLD(operand.U8(16), x, none)
	c.VPANDD(c.one.AsY(), none, y)
	c.VPADDD(c.below.AsY(), y, y)
	c.VPADDD(x, y, y)
	c.VPSRLD(operand.U8(16), y, y)
	c.VCMPPS(operand.U8(3), x, x, reg.K2) // no number
	c.VPORD(c.quiet.AsY(), none, reg.K2, y)
	return y
}

// ints are integers of 32 bits, of which the lower ones count for less.
func (c *caster) ints(x reg.VecVirtual) reg.VecVirtual {
	y := c.YMM()
	switch c.from {
	case "F64":
		c.VCVTTPD2DQ(x, y)
	case "I64", "U64":
		c.VPMOVQD(x, y)
	case "F16", "BF16", "F32":
		c.VCVTTPS2DQ(x.AsY(), y)
	default:
		return x.AsY().(reg.VecVirtual)
	}
	return y
}

// long are integers of 64 bits.
func (c *caster) long(x reg.VecVirtual) reg.VecVirtual {
	y := c.ZMM()
	switch c.from {
	case "F64":
		c.VCVTTPD2QQ(x, y)
	case "I64", "U64":
		return x
	case "F16", "BF16", "F32":
		c.VCVTTPS2QQ(x.AsY(), y)
	case "U32":
		c.VPMOVZXDQ(x.AsY(), y)
	default:
		c.VPMOVSXDQ(x.AsY(), y)
	}
	return y
}

// longUnsigned are [caster.long] of floats, but what has 64 bits without a sign.
func (c *caster) longUnsigned(x reg.VecVirtual) reg.VecVirtual {
	d, y := c.doubles(x), c.ZMM()
	c.VCVTTPD2QQ(d, y)
	c.VCMPPD(operand.U8(29), c.far, d, reg.K2) // from there on
	c.VCMPPD(operand.U8(isLess), c.farther, d, reg.K2, reg.K2)
	c.VCVTTPD2UQQ(d, reg.K2, y)
	return y
}

// loadEight loads eight elements, or those of a mask, as they are where they have 32 or 64 bits,
// else as float32 or as integers of 32 bits.
func (a *asm) loadEight(m operand.Mem, from string, mask reg.Register) reg.VecVirtual {
	v := a.ZMM()
	half := v.AsY()
	switch {
	case from == "F16" && mask != nil:
		a.VMOVDQU16_Z(m, mask, v.AsX())
		a.VCVTPH2PS(v.AsX(), half)
	case from == "F16":
		a.VCVTPH2PS(m, half)
	case castSizes[from] == 2 && mask != nil:
		widen := a.VPMOVZXWD_Z
		if from == "I16" {
			widen = a.VPMOVSXWD_Z
		}
		widen(m, mask, half)
	case from == "I16":
		a.VPMOVSXWD(m, half)
	case castSizes[from] == 2:
		a.VPMOVZXWD(m, half)
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
	switch from {
	case "BF16":
		a.VPSLLD(operand.U8(16), half, half)
	case "B": // anything but zero holds
		one := a.YMM()
		a.VPCMPEQD(one, one, one)
		a.VPABSD(one, one)
		a.VPMINUD(one, half, half)
	}
	return v
}

// castByte tells whether a type has bytes without a sign.
func castByte(from string) bool { return from == "U8" || from == "B" }
