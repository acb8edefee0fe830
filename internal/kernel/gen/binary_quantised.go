package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs writes loops over two operands of codes of 8 or 16 bits in the fixed-point arithmetic of
// TFLite; see simd.Pair for the numbers that they take. They take rows of n codes, whose results
// lie side by side: those of the operands lie stepA and stepB bytes apart, and of the operand
// that is single (1 for a, 2 for b) they have one code.
func pairs(a *asm) {
	for _, codes := range []string{"U8", "S8", "S16"} {
		for _, kind := range []string{"sum", "difference", "reverse", "product"} {
			a.pair(kind, codes)
		}
	}
	for _, codes := range []string{"U8", "S8"} {
		a.pair("prelu", codes)
		a.pair("square", codes)
	}
	a.pair("square", "S16")
	a.pair("leaky", "S16")
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
)

// scaler multiplies 32-bit numbers as requantiseRows does; the sign counts where it is asked for,
// which it is not for a shift by nothing.
type scaler struct {
	a                               *asm
	twice, odds, down, half, negate reg.VecVirtual
	round                           reg.VecVirtual
	evens                           reg.OpmaskPhysical
}

func (a *asm) scaler(field func(i int) reg.VecVirtual, first int, round reg.VecVirtual) *scaler {
	s := &scaler{a: a, twice: field(first), odds: a.ZMM(), down: field(first + 1), half: field(first + 2), negate: field(first + 3), round: round, evens: reg.K2}
	a.VPSRLQ(operand.U8(32), s.twice, s.odds)
	return s
}

func (s *scaler) apply(v reg.VecVirtual) reg.VecVirtual {
	a := s.a
	even, odd := a.ZMM(), a.ZMM()
	a.VPMULDQ(s.twice, v, even)
	a.VMOVSHDUP(v, odd)
	a.VPMULDQ(s.odds, odd, odd)
	a.VPADDQ(s.round, even, even)
	a.VPADDQ(s.round, odd, odd)
	a.VMOVSHDUP(even, s.evens, odd)
	a.VPADDD(v, odd, odd)
	a.VPADDD(s.half, odd, odd)
	a.VPSRAD(operand.U8(31), v, v)
	a.VPANDD(s.negate, v, v)
	a.VPADDD(v, odd, odd)
	a.VPSRAVD(s.down, odd, odd)
	return odd
}

func (a *asm) pair(kind, codes string) {
	element := "byte"
	if codes == "S16" {
		element = "int16"
	}
	a.function("pair"+kind+codes+"AVX512", "func(dst, a, b *"+element+", rows, n, stepA, stepB, single int, q *Pair)")
	dst := a.Load(a.Param("dst"), a.GP64())
	rowA := a.Load(a.Param("a"), a.GP64())
	rowB := a.Load(a.Param("b"), a.GP64())
	rows := a.Load(a.Param("rows"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	q := a.Load(a.Param("q"), a.GP64())
	field := func(i int) reg.VecVirtual {
		v := a.ZMM()
		a.VPBROADCASTD(at(q, 4*i), v)
		return v
	}
	round := a.ZMM()
	c, x := a.GP64(), a.XMM()
	a.MOVQ(operand.U64(1<<31), c)
	a.VMOVQ(c, x)
	a.VPBROADCASTQ(x, round)
	a.MOVL(operand.U32(0x5555), c.As32())
	a.KMOVW(c.As32(), reg.K2)
	zeroA, zeroB := field(pairZeroA), field(pairZeroB)
	zero, lo, hi := field(pairZero), field(pairLo), field(pairHi)
	last := a.scaler(field, pairTwice, round)
	var second *scaler
	var shift, one, minus reg.VecVirtual
	if kind != "product" {
		second = a.scaler(field, pairTwiceB, round)
		shift, one, minus = field(pairShift), a.ZMM(), a.ZMM()
		a.VPTERNLOGD(operand.U8(0xff), minus, minus, minus)
		a.VPADDD(minus, shift, one) // one less
	}
	size := 16
	if codes == "S16" {
		size = 32
	}
	load := func(p, mask, x reg.Register) {
		if codes == "S16" {
			a.loadWords(at(p, 0), mask, x)
		} else {
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
	a.masked("codes", left, 16, func(mask reg.Register) {
		u, v := a.ZMM(), a.ZMM()
		load(pa, mask, u)
		a.VPSUBD(zeroA, u, u)
		if kind != "leaky" {
			load(pb, mask, v)
			a.VPSUBD(zeroB, v, v)
		}
		var positive reg.VecVirtual
		switch kind {
		case "product":
			a.VPMULLD(v, u, u)
		case "prelu", "leaky":
			a.VPMOVD2M(u, reg.K3)
			w := a.ZMM()
			a.VPSLLVD(shift, u, w)
			positive = second.apply(w)
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
			w := second.apply(v)
			switch kind {
			case "sum":
				a.VPADDD(w, u, u)
			case "difference":
				a.VPSUBD(w, u, u)
			case "square":
				a.VPSUBD(w, u, u)
				a.VPMULLD(u, u, u)
			default:
				a.VPSUBD(u, w, u)
			}
		}
		r := last.apply(u)
		if positive != nil {
			a.VMOVDQA32(r, reg.K3, positive)
			r = positive
		}
		a.VPADDD(zero, r, r)
		a.VPMAXSD(lo, r, r)
		a.VPMINSD(hi, r, r)
		switch {
		case codes != "S16" && mask != nil:
			a.VPMOVDB(r, mask, at(to, 0))
		case codes != "S16":
			a.VPMOVDB(r, at(to, 0))
		default:
			a.storeWords(r, mask, at(to, 0))
		}
		a.ADDQ(byA, pa)
		a.ADDQ(byB, pb)
	}, step{to, size})
	a.LEAQ(operand.Mem{Base: dst, Index: n, Scale: uint8(size / 16)}, dst)
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
