package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elementOp is an instruction of two operands.
type elementOp struct {
	name string
	op   func(...operand.Op)
	kind string // of the operands: vectors or a scalar
}

// elements writes loops over elements. They wait for memory: registers of 256 bits do.
func elements(a *asm) {
	ops := []elementOp{
		{"add", a.VADDPS, "VV"},
		{"add", a.VADDPS, "VS"},
		{"sub", a.VSUBPS, "VV"},
		{"sub", a.VSUBPS, "SV"},
		{"mul", a.VMULPS, "VV"},
		{"mul", a.VMULPS, "VS"},
		{"div", a.VDIVPS, "VV"},
		{"div", a.VDIVPS, "VS"},
		{"div", a.VDIVPS, "SV"},
		{"prelu", a.prelu, "VV"},
		{"prelu", a.prelu, "VS"},
		{"max", a.greater, "VV"},
		{"min", a.less, "VV"},
		{"maxDoubles", a.greaterDouble, "VV"},
		{"minDoubles", a.lessDouble, "VV"},
	}
	// Integers lie as they are in registers of floats.
	for _, o := range []struct {
		name string
		op   func(...operand.Op)
	}{
		{"and", a.VANDPS},
		{"or", a.VORPS},
		{"xor", a.VXORPS},
		{"addB", a.VPADDB},
		{"addW", a.VPADDW},
		{"addD", a.VPADDD},
		{"addQ", a.VPADDQ},
		{"subB", a.VPSUBB},
		{"subW", a.VPSUBW},
		{"subD", a.VPSUBD},
		{"subQ", a.VPSUBQ},
		{"mulW", a.VPMULLW},
		{"mulD", a.VPMULLD},
		{"maxSB", a.VPMAXSB},
		{"maxSW", a.VPMAXSW},
		{"maxSD", a.VPMAXSD},
		{"maxUB", a.VPMAXUB},
		{"maxUW", a.VPMAXUW},
		{"maxUD", a.VPMAXUD},
		{"minSB", a.VPMINSB},
		{"minSW", a.VPMINSW},
		{"minSD", a.VPMINSD},
		{"minUB", a.VPMINUB},
		{"minUW", a.VPMINUW},
		{"minUD", a.VPMINUD},
	} {
		ops = append(ops, elementOp{o.name, o.op, "VV"})
	}
	ops = append(ops, elementOp{"xor", a.VXORPS, "VS"})
	for _, o := range ops {
		types := map[string]string{"VV": "dst, a, b *float32", "VS": "dst, a *float32, b float32", "SV": "dst *float32, a float32, b *float32"}
		a.function(o.name+o.kind+"AVX2", "func("+types[o.kind]+", n int)")
		dst := a.Load(a.Param("dst"), a.GP64())
		n := a.Load(a.Param("n"), a.GP64())
		var pa, pb reg.Register
		var scalar reg.VecVirtual
		if o.kind == "SV" {
			scalar = a.spreadParam("a")
		} else {
			pa = a.Load(a.Param("a"), a.GP64())
		}
		if o.kind == "VS" {
			scalar = a.spreadParam("b")
		} else {
			pb = a.Load(a.Param("b"), a.GP64())
		}
		a.unrolled(n, func(off int) {
			x := a.YMM()
			switch o.kind {
			case "VV":
				a.VMOVUPS(at(pa, off), x)
				o.op(at(pb, off), x, x)
			case "VS":
				a.VMOVUPS(at(pa, off), x)
				o.op(scalar, x, x)
			default:
				o.op(at(pb, off), scalar, x)
			}
			a.VMOVUPS(x, at(dst, off))
		}, func(by int) {
			a.ADDQ(operand.U32(uint32(by)), dst)
			if o.kind != "SV" {
				a.ADDQ(operand.U32(uint32(by)), pa)
			}
			if o.kind != "VS" {
				a.ADDQ(operand.U32(uint32(by)), pb)
			}
		})
	}
	thresholds(a)
	a.clamp()
	a.addClamp()
	a.magnitude()
	a.whole("roundEven", 8)
	a.whole("roundDown", 9)
	a.whole("roundUp", 10)
	a.wholeDoubles("roundEvenDoubles", 8)
	a.wholeDoubles("roundDownDoubles", 9)
	a.wholeDoubles("roundUpDoubles", 10)
	a.signDoubles()
	a.limitDoubles()
	a.scale()
	a.roundAway()
	a.extent()
	a.nibbles()
	a.dot()
	a.dots()
	a.dotNibbles()
	a.rectifyHalf()
	for _, signed := range []bool{false, true} {
		a.limitBytes(signed)
		a.maxBytes(signed)
		for _, product := range []bool{false, true} {
			a.combine(signed, product)
		}
	}
	a.turn()
	a.turnHalves()
	a.codes("quantise", "func(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)", false, false)
	a.codes("quantiseAway", "func(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)", false, true)
	a.codes("rescale", "func(dst *byte, src *int32, n int, scale, lo, hi float32, zero, bias int32)", true, false)
	places := a.sixteenPlaces()
	a.codes256(places)
	a.codes512()
	a.scales(places)
	a.convert("fromHalf", "func(dst *float32, src *uint16, n int)", 32, 16, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VCVTPH2PS(from, x)
		a.VMOVUPS(x, to)
	})
	a.convert("fromBrain", "func(dst *float32, src *uint16, n int)", 32, 16, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VPMOVZXWD(from, x)
		a.VPSLLD(operand.U8(16), x, x)
		a.VMOVUPS(x, to)
	})
	a.convert("toHalf", "func(dst *uint16, src *float32, n int)", 16, 32, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VMOVUPS(from, x)
		a.VCVTPS2PH(operand.U8(0), x, to)
	})
	a.lost()
	a.convert("toFloats", "func(dst *float32, src *int32, n int)", 32, 32, func(from, to operand.Mem, x reg.VecVirtual) {
		a.VCVTDQ2PS(from, x)
		a.VMOVUPS(x, to)
	})
}

// lost are the bits that differ in some of n numbers, a multiple of 8, and these rounded to
// float16, and their bits that bfloat16 does not have.
func (a *asm) lost() {
	a.function("lostAVX2", "func(src *float32, n int) (half, brain uint32)")
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	half, brain := a.YMM(), a.YMM()
	a.VPXOR(half, half, half)
	a.VPXOR(brain, brain, brain)
	a.loop(n, 8, func() {
		x, y, z := a.YMM(), a.XMM(), a.YMM()
		a.VMOVDQU(at(src, 0), x)
		a.VCVTPS2PH(operand.U8(0), x, y)
		a.VCVTPH2PS(y, z)
		a.VPXOR(x, z, z)
		a.VPOR(z, half, half)
		a.VPOR(x, brain, brain)
	}, step{src, 32})
	for i, v := range []reg.VecVirtual{half, brain} {
		x, y, r := a.XMM(), a.XMM(), a.GP32()
		a.VEXTRACTI128(operand.U8(1), v, x)
		a.VPOR(v.AsX(), x, x)
		for _, bytes := range []uint8{8, 4} {
			a.VPSRLDQ(operand.U8(bytes), x, y)
			a.VPOR(y, x, x)
		}
		a.VMOVD(x, r)
		if i == 1 {
			a.ANDL(operand.U32(0xffff), r)
		}
		a.Store(r, a.ReturnIndex(i))
	}
	a.VZEROUPPER()
	a.RET()
}

// prelu writes x, times by where x is negative.
func (a *asm) prelu(ops ...operand.Op) {
	by, x, zero, negative, y := ops[0], ops[1], a.YMM(), a.YMM(), a.YMM()
	a.VXORPS(zero, zero, zero)
	a.VCMPPS(operand.U8(17), zero, x, negative)
	a.VMULPS(by, x, y)
	a.VBLENDVPS(negative, y, x, ops[2])
}

// greater writes x where it is greater than y or no number, and y elsewhere.
func (a *asm) greater(ops ...operand.Op) { a.ofTwo(a.VMAXPS, ops) }

// less writes x where it is less than y or no number, and y elsewhere.
func (a *asm) less(ops ...operand.Op) { a.ofTwo(a.VMINPS, ops) }

// greaterDouble and lessDouble are greater and less of float64.
func (a *asm) greaterDouble(ops ...operand.Op) { a.ofTwoDoubles(a.VMAXPD, ops) }

func (a *asm) lessDouble(ops ...operand.Op) { a.ofTwoDoubles(a.VMINPD, ops) }

func (a *asm) ofTwoDoubles(choose func(...operand.Op), ops []operand.Op) {
	x, none, r := ops[1], a.YMM(), a.YMM()
	a.VCMPPD(operand.U8(3), x, x, none)
	choose(ops[0], x, r)
	a.VBLENDVPD(none, x, r, ops[2])
}

func (a *asm) ofTwo(choose func(...operand.Op), ops []operand.Op) {
	x, none, r := ops[1], a.YMM(), a.YMM()
	a.VCMPPS(operand.U8(3), x, x, none)
	choose(ops[0], x, r)
	a.VBLENDVPS(none, x, r, ops[2])
}

// roundAway writes n values, a multiple of 8, times mul, rounded with ties away from zero and
// limited to lo and hi.
func (a *asm) roundAway() {
	a.function("roundAwayAVX2", "func(dst, src *float32, n int, mul, lo, hi float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	mul, lo, hi := a.spreadParam("mul"), a.spreadParam("lo"), a.spreadParam("hi")
	sign, half := a.YMM(), a.YMM()
	a.awayMasks(sign, half)
	a.unrolled(n, func(off int) {
		x, part := a.YMM(), a.YMM()
		a.VMULPS(at(src, off), mul, x)
		a.VANDPS(sign, x, part)
		a.VORPS(half, part, part)
		a.VADDPS(part, x, x)
		a.VROUNDPS(operand.U8(3), x, x)
		a.VMAXPS(lo, x, x)
		a.VMINPS(hi, x, x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// awayMasks are the sign bit and the largest number below a half: a half itself, added
// before the rest is cut off, would carry what is just below one half up.
func (a *asm) awayMasks(sign, half reg.Register) {
	a.VPCMPEQD(sign, sign, sign)
	a.VPSLLD(operand.U8(31), sign, sign)
	g, low := a.GP32(), a.XMM()
	a.MOVL(operand.U32(0x3effffff), g)
	a.VMOVD(g, low)
	a.VPBROADCASTD(low, half)
}

// extent writes the smallest and the largest of n values, a multiple of 8, in each lane,
// and where one is NaN.
func (a *asm) extent() {
	a.function("extentAVX2", "func(src *float32, n int) (least, most float32)")
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	least, most, none, x, c := a.YMM(), a.YMM(), a.YMM(), a.YMM(), a.YMM()
	a.VMOVUPS(at(src, 0), least)
	a.VMOVUPS(least, most)
	a.VXORPS(none, none, none)
	a.loop(n, 8, func() {
		a.VMOVUPS(at(src, 0), x)
		a.VCMPPS(operand.U8(3), x, x, c)
		a.VORPS(c, none, none)
		a.VMINPS(x, least, least)
		a.VMAXPS(x, most, most)
	}, step{src, 32})
	low, high, y := least.AsX(), most.AsX(), a.XMM()
	a.VEXTRACTF128(operand.U8(1), least, y)
	a.VMINPS(y, low, low)
	a.VEXTRACTF128(operand.U8(1), most, y)
	a.VMAXPS(y, high, high)
	for _, order := range []uint8{0x4e, 0xb1} {
		a.VPERMILPS(operand.U8(order), low, y)
		a.VMINPS(y, low, low)
		a.VPERMILPS(operand.U8(order), high, y)
		a.VMAXPS(y, high, high)
	}
	mask := a.GP32()
	a.VMOVMSKPS(none, mask)
	a.TESTL(mask, mask)
	a.JZ(operand.LabelRef("numbers"))
	a.VPCMPEQD(low, low, low) // all bits are set: no number
	a.VMOVAPS(low, high)
	a.Label("numbers")
	a.Store(low, a.ReturnIndex(0))
	a.Store(high, a.ReturnIndex(1))
	a.VZEROUPPER()
	a.RET()
}

// nibbles writes (q - zero)·scale of n codes of 4 bits, a multiple of 16, the lower half of
// each byte first.
func (a *asm) nibbles() {
	a.function("nibblesAVX2", "func(dst *float32, src *byte, n int, zero, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	zero, scale := a.spreadParam("zero"), a.spreadParam("scale")
	mask := a.YMM()
	a.VPCMPEQD(mask, mask, mask)
	a.VPSRLD(operand.U8(28), mask, mask)
	low, high, first, second := a.YMM(), a.YMM(), a.YMM(), a.YMM()
	a.loop(n, 16, func() {
		a.VPMOVZXBD(at(src, 0), low)
		a.VPSRLD(operand.U8(4), low, high)
		a.VPAND(mask, low, low)
		for _, v := range []reg.VecVirtual{low, high} {
			a.VCVTDQ2PS(v, v)
			a.VSUBPS(zero, v, v)
			a.VMULPS(scale, v, v)
		}
		a.VUNPCKLPS(high, low, first)
		a.VUNPCKHPS(high, low, second)
		a.VPERM2F128(operand.U8(0x20), second, first, low)
		a.VPERM2F128(operand.U8(0x31), second, first, high)
		a.VMOVUPS(low, at(dst, 0))
		a.VMOVUPS(high, at(dst, 32))
	}, step{src, 8}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// dot writes the sums of the products of n values, a multiple of 32, in eight lanes.
func (a *asm) dot() {
	a.function("dotAVX2", "func(a, b *float32, n int) float32")
	pa := a.Load(a.Param("a"), a.GP64())
	pb := a.Load(a.Param("b"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	var sum [4]reg.VecVirtual
	for i := range sum {
		sum[i] = a.YMM()
		a.VXORPS(sum[i], sum[i], sum[i])
	}
	x := a.YMM()
	a.Label("step")
	for i, s := range sum {
		a.VMOVUPS(at(pa, 32*i), x)
		a.VFMADD231PS(at(pb, 32*i), x, s)
	}
	a.SUBQ(operand.I8(-128), pa)
	a.SUBQ(operand.I8(-128), pb)
	a.SUBQ(operand.U8(32), n)
	a.JNZ(operand.LabelRef("step"))
	a.VADDPS(sum[1], sum[0], sum[0])
	a.VADDPS(sum[3], sum[2], sum[2])
	a.VADDPS(sum[2], sum[0], sum[0])
	low, high := sum[0].AsX(), a.XMM()
	a.VEXTRACTF128(operand.U8(1), sum[0], high)
	a.VADDPS(high, low, low)
	for _, order := range []uint8{0xb1, 0x4e} {
		a.VPERMILPS(operand.U8(order), low, high)
		a.VADDPS(high, low, low)
	}
	a.Store(low, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// dots writes eight sums of the products of n values of a, a multiple of 8, with those of b from
// eight places on.
func (a *asm) dots() {
	a.function("dotsAVX2", "func(sums, a, b *float32, offs *int, n int)")
	pa := a.Load(a.Param("a"), a.GP64())
	b := a.Load(a.Param("b"), a.GP64())
	offs := a.Load(a.Param("offs"), a.GP64())
	var sum [8]reg.VecVirtual
	var from [8]reg.GPVirtual
	for i := range sum {
		sum[i], from[i] = a.YMM(), a.GP64()
		a.VXORPS(sum[i], sum[i], sum[i])
		a.MOVQ(at(offs, 8*i), from[i])
		a.LEAQ(operand.Mem{Base: b, Index: from[i], Scale: 4}, from[i])
	}
	n := a.Load(a.Param("n"), a.GP64())
	i, x := a.GP64(), a.YMM()
	a.XORQ(i, i)
	a.Label("step")
	a.VMOVUPS(operand.Mem{Base: pa, Index: i, Scale: 4}, x)
	for k, s := range sum {
		a.VFMADD231PS(operand.Mem{Base: from[k], Index: i, Scale: 4}, x, s)
	}
	a.ADDQ(operand.U8(8), i)
	a.CMPQ(i, n)
	a.JLT(operand.LabelRef("step"))
	// Pairs of lanes are added across registers, so that four registers give four sums in a half
	// each.
	for k := 0; k < 8; k += 4 {
		a.VHADDPS(sum[k+1], sum[k], sum[k])
		a.VHADDPS(sum[k+3], sum[k+2], sum[k+2])
		a.VHADDPS(sum[k+2], sum[k], sum[k])
	}
	sums := a.Load(a.Param("sums"), a.GP64())
	for k := 0; k < 8; k += 4 {
		high := a.XMM()
		a.VEXTRACTF128(operand.U8(1), sum[k], high)
		a.VADDPS(sum[k].AsX(), high, high)
		a.VMOVUPS(high, at(sums, 4*k))
	}
	a.VZEROUPPER()
	a.RET()
}

// dotNibbles writes the inner product of a row of weights of 4 bits in blocks: of groups of 16,
// of whose 8 bytes x has the values of the lower halves first. sums are those of x in each block.
func (a *asm) dotNibbles() {
	a.function("dotNibblesAVX2", "func(x *float32, w *byte, groups, blocks int, scales, zeros, sums *float32) float32")
	x := a.Load(a.Param("x"), a.GP64())
	w := a.Load(a.Param("w"), a.GP64())
	groups := a.Load(a.Param("groups"), a.GP64())
	blocks := a.Load(a.Param("blocks"), a.GP64())
	scales := a.Load(a.Param("scales"), a.GP64())
	zeros := a.Load(a.Param("zeros"), a.GP64())
	sums := a.Load(a.Param("sums"), a.GP64())
	total, even, odd, mask, scale := a.YMM(), a.YMM(), a.YMM(), a.YMM(), a.YMM()
	rest := a.XMM()
	a.VPCMPEQD(mask, mask, mask)
	a.VPSRLD(operand.U8(28), mask, mask)
	a.VXORPS(total, total, total)
	a.VXORPS(rest, rest, rest)
	left := a.GP64()
	a.Label("block")
	a.VXORPS(even, even, even)
	a.VXORPS(odd, odd, odd)
	a.MOVQ(groups, left)
	a.loop(left, 1, func() {
		low, high := a.YMM(), a.YMM()
		a.VPMOVZXBD(at(w, 0), low)
		a.VPSRLD(operand.U8(4), low, high)
		a.VPAND(mask, low, low)
		a.VCVTDQ2PS(low, low)
		a.VCVTDQ2PS(high, high)
		a.VFMADD231PS(at(x, 0), low, even)
		a.VFMADD231PS(at(x, 32), high, odd)
	}, step{w, 8}, step{x, 64})
	a.VBROADCASTSS(at(scales, 0), scale)
	a.VADDPS(odd, even, even)
	a.VFMADD231PS(scale, even, total)
	zero := a.XMM()
	a.VMOVSS(at(zeros, 0), zero)
	a.VMULSS(scale.AsX(), zero, zero)
	a.VFMADD231SS(at(sums, 0), zero, rest)
	for _, p := range []reg.Register{scales, zeros, sums} {
		a.ADDQ(operand.U8(4), p)
	}
	a.DECQ(blocks)
	a.JNZ(operand.LabelRef("block"))
	low, high := total.AsX(), a.XMM()
	a.VEXTRACTF128(operand.U8(1), total, high)
	a.VADDPS(high, low, low)
	for _, order := range []uint8{0xb1, 0x4e} {
		a.VPERMILPS(operand.U8(order), low, high)
		a.VADDPS(high, low, low)
	}
	a.VSUBSS(rest, low, low)
	a.Store(low, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// rectifyHalf writes 0 for negative 16-bit values, n a multiple of 16. inf is the code
// of infinity: larger magnitudes are NaN and stay, as zeros of both signs do.
func (a *asm) rectifyHalf() {
	a.function("rectifyHalfAVX2", "func(dst, src *uint16, n int, inf uint16)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	g := a.GP32()
	a.Load(a.Param("inf"), g)
	low := a.XMM()
	a.VMOVD(g, low)
	inf, all, magnitude, zero := a.YMM(), a.YMM(), a.YMM(), a.YMM()
	a.VPBROADCASTW(low, inf)
	a.VPCMPEQW(all, all, all)
	a.VPSRLW(operand.U8(1), all, magnitude)
	a.VPXOR(zero, zero, zero)
	x, m, keep := a.YMM(), a.YMM(), a.YMM()
	a.loop(n, 16, func() {
		a.VMOVDQU(at(src, 0), x)
		a.VPAND(magnitude, x, m)
		a.VPCMPGTW(inf, m, keep)
		a.VPCMPEQW(zero, m, m)
		a.VPOR(m, keep, keep)
		a.VPSRAW(operand.U8(15), x, m)
		a.VPANDN(m, keep, m)
		a.VPANDN(x, m, x)
		a.VMOVDQU(x, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// step is a pointer and the bytes by which a loop moves it on in each turn.
type step struct {
	p  reg.Register
	by int
}

// loop runs body for n values, a multiple of each, that many at a time.
func (a *asm) loop(n reg.Register, each uint8, body func(), steps ...step) {
	a.Label("step")
	body()
	for _, s := range steps {
		a.ADDQ(operand.U8(uint8(s.by)), s.p)
	}
	a.SUBQ(operand.U8(each), n)
	a.JNZ(operand.LabelRef("step"))
}

// unrolled runs f for n values, a multiple of 8: 32 at a time, then 8.
func (a *asm) unrolled(n reg.Register, f func(off int), next func(by int)) {
	a.Label("many")
	a.SUBQ(operand.U8(32), n)
	a.JLT(operand.LabelRef("few"))
	for i := range 4 {
		f(32 * i)
	}
	next(128)
	a.JMP(operand.LabelRef("many"))
	a.Label("few")
	a.ADDQ(operand.U8(32), n)
	a.Label("eight")
	a.SUBQ(operand.U8(8), n)
	a.JLT(operand.LabelRef("end"))
	f(0)
	next(32)
	a.JMP(operand.LabelRef("eight"))
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}

// spreadParam loads a parameter of 32 bits into all lanes.
func (a *asm) spreadParam(name string) reg.VecVirtual {
	v, x, g := a.YMM(), a.XMM(), a.GP32()
	p, err := a.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	a.MOVL(p.Addr, g)
	a.VMOVD(g, x)
	a.VPBROADCASTD(x, v)
	return v
}

// whole writes integers near n values, a multiple of 8.
func (a *asm) whole(name string, mode uint8) {
	a.function(name+"AVX2", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VROUNDPS(operand.U8(mode), at(src, off), x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// wholeDoubles is whole of float64, n of which take two of 32 bits each, a multiple of 8.
func (a *asm) wholeDoubles(name string, mode uint8) {
	a.function(name+"AVX2", "func(dst, src *float64, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VROUNDPD(operand.U8(mode), at(src, off), x)
		a.VMOVUPD(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// signDoubles writes 1 and -1 for float64 above and below zero, and others as they are; n is as
// for wholeDoubles.
func (a *asm) signDoubles() {
	a.function("signDoublesAVX2", "func(dst, src *float64, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	word := func(bits uint64) reg.VecVirtual {
		v, g, low := a.YMM(), a.GP64(), a.XMM()
		a.MOVQ(operand.U64(bits), g)
		a.VMOVQ(g, low)
		a.VPBROADCASTQ(low, v)
		return v
	}
	sign, one, zero := word(1<<63), word(0x3ff<<52), word(0)
	a.unrolled(n, func(off int) {
		x, unit, other := a.YMM(), a.YMM(), a.YMM()
		a.VMOVUPD(at(src, off), x)
		a.VANDPD(sign, x, unit)
		a.VORPD(one, unit, unit)
		a.VCMPPD(operand.U8(12), zero, x, other)
		a.VBLENDVPD(other, unit, x, x)
		a.VMOVUPD(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// limitDoubles writes float64 that are neither less than lo nor greater than hi, else the limit;
// n is as for wholeDoubles.
func (a *asm) limitDoubles() {
	a.function("limitDoublesAVX2", "func(dst, src *float64, n int, lo, hi float64)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	spread := func(name string) reg.VecVirtual {
		x, v := a.XMM(), a.YMM()
		a.VBROADCASTSD(a.Load(a.Param(name), x), v)
		return v
	}
	lo, hi := spread("lo"), spread("hi")
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VMOVUPD(at(src, off), x)
		a.VMAXPD(x, lo, x)
		a.VMINPD(x, hi, x)
		a.VMOVUPD(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// magnitude writes n values, a multiple of 8, without their signs.
func (a *asm) magnitude() {
	a.function("magnitudeAVX2", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	rest := a.YMM()
	a.VPCMPEQD(rest, rest, rest)
	a.VPSRLD(operand.U8(1), rest, rest)
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VANDPS(at(src, off), rest, x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// clamp writes min(max(x, lo), hi) as Go has it: NaN stays, and of zeros
// of both signs the positive one is greater, which the addition of plus sees to.
func (a *asm) clamp() {
	a.function("clampAVX2", "func(dst, src *float32, n int, lo, hi, plus float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	lo, hi, plus := a.spreadParam("lo"), a.spreadParam("hi"), a.spreadParam("plus")
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VMOVUPS(at(src, off), x)
		a.VMAXPS(x, lo, x)
		a.VMINPS(x, hi, x)
		a.VADDPS(plus, x, x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// addClamp writes min(max(a+b, lo), hi). NaN stays, and a zero keeps its sign.
func (a *asm) addClamp() {
	a.function("addClampAVX2", "func(dst, a, b *float32, n int, lo, hi float32)")
	load := func(p string) reg.Register { return a.Load(a.Param(p), a.GP64()) }
	dst, pa, pb, n := load("dst"), load("a"), load("b"), load("n")
	lo, hi := a.spreadParam("lo"), a.spreadParam("hi")
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VMOVUPS(at(pa, off), x)
		a.VADDPS(at(pb, off), x, x)
		a.VMAXPS(x, lo, x)
		a.VMINPS(x, hi, x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		for _, p := range []reg.Register{dst, pa, pb} {
			a.ADDQ(operand.U32(uint32(by)), p)
		}
	})
}

// scale writes x·s + t.
func (a *asm) scale() {
	a.function("scaleAVX2", "func(dst, src *float32, n int, s, t float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	s, t := a.spreadParam("s"), a.spreadParam("t")
	a.unrolled(n, func(off int) {
		x := a.YMM()
		a.VMULPS(at(src, off), s, x)
		a.VADDPS(t, x, x)
		a.VMOVUPS(x, at(dst, off))
	}, func(by int) {
		a.ADDQ(operand.U32(uint32(by)), dst)
		a.ADDQ(operand.U32(uint32(by)), src)
	})
}

// convert writes n values, a multiple of 8, of another type; eight take size bytes.
func (a *asm) convert(name, sig string, dstSize, srcSize int, f func(from, to operand.Mem, x reg.VecVirtual)) {
	a.function(name+"AVX2", sig)
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	x := a.YMM()
	a.loop(n, 8, func() {
		f(at(src, 0), at(dst, 0), x)
	}, step{src, srcSize}, step{dst, dstSize})
	a.VZEROUPPER()
	a.RET()
}

// codes writes 8-bit values of n values, a multiple of 8: values divided by scale, or
// integers with a bias multiplied by it, are limited, rounded (ties to even, or away from
// zero) and get the zero point.
func (a *asm) codes(name, sig string, integers, away bool) {
	a.function(name+"AVX2", sig)
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	scale, lo, hi, zero := a.spreadParam("scale"), a.spreadParam("lo"), a.spreadParam("hi"), a.spreadParam("zero")
	var bias reg.VecVirtual
	if integers {
		bias = a.spreadParam("bias")
	}
	bytes := a.lowBytes()
	sign, half := a.YMM(), a.YMM()
	if away {
		a.awayMasks(sign, half)
	}
	a.loop(n, 8, func() {
		x := a.YMM()
		if integers {
			a.VPADDD(at(src, 0), bias, x)
			a.VCVTDQ2PS(x, x)
			a.VMULPS(scale, x, x)
		} else {
			a.VMOVUPS(at(src, 0), x)
			a.VDIVPS(scale, x, x)
		}
		if away {
			// NaN becomes zero.
			number, part := a.YMM(), a.YMM()
			a.VCMPPS(operand.U8(7), x, x, number)
			a.VANDPS(number, x, x)
			a.VMAXPS(lo, x, x)
			a.VMINPS(hi, x, x)
			a.VANDPS(sign, x, part)
			a.VORPS(half, part, part)
			a.VADDPS(part, x, x)
			a.VCVTTPS2DQ(x, x)
		} else {
			// NaN becomes the lower limit.
			a.VMAXPS(lo, x, x)
			a.VMINPS(hi, x, x)
			a.VCVTPS2DQ(x, x)
		}
		a.pack(x, zero, bytes, at(dst, 0))
	}, step{src, 32}, step{dst, 8})
	a.VZEROUPPER()
	a.RET()
}

// lowBytes is a mask of the lower byte of each 16 bits.
func (a *asm) lowBytes() reg.VecVirtual {
	bytes := a.XMM()
	a.VPCMPEQW(bytes, bytes, bytes)
	a.VPSRLW(operand.U8(8), bytes, bytes)
	return bytes
}

// pack adds zero to eight integers and stores their lowest bytes.
func (a *asm) pack(x, zero, bytes reg.VecVirtual, dst operand.Mem) {
	a.VPADDD(zero, x, x)
	a.VPACKSSDW(x, x, x)
	a.VPERMQ(operand.U8(0xd8), x, x)
	low := x.AsX()
	a.VPAND(bytes, low, low)
	a.VPACKUSWB(low, low, low)
	a.VMOVQ(low, dst)
}

func signName(signed bool) string {
	if signed {
		return "S8"
	}
	return "U8"
}

// limitBytes writes n bytes, a multiple of 32, between lo and hi; hi wins where they cross.
func (a *asm) limitBytes(signed bool) {
	a.function("limit"+signName(signed)+"AVX2", "func(dst, src *byte, n int, lo, hi int32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	lo, hi := a.spreadParam("lo"), a.spreadParam("hi")
	a.VPBROADCASTB(lo.AsX(), lo)
	a.VPBROADCASTB(hi.AsX(), hi)
	a.loop(n, 32, func() {
		x := a.YMM()
		if signed {
			a.VPMAXSB(at(src, 0), lo, x)
			a.VPMINSB(hi, x, x)
		} else {
			a.VPMAXUB(at(src, 0), lo, x)
			a.VPMINUB(hi, x, x)
		}
		a.VMOVDQU(x, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// turn writes n squares of 8 by 8 words of 32 bits, side by side, with rows and columns exchanged.
func (a *asm) turn() {
	a.function("turnAVX2", "func(dst *uint32, stepDst int, src *uint32, stepSrc, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	to := a.GP64()
	var x, y [8]reg.VecPhysical
	for i := range x {
		x[i], y[i] = ymm.reg(i), ymm.reg(8+i)
	}
	a.Label("square")
	for _, v := range x {
		a.VMOVUPS(at(src, 0), v)
		a.ADDQ(stepSrc, src)
	}
	for i := range 4 {
		a.VUNPCKLPS(x[2*i+1], x[2*i], y[2*i])
		a.VUNPCKHPS(x[2*i+1], x[2*i], y[2*i+1])
	}
	// Of each lane of four rows: columns 0 and 4, 1 and 5, 2 and 6, 3 and 7.
	for half := range 2 {
		p := 4 * half
		a.VSHUFPS(operand.U8(0x44), y[p+2], y[p], x[p])
		a.VSHUFPS(operand.U8(0xee), y[p+2], y[p], x[p+1])
		a.VSHUFPS(operand.U8(0x44), y[p+3], y[p+1], x[p+2])
		a.VSHUFPS(operand.U8(0xee), y[p+3], y[p+1], x[p+3])
	}
	a.MOVQ(dst, to)
	for i := range 8 {
		a.VPERM2F128(operand.U8(0x20+0x11*uint8(i/4)), x[4+i%4], x[i%4], y[i])
		a.VMOVUPS(y[i], at(to, 0))
		a.ADDQ(stepDst, to)
	}
	a.ADDQ(operand.U8(32), dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("square"))
	a.VZEROUPPER()
	a.RET()
}

// turnHalves is turn for squares of 8 by 8 words of 16 bits.
func (a *asm) turnHalves() {
	a.function("turnHalvesAVX2", "func(dst *uint16, stepDst int, src *uint16, stepSrc, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	stepDst := a.Load(a.Param("stepDst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	stepSrc := a.Load(a.Param("stepSrc"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	to := a.GP64()
	var x, y [8]reg.Register
	for i := range x {
		x[i], y[i] = ymm.reg(i).AsX(), ymm.reg(8+i).AsX()
	}
	a.Label("square")
	for _, v := range x {
		a.VMOVDQU(at(src, 0), v)
		a.ADDQ(stepSrc, src)
	}
	for i := range 4 {
		a.VPUNPCKLWD(x[2*i+1], x[2*i], y[2*i])
		a.VPUNPCKHWD(x[2*i+1], x[2*i], y[2*i+1])
	}
	// Of four rows each: columns 0 and 1, 2 and 3, 4 and 5, 6 and 7.
	for half := range 2 {
		p := 4 * half
		a.VPUNPCKLDQ(y[p+2], y[p], x[p])
		a.VPUNPCKHDQ(y[p+2], y[p], x[p+1])
		a.VPUNPCKLDQ(y[p+3], y[p+1], x[p+2])
		a.VPUNPCKHDQ(y[p+3], y[p+1], x[p+3])
	}
	a.MOVQ(dst, to)
	for i := range 8 {
		if i%2 == 0 {
			a.VPUNPCKLQDQ(x[4+i/2], x[i/2], y[i])
		} else {
			a.VPUNPCKHQDQ(x[4+i/2], x[i/2], y[i])
		}
		a.VMOVDQU(y[i], at(to, 0))
		a.ADDQ(stepDst, to)
	}
	a.ADDQ(operand.U8(16), dst)
	a.DECQ(n)
	a.JNZ(operand.LabelRef("square"))
	a.VZEROUPPER()
	a.RET()
}

// maxBytes writes the larger of n pairs of bytes, a multiple of 32.
func (a *asm) maxBytes(signed bool) {
	a.function("max"+signName(signed)+"AVX2", "func(dst, a, b *byte, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	pa := a.Load(a.Param("a"), a.GP64())
	pb := a.Load(a.Param("b"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	a.loop(n, 32, func() {
		x := a.YMM()
		a.VMOVDQU(at(pa, 0), x)
		if signed {
			a.VPMAXSB(at(pb, 0), x, x)
		} else {
			a.VPMAXUB(at(pb, 0), x, x)
		}
		a.VMOVDQU(x, at(dst, 0))
	}, step{pa, 32}, step{pb, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// combine writes the values of sums or products of n pairs, a multiple of 8, of 8-bit
// values. q are the zero point and the scale of a, those of b, the scale of the result, its limits
// less the zero point, and the zero point as an integer.
func (a *asm) combine(signed, product bool) {
	name := "sum"
	if product {
		name = "product"
	}
	a.function(name+signName(signed)+"AVX2", "func(dst, a, b *byte, n int, q *Codes)")
	dst := a.Load(a.Param("dst"), a.GP64())
	pa := a.Load(a.Param("a"), a.GP64())
	pb := a.Load(a.Param("b"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	q := a.Load(a.Param("q"), a.GP64())
	var v [8]reg.VecVirtual
	for i := range v {
		v[i] = a.YMM()
		a.VBROADCASTSS(at(q, 4*i), v[i])
	}
	bytes := a.lowBytes()
	real := func(p reg.Register, zero, scale reg.VecVirtual) reg.VecVirtual {
		x := a.YMM()
		if signed {
			a.VPMOVSXBD(at(p, 0), x)
		} else {
			a.VPMOVZXBD(at(p, 0), x)
		}
		a.VCVTDQ2PS(x, x)
		a.VSUBPS(zero, x, x)
		a.VMULPS(scale, x, x)
		return x
	}
	a.loop(n, 8, func() {
		x, y := real(pa, v[0], v[1]), real(pb, v[2], v[3])
		if product {
			a.VMULPS(y, x, x)
		} else {
			a.VADDPS(y, x, x)
		}
		a.VDIVPS(v[4], x, x)
		a.VMAXPS(v[5], x, x)
		a.VMINPS(v[6], x, x)
		a.VCVTPS2DQ(x, x)
		a.pack(x, v[7], bytes, at(dst, 0))
	}, step{dst, 8}, step{pa, 8}, step{pb, 8})
	a.VZEROUPPER()
	a.RET()
}
