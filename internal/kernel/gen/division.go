package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quotients writes divisions of numbers and what they leave, by way of floating-point quotients:
// of dividends of less bits than a quotient has, the whole part of a rounded quotient is the
// exact one.
func quotients(a *asm) {
	for _, k := range []string{"I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"} {
		for _, o := range []string{"quotient", "restFloor", "restTrunc"} {
			if k[0] == 'U' && o == "restFloor" { // both are alike
				continue
			}
			(&quotient{asm: a, kind: k, op: o}).integers()
		}
	}
	a.remainders("F32")
	a.remainders("F64")
}

// quotient is a loop over integers of a kind.
type quotient struct {
	*asm
	kind, op string
}

func (q *quotient) signed() bool { return q.kind[0] == 'I' }
func (q *quotient) bits() (n int) {
	_, _ = fmt.Sscanf(q.kind[1:], "%d", &n)
	return n
}

// pick is the instruction for numbers with a sign or without.
func (q *quotient) pick(signed, unsigned func(...operand.Op)) func(...operand.Op) {
	if q.signed() {
		return signed
	}
	return unsigned
}

// load loads integers, or those of a mask and zeros: of up to 16 bits 16 of them, as 32 bits,
// else eight.
func (q *quotient) load(m operand.Mem, mask reg.Register) reg.VecVirtual {
	v := q.ZMM()
	if q.bits() == 32 {
		v = q.YMM()
	}
	switch b := q.bits(); {
	case b == 8:
		q.widenBytes(m, mask, q.signed(), v)
	case b == 16 && mask != nil:
		if q.signed() {
			q.VPMOVSXWD_Z(m, mask, v)
		} else {
			q.VPMOVZXWD_Z(m, mask, v)
		}
	case b == 16:
		q.pick(q.VPMOVSXWD, q.VPMOVZXWD)(m, v)
	case b == 32:
		q.loadFloats(m, mask, v)
	case mask != nil:
		q.VMOVDQU64_Z(m, mask, v)
	default:
		q.VMOVDQU64(m, v)
	}
	return v
}

// store stores integers, or those of a mask.
func (q *quotient) store(v, mask reg.Register, m operand.Mem) {
	store := map[int]func(...operand.Op){8: q.VPMOVDB, 16: q.VPMOVDW, 32: q.VMOVUPS, 64: q.VMOVUPD}[q.bits()]
	if mask != nil {
		store(v, mask, m)
	} else {
		store(v, m)
	}
}

// integers takes any number of elements, and returns how many it has computed: it ends before
// eight 64-bit values of which a dividend takes more than 53.
func (q *quotient) integers() {
	q.function(q.op+q.kind+"AVX512", "func(dst, a, b *byte, n int) int")
	dst, pa, pb, n := q.operandsOf()
	bits, each := q.bits(), 8
	long := bits == 64
	if bits < 32 {
		each = 16
	}
	var most reg.VecVirtual
	if long {
		g := q.GP64()
		most = q.ZMM()
		q.MOVQ(operand.U64(1<<53), g)
		q.VPBROADCASTQ(g, most)
	}
	all := q.GP64()
	q.MOVQ(n, all)
	by := each * bits / 8
	q.masked("elements", n, each, func(mask reg.Register) {
		x, y := q.load(at(pa, 0), mask), q.load(at(pb, 0), mask)
		if long {
			size := x
			if q.signed() {
				size = q.ZMM()
				q.VPABSQ(x, size)
			}
			q.VPCMPUQ(operand.U8(5), most, size, reg.K2)
			q.KORTESTB(reg.K2, reg.K2)
			q.JNZ(operand.LabelRef(map[bool]string{false: "stop", true: "stop_few"}[mask != nil]))
			q.VPTESTMQ(y, y, reg.K2)
		} else {
			q.VPTESTMD(y, y, reg.K2)
		}
		w := q.whole(x, y)
		if q.op == "quotient" {
			if long {
				q.VMOVDQA64_Z(w, reg.K2, w)
			} else {
				q.VMOVDQA32_Z(w, reg.K2, w)
			}
			q.store(w, mask, at(dst, 0))
			return
		}
		if long {
			q.VPMULLQ(y, w, w)
			q.VPSUBQ_Z(w, x, reg.K2, x)
		} else {
			q.VPMULLD(y, w, w)
			q.VPSUBD_Z(w, x, reg.K2, x)
		}
		if q.op == "restFloor" { // what has not the divisor's sign
			q.VPXORD(x, y, w)
			if long {
				q.VPTESTMQ(x, x, reg.K2)
				q.VPMOVQ2M(w, reg.K3)
				q.KANDB(reg.K2, reg.K3, reg.K2)
				q.VPADDQ(y, x, reg.K2, x)
			} else {
				q.VPTESTMD(x, x, reg.K2)
				q.VPMOVD2M(w, reg.K3)
				q.KANDW(reg.K2, reg.K3, reg.K2)
				q.VPADDD(y, x, reg.K2, x)
			}
		}
		q.store(x, mask, at(dst, 0))
	}, step{pa, by}, step{pb, by}, step{dst, by})
	q.VZEROUPPER()
	q.Store(all, q.ReturnIndex(0))
	q.RET()
	if long {
		q.stopped(all, n, each)
	}
}

// stopped returns how many elements there were before those at which a loop ends early.
func (a *asm) stopped(all, n reg.Register, each int) {
	a.Label("stop")
	a.ADDQ(operand.U8(uint8(each)), n)
	a.Label("stop_few")
	a.SUBQ(n, all)
	a.VZEROUPPER()
	a.Store(all, a.ReturnIndex(0))
	a.RET()
}

// whole is the quotient of x and y without its fraction; of y of zero anything.
func (q *quotient) whole(x, y reg.VecVirtual) reg.VecVirtual {
	u, v := q.ZMM(), q.ZMM()
	switch bits := q.bits(); {
	case bits < 32:
		q.VCVTDQ2PS(x, u)
		q.VCVTDQ2PS(y, v)
		q.VDIVPS(v, u, u)
		q.VCVTTPS2DQ(u, u)
		return u
	case bits == 32:
		f := q.pick(q.VCVTDQ2PD, q.VCVTUDQ2PD)
		f(x, u)
		f(y, v)
		q.VDIVPD(v, u, u)
		w := q.YMM()
		q.pick(q.VCVTTPD2DQ, q.VCVTTPD2UDQ)(u, w)
		return w
	}
	f := q.pick(q.VCVTQQ2PD, q.VCVTUQQ2PD)
	f(x, u)
	f(y, v)
	q.VDIVPD(v, u, u)
	q.pick(q.VCVTTPD2QQ, q.VCVTTPD2UQQ)(u, u)
	return u
}

// remainders writes what truncated quotients leave, with the dividend's sign. It returns how many
// it has computed: it ends before eight of which one divisor is zero, infinite or no number, or
// so small that the quotient is 2^52 or more. The rest of a smaller quotient is exact with one
// rounding, if the whole part of the quotient is not one too large, which the sign tells.
func (a *asm) remainders(kind string) {
	a.function("remainders"+kind+"AVX512", "func(dst, a, b *byte, n int) int")
	dst, pa, pb, n := a.operandsOf()
	number := func(v uint64) reg.VecVirtual {
		g, x := a.GP64(), a.ZMM()
		a.MOVQ(operand.U64(v), g)
		a.VPBROADCASTQ(g, x)
		return x
	}
	sign, most, inf, zero := number(1<<63), number(math.Float64bits(1<<52)), number(math.Float64bits(math.Inf(1))), a.ZMM()
	a.VPXORD(zero, zero, zero)
	all := a.GP64()
	a.MOVQ(n, all)
	by := 64
	load := func(p, mask reg.Register) reg.VecVirtual {
		x := a.ZMM()
		switch {
		case kind == "F32":
			a.loadFloats(at(p, 0), mask, x.AsY())
			a.VCVTPS2PD(x.AsY(), x)
		case mask != nil:
			a.VMOVUPD_Z(at(p, 0), mask, x)
		default:
			a.VMOVUPD(at(p, 0), x)
		}
		return x
	}
	if kind == "F32" {
		by = 32
	}
	a.masked("elements", n, 8, func(mask reg.Register) {
		u, v := load(pa, mask), load(pb, mask)
		w, limit, q, s := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		a.VANDNPD(v, sign, v)
		a.VANDNPD(u, sign, w)
		a.VANDPD(u, sign, s)
		a.VMULPD(most, v, limit)
		// Ordered predicates: of no number none holds.
		a.VCMPPD(operand.U8(isLess), limit, w, reg.K2)
		a.VCMPPD(operand.U8(isLess), inf, v, reg.K3)
		a.KANDB(reg.K2, reg.K3, reg.K2)
		if mask == nil {
			a.KORTESTB(reg.K2, reg.K2)
			a.JCC(operand.LabelRef("stop"))
		} else {
			// Lanes outside the mask have no divisor.
			a.KANDNB(mask, reg.K2, reg.K2)
			a.KORTESTB(reg.K2, reg.K2)
			a.JNZ(operand.LabelRef("stop_few"))
		}
		a.VDIVPD(v, w, q)
		a.VRNDSCALEPD(operand.U8(11), q, q)
		a.VFNMADD231PD(v, q, w)
		a.VCMPPD(operand.U8(isLess), zero, w, reg.K2)
		a.VADDPD(v, w, reg.K2, w)
		a.VANDNPD(w, sign, w)
		a.VORPD(s, w, w)
		m := at(dst, 0)
		switch {
		case kind == "F32":
			a.VCVTPD2PS(w, w.AsY())
			a.storeFloats(w.AsY(), mask, m)
		case mask != nil:
			a.VMOVUPD(w, mask, m)
		default:
			a.VMOVUPD(w, m)
		}
	}, step{pa, by}, step{pb, by}, step{dst, by})
	a.VZEROUPPER()
	a.Store(all, a.ReturnIndex(0))
	a.RET()
	a.stopped(all, n, 8)
}
