package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs writes loops over two operands of codes of 8 or 16 bits in the fixed-point arithmetic of
// TFLite; see simd.Pair for the numbers that they take. They take rows of n codes, whose results
// lie side by side: those of the operands lie stepA and stepB bytes apart, and of the operand
// that is single (1 for a, 2 for b) they have one code.
//
// With 256-bit registers, rows are computed up to a multiple of 8.
func pairs(a *asm) {
	for _, w := range []width{ymm, zmm} {
		for _, codes := range []string{"U8", "S8", "S16"} {
			for _, kind := range []string{"sum", "difference", "reverse", "product"} {
				a.pair(w, kind, codes)
			}
		}
		for _, codes := range []string{"U8", "S8"} {
			a.pair(w, "prelu", codes)
			a.pair(w, "square", codes)
		}
		a.pair(w, "square", "S16")
		a.pair(w, "leaky", "S16")
	}
	for _, codes := range []string{"U8", "S8"} {
		a.scaledProduct(codes)
	}
}

// Places of the fields of simd.Pair, in 32-bit words.
const (
	pairZeroA = iota
	pairZeroB
	pairShift
	pairTwiceB // and what goes with it
	pairTwice  = pairTwiceB + 4
	pairZero   = pairTwice + 4
	pairLo     = pairZero + 1
	pairHi     = pairLo + 1
	pairScale  = pairHi + 1
	pairBias   = pairScale + 1
)

// scaler multiplies 32-bit numbers as requantiseRows does; the sign counts where it is asked for,
// which it is not for a shift by nothing.
type scaler struct {
	a                                *asm
	w                                width
	twice, down, half, negate, round operand.Op
}

func (a *asm) scaler(w width, field func(i int) operand.Op, first int, round operand.Op) *scaler {
	return &scaler{a: a, w: w, twice: field(first), down: field(first + 1), half: field(first + 2), negate: field(first + 3), round: round}
}

func (s *scaler) apply(v reg.VecVirtual) reg.VecVirtual {
	a := s.a
	even, odd := a.vec(s.w), a.vec(s.w)
	a.VPMULDQ(s.twice, v, even)
	a.VMOVSHDUP(v, odd)
	a.VPMULDQ(s.twice, odd, odd)
	a.VPADDQ(s.round, even, even)
	a.VPADDQ(s.round, odd, odd)
	if s.w.masks {
		a.VMOVSHDUP(even, reg.K2, odd)
	} else {
		a.VMOVSHDUP(even, even)
		a.VPBLENDD(operand.U8(0x55), even, odd, odd)
	}
	a.VPADDD(v, odd, odd)
	a.VPADDD(s.half, odd, odd)
	a.VPSRAD(operand.U8(31), v, v)
	a.and(s.w, s.negate, v, v)
	a.VPADDD(v, odd, odd)
	a.VPSRAVD(s.down, odd, odd)
	return odd
}

func (a *asm) pair(w width, kind, codes string) {
	element := "byte"
	if codes == "S16" {
		element = "int16"
	}
	a.function("pair"+kind+codes+w.set, "func(dst, a, b *"+element+", rows, n, stepA, stepB, single int, q *Pair)")
	dst := a.Load(a.Param("dst"), a.GP64())
	rowA := a.Load(a.Param("a"), a.GP64())
	rowB := a.Load(a.Param("b"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	q := a.Load(a.Param("q"), a.GP64())
	// Few registers of 256 bits leave their numbers in memory.
	kept := func(v reg.VecVirtual) operand.Op {
		if w.masks {
			return v
		}
		m := a.AllocLocal(w.bytes())
		a.VMOVDQU(v, m)
		return m
	}
	spread := func(i int) reg.VecVirtual {
		v := a.vec(w)
		a.VPBROADCASTD(at(q, 4*i), v)
		return v
	}
	field := func(i int) operand.Op { return kept(spread(i)) }
	round := a.vec(w)
	c, x := a.GP64(), a.XMM()
	a.MOVQ(operand.U64(1<<31), c)
	a.VMOVQ(c, x)
	a.VPBROADCASTQ(x, round)
	if w.masks {
		a.MOVL(operand.U32(0x5555), c.As32())
		a.KMOVW(c.As32(), reg.K2)
	}
	zeroA, zeroB := field(pairZeroA), field(pairZeroB)
	zero, lo, hi := field(pairZero), field(pairLo), field(pairHi)
	last := a.scaler(w, field, pairTwice, round)
	var second *scaler
	var shift, one, minus operand.Op
	if kind != "product" {
		second = a.scaler(w, field, pairTwiceB, round)
		by, ones := spread(pairShift), a.vec(w)
		if shift = kept(by); w.masks {
			a.VPTERNLOGD(operand.U8(0xff), ones, ones, ones)
		} else {
			a.VPCMPEQD(ones, ones, ones)
		}
		less := a.vec(w)
		a.VPADDD(ones, by, less)
		one, minus = kept(less), kept(ones)
	}
	values := w.floats
	size := values
	if codes == "S16" {
		size = 2 * values
	}
	load := func(p, mask, x reg.Register) {
		switch {
		case codes == "S16" && !w.masks:
			a.VPMOVSXWD(at(p, 0), x)
		case codes == "S8" && !w.masks:
			a.VPMOVSXBD(at(p, 0), x)
		case !w.masks:
			a.VPMOVZXBD(at(p, 0), x)
		case codes == "S16":
			a.loadWords(at(p, 0), mask, x)
		default:
			a.widenBytes(at(p, 0), mask, codes == "S8", x)
		}
	}
	pa, pb, byA, byB, left, to := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("row")
	a.MOVQ(n, left)
	a.MOVQ(dst, to)
	a.MOVQ(rowA, pa)
	a.MOVQ(rowB, pb)
	a.MOVQ(operand.U32(uint32(size)), byA)
	a.MOVQ(byA, byB)
	a.standing(1, rowA, pa, byA, codes == "S16")
	a.standing(2, rowB, pb, byB, codes == "S16")
	body := func(mask reg.Register) {
		u, v := a.vec(w), a.vec(w)
		load(pa, mask, u)
		a.VPSUBD(zeroA, u, u)
		if kind != "leaky" {
			load(pb, mask, v)
			a.VPSUBD(zeroB, v, v)
		}
		var positive, sign reg.VecVirtual
		switch kind {
		case "product":
			a.VPMULLD(v, u, u)
		case "prelu", "leaky":
			if w.masks {
				a.VPMOVD2M(u, reg.K3)
			} else {
				sign = a.vec(w)
				a.VMOVDQU(u, sign)
			}
			p := a.vec(w)
			a.VPSLLVD(shift, u, p)
			positive = second.apply(p)
			if kind == "prelu" {
				a.VPMULLD(v, u, u)
			} else {
				a.VPSLLVD(zeroB, u, u)
			}
		default:
			if codes == "S16" && kind == "square" {
				a.VPSUBD(minus, u, u)
				a.VPSRAD(operand.U8(1), u, u)
			} else {
				a.VPSLLVD(one, u, u)
				a.VPSLLVD(shift, v, v)
			}
			scaled := second.apply(v)
			switch kind {
			case "sum":
				a.VPADDD(scaled, u, u)
			case "difference":
				a.VPSUBD(scaled, u, u)
			case "square":
				a.VPSUBD(scaled, u, u)
				a.VPMULLD(u, u, u)
			default:
				a.VPSUBD(u, scaled, u)
			}
		}
		r := last.apply(u)
		switch {
		case positive == nil:
		case w.masks:
			a.VMOVDQA32(r, reg.K3, positive)
			r = positive
		default:
			a.VBLENDVPS(sign, r, positive, r)
		}
		a.VPADDD(zero, r, r)
		a.VPMAXSD(lo, r, r)
		a.VPMINSD(hi, r, r)
		switch {
		case !w.masks:
			upper, x := a.XMM(), r.AsX()
			a.VEXTRACTI128(operand.U8(1), r, upper)
			a.VPACKSSDW(upper, x, x)
			switch codes {
			case "S16":
				a.VMOVDQU(x, at(to, 0))
			case "S8":
				a.VPACKSSWB(x, x, x)
				a.VMOVQ(x, at(to, 0))
			default:
				a.VPACKUSWB(x, x, x)
				a.VMOVQ(x, at(to, 0))
			}
		case codes != "S16" && mask != nil:
			a.VPMOVDB(r, mask, at(to, 0))
		case codes != "S16":
			a.VPMOVDB(r, at(to, 0))
		default:
			a.storeWords(r, mask, at(to, 0))
		}
		a.ADDQ(byA, pa)
		a.ADDQ(byB, pb)
	}
	if w.masks {
		a.masked("codes", left, values, body, step{to, size})
	} else {
		a.SHRQ(operand.U8(3), left)
		a.loop(left, 1, func() { body(nil) }, step{to, size})
	}
	a.LEAQ(operand.Mem{Base: dst, Index: n, Scale: uint8(size / values)}, dst)
	a.ADDQ(a.argument("stepA"), rowA)
	a.ADDQ(a.argument("stepB"), rowB)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// scaledProduct writes [asm.pair] for products that a multiplication in float32 scales: 16 codes at
// a time, then 8. The bias goes away from zero.
func (a *asm) scaledProduct(codes string) {
	a.function("pairscaled"+codes+"AVX2", "func(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)")
	dst := a.Load(a.Param("dst"), a.GP64())
	rowA := a.Load(a.Param("a"), a.GP64())
	rowB := a.Load(a.Param("b"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	q := a.Load(a.Param("q"), a.GP64())
	spread := func(broadcast func(...operand.Op), i int) reg.VecVirtual {
		v := a.YMM()
		broadcast(at(q, 4*i), v)
		return v
	}
	words := func(ops ...operand.Op) { a.VPBROADCASTW(ops[0], ops[1]) }
	bytes := func(ops ...operand.Op) { a.VPBROADCASTB(ops[0], ops[1]) }
	floats := func(ops ...operand.Op) { a.VBROADCASTSS(ops[0], ops[1]) }
	zeroA, zeroB, zero := spread(words, pairZeroA), spread(words, pairZeroB), spread(words, pairZero)
	lo, hi := spread(bytes, pairLo), spread(bytes, pairHi)
	scale, bias, sign := spread(floats, pairScale), spread(floats, pairBias), a.YMM()
	a.VPCMPEQD(sign, sign, sign)
	a.VPSLLD(operand.U8(31), sign, sign)
	widen, pack, top, bottom := a.VPMOVZXBW, a.VPACKUSWB, a.VPMINUB, a.VPMAXUB
	if codes == "S8" {
		widen, pack, top, bottom = a.VPMOVSXBW, a.VPACKSSWB, a.VPMINSB, a.VPMAXSB
	}
	pa, pb, byA, byB, left, to := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.Label("row")
	a.MOVQ(n, left)
	a.MOVQ(dst, to)
	a.MOVQ(rowA, pa)
	a.MOVQ(rowB, pb)
	a.MOVQ(operand.U32(16), byA)
	a.MOVQ(byA, byB)
	a.standing(1, rowA, pa, byA, false)
	a.standing(2, rowB, pb, byB, false)
	some := func(size int) {
		of := func(v reg.Register) reg.Register {
			if size == 8 {
				return v.(reg.Vec).AsX()
			}
			return v
		}
		u, v, low, high := of(a.YMM()), of(a.YMM()), of(a.YMM()), of(a.YMM())
		widen(at(pa, 0), u)
		widen(at(pb, 0), v)
		a.VPSUBW(of(zeroA), u, u)
		a.VPSUBW(of(zeroB), v, v)
		a.VPMULLW(v, u, low)
		a.VPMULHW(v, u, high)
		a.VPUNPCKLWD(high, low, u)
		a.VPUNPCKHWD(high, low, v)
		for _, x := range []reg.Register{u, v} {
			b := of(a.YMM())
			a.VCVTDQ2PS(x, x)
			a.VANDPS(of(sign), x, b)
			a.VORPS(of(bias), b, b)
			a.VFMADD213PS(b, of(scale), x)
			a.VCVTPS2DQ(x, x)
		}
		a.VPACKSSDW(v, u, u)
		a.VPADDSW(of(zero), u, u)
		x, upper := u.(reg.Vec).AsX(), a.XMM()
		if size == 16 {
			a.VEXTRACTI128(operand.U8(1), u, upper)
			pack(upper, x, x)
		} else {
			pack(x, x, x)
		}
		bottom(lo.AsX(), x, x)
		top(hi.AsX(), x, x)
		if size == 16 {
			a.VMOVDQU(x, at(to, 0))
		} else {
			a.VMOVQ(x, at(to, 0))
		}
	}
	a.Label("sixteen")
	a.SUBQ(operand.U8(16), left)
	a.JLT(operand.LabelRef("eight"))
	some(16)
	a.ADDQ(byA, pa)
	a.ADDQ(byB, pb)
	a.ADDQ(operand.U8(16), to)
	a.JMP(operand.LabelRef("sixteen"))
	a.Label("eight")
	a.CMPQ(left, operand.I8(-8))
	a.JLT(operand.LabelRef("next"))
	some(8)
	a.Label("next")
	a.ADDQ(n, dst)
	a.ADDQ(a.argument("stepA"), rowA)
	a.ADDQ(a.argument("stepB"), rowB)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}

// standing has a row that is one code, as the argument single says, read from a place with 16 of
// them, again and again.
func (a *asm) standing(which int, row, p, by reg.Register, words bool) {
	name := label("moves%d", which)
	a.CMPQ(a.argument("single"), operand.U8(uint8(which)))
	a.JNE(operand.LabelRef(name))
	room, codes := a.AllocLocal(32), a.YMM()
	if words {
		a.VPBROADCASTW(at(row, 0), codes)
	} else {
		a.VPBROADCASTB(at(row, 0), codes)
	}
	a.VMOVUPS(codes, room)
	a.LEAQ(room, p)
	a.XORQ(by, by)
	a.Label(name)
}

// argument is where an argument lies.
func (a *asm) argument(name string) operand.Mem {
	p, err := a.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}
