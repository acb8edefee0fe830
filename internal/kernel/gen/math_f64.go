package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// doubles writes functions of float32 that are computed in float64: they end within little more
// than half a unit in the last place.
func doubles(a *asm) {
	a.expDoubles()
	table := a.StaticGlobal("doubleNumbers")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	places := map[uint64]int{}
	for _, w := range []width{ymm, zmm} {
		d := &double{asm: a, w: w, data: table, places: places}
		for _, f := range []struct {
			name string
			f    func(x reg.VecVirtual) reg.VecVirtual
		}{
			{"tan", d.tan},
			{"asin", d.asin},
			{"acos", d.acos},
			{"atan", d.atan},
			{"sinh", d.sinh},
			{"cosh", d.cosh},
			{"asinh", d.asinh},
			{"acosh", d.acosh},
			{"atanh", d.atanh},
		} {
			d.each(f.name, f.f)
		}
		d.powers()
		if w.masks {
			d.curves()
		}
	}
}

// double computes with four or eight float64.
type double struct {
	*asm
	w      width
	data   operand.Mem
	table  reg.Register // points to data
	places map[uint64]int
}

// each takes a multiple of 8 values, or with masks any number.
func (d *double) each(name string, f func(x reg.VecVirtual) reg.VecVirtual) {
	d.function(name+d.w.set, "func(dst, src *float32, n int, t *SingleTable)")
	dst, src, n := d.Load(d.Param("dst"), d.GP64()), d.Load(d.Param("src"), d.GP64()), d.Load(d.Param("n"), d.GP64())
	d.table = d.GP64()
	d.LEAQ(d.data, d.table)
	d.walk(n, func(mask reg.Register) {
		d.store(f(d.load(src, mask)), dst, mask)
	}, src, dst)
}

// walk runs body for n values.
func (d *double) walk(n reg.Register, body func(mask reg.Register), pointers ...reg.Register) {
	half := d.w.bytes() / 2
	var steps []step
	for _, p := range pointers {
		steps = append(steps, step{p, half})
	}
	if d.w.masks {
		d.masked("values", n, 8, body, steps...)
	} else {
		d.loop(n, 4, func() { body(nil) }, steps...)
	}
	d.VZEROUPPER()
	d.RET()
}

func (d *double) load(p, mask reg.Register) reg.VecVirtual {
	x, v := d.YMM(), d.vec(d.w)
	switch {
	case !d.w.masks:
		d.VCVTPS2PD(at(p, 0), v)
	case mask != nil:
		d.VMOVUPS_Z(at(p, 0), mask, x)
		d.VCVTPS2PD(x, v)
	default:
		d.VCVTPS2PD(at(p, 0), v)
	}
	return v
}

func (d *double) store(v reg.VecVirtual, p, mask reg.Register) {
	if !d.w.masks {
		x := d.XMM()
		d.VCVTPD2PSY(v, x)
		d.VMOVUPS(x, at(p, 0))
		return
	}
	x := d.YMM()
	d.VCVTPD2PS(v, x)
	d.storeFloats(x, mask, at(p, 0))
}

// num is a number in all lanes.
func (d *double) num(v float64) reg.VecVirtual { return d.bits(math.Float64bits(v)) }

func (d *double) bits(v uint64) reg.VecVirtual {
	place, ok := d.places[v]
	if !ok {
		place = 8 * len(d.places)
		d.places[v] = place
		d.AddDatum(place, operand.U64(v))
	}
	x := d.vec(d.w)
	d.VBROADCASTSD(at(d.table, place), x)
	return x
}

func (d *double) two(op func(...operand.Op), x, y reg.Register) reg.VecVirtual {
	r := d.vec(d.w)
	op(y, x, r)
	return r
}

func (d *double) add(x, y reg.Register) reg.VecVirtual { return d.two(d.VADDPD, x, y) }
func (d *double) sub(x, y reg.Register) reg.VecVirtual { return d.two(d.VSUBPD, x, y) }
func (d *double) mul(x, y reg.Register) reg.VecVirtual { return d.two(d.VMULPD, x, y) }
func (d *double) div(x, y reg.Register) reg.VecVirtual { return d.two(d.VDIVPD, x, y) }
func (d *double) and(x, y reg.Register) reg.VecVirtual { return d.two(d.VANDPD, x, y) }
func (d *double) or(x, y reg.Register) reg.VecVirtual  { return d.two(d.VORPD, x, y) }
func (d *double) xor(x, y reg.Register) reg.VecVirtual { return d.two(d.VXORPD, x, y) }

func (d *double) root(x reg.Register) reg.VecVirtual {
	r := d.vec(d.w)
	d.VSQRTPD(x, r)
	return r
}

// magnitude is x without its sign, and the sign.
func (d *double) magnitude(x reg.Register) (size, sign reg.VecVirtual) {
	return d.and(x, d.bits(1<<63-1)), d.and(x, d.bits(1<<63))
}

// bounded is x, at least -most and at most most; NaN passes.
func (d *double) bounded(x reg.Register, most float64) reg.VecVirtual {
	r := d.vec(d.w)
	d.VMINPD(x, d.num(most), r)
	d.VMAXPD(r, d.num(-most), r)
	return r
}

// whole is the integer next to x.
func (d *double) whole(x reg.Register) reg.VecVirtual {
	r := d.vec(d.w)
	if d.w.masks {
		d.VRNDSCALEPD(operand.U8(8), x, r)
	} else {
		d.VROUNDPD(operand.U8(8), x, r)
	}
	return r
}

// horner is a polynomial, the coefficient of the highest power first.
func (d *double) horner(x reg.Register, c ...float64) reg.VecVirtual {
	p := d.num(c[0])
	for _, v := range c[1:] {
		d.VFMADD213PD(d.num(v), x, p)
	}
	return p
}

// Predicates of comparisons.
const (
	isEqual     = 0
	isLess      = 17
	isLessEqual = 18
	isGreater   = 30
)

// choose is yes where a relation holds of x and y, and no elsewhere.
func (d *double) choose(predicate uint8, x, y, yes, no reg.Register) reg.VecVirtual {
	r := d.vec(d.w)
	if d.w.masks {
		d.VCMPPD(operand.U8(predicate), y, x, reg.K2)
		d.VBLENDMPD(yes, no, reg.K2, r)
		return r
	}
	m := d.YMM()
	d.VCMPPD(operand.U8(predicate), y, x, m)
	d.VBLENDVPD(m, yes, no, r)
	return r
}

// exp is e^x, of x up to 700 either way, and of others what lies beyond float32.
func (d *double) exp(x reg.Register) reg.VecVirtual {
	x = d.bounded(x, 700)
	shift, k, n, r := d.num(3<<51), d.vec(d.w), d.vec(d.w), d.vec(d.w)
	d.VMOVAPD(x, k)
	d.VFMADD213PD(shift, d.num(math.Log2E), k)
	d.VSUBPD(shift, k, n)
	d.VMOVAPD(x, r)
	d.VFNMADD231PD(d.num(math.Ln2), n, r)
	p := d.horner(r, 0.000199076160325976, 0.001394862189367264, 0.008333283469392116, 0.04166621766524859, 0.16666666786552636, 0.5000000107964733, 0.9999999999954978, 0.999999999959444)
	d.VPSLLQ(operand.U8(52), k, k)
	d.VPADDQ(k, p, p)
	return p
}

// log is the natural logarithm of x from zero on; of what is less it is none.
func (d *double) log(x reg.VecVirtual) reg.VecVirtual {
	middle := math.Float64bits(math.Sqrt2/2) - 1023<<52 // which wraps
	t, e, m := d.vec(d.w), d.vec(d.w), d.vec(d.w)
	d.VPSUBQ(d.bits(middle), x, t)
	d.VPSRLQ(operand.U8(52), t, e)
	d.VPSUBQ(d.and(t, d.bits(0xfff<<52)), x, m)
	d.VPADDQ(d.num(1), m, m)
	power := d.sub(d.or(e, d.num(1<<52)), d.num(1<<52+1023))
	one := d.num(1)
	s := d.div(d.sub(m, one), d.add(m, one))
	p := d.horner(d.mul(s, s), 0.11809720358960593, 0.14267446184741472, 0.20000193585825776, 0.3333333261762722, 1.0000000000042246)
	r := d.mul(p, d.add(s, s))
	d.VFMADD231PD(d.num(math.Ln2), power, r)
	zero, inf := d.sub(one, one), d.num(math.Inf(1))
	r = d.choose(isLess, x, inf, r, x)
	r = d.choose(isEqual, x, zero, d.num(math.Inf(-1)), r)
	return d.choose(isLess, x, zero, d.num(math.NaN()), r)
}

// odd is x·(1 + s·P(s)) of s = x², for functions that change their sign with x.
func (d *double) odd(x reg.Register, c ...float64) reg.VecVirtual {
	return d.mul(x, d.horner(d.mul(x, x), c...))
}

func (d *double) atan(x reg.VecVirtual) reg.VecVirtual {
	size, sign := d.magnitude(x)
	one := d.num(1)
	p := d.odd(d.choose(isGreater, size, one, d.div(one, size), size),
		0.001057607174681669, -0.007030668149871582, 0.02191294303867669, -0.043928407362148966, 0.06685281272740956, -0.08785043170557441,
		0.11050771244156139, -0.14278576019471825, 0.19999558099881345, -0.33333322488892886, 0.999999999553536)
	return d.or(d.choose(isGreater, size, one, d.sub(d.num(math.Pi/2), p), p), sign)
}

// arc is the arc of a sine: of |x| up to a half that of |x|, beyond half the rest to a right
// angle; and |x|, and the sign of x.
func (d *double) arc(x reg.VecVirtual) (p, size, sign reg.VecVirtual) {
	size, sign = d.magnitude(x)
	half := d.num(0.5)
	rest := d.mul(d.sub(d.num(1), size), half)
	t := d.choose(isGreater, size, half, d.root(rest), size)
	return d.odd(t, 0.037677139309900146, 0.014295255316288355, 0.031857189096626805, 0.044508709472211194, 0.07500571381184176, 0.16666657639572235, 1.0000000002307785), size, sign
}

func (d *double) asin(x reg.VecVirtual) reg.VecVirtual {
	p, size, sign := d.arc(x)
	return d.or(d.choose(isGreater, size, d.num(0.5), d.sub(d.num(math.Pi/2), d.add(p, p)), p), sign)
}

func (d *double) acos(x reg.VecVirtual) reg.VecVirtual {
	p, size, sign := d.arc(x)
	twice := d.add(p, p)
	far := d.choose(isLess, x, d.num(0), d.sub(d.num(math.Pi), twice), twice)
	return d.choose(isGreater, size, d.num(0.5), far, d.sub(d.num(math.Pi/2), d.xor(p, sign)))
}

// tan is the tangent of numbers up to 2^30, see waves.
func (d *double) tan(x reg.VecVirtual) reg.VecVirtual {
	shift, q, k, r := d.num(3<<51), d.vec(d.w), d.vec(d.w), d.vec(d.w)
	d.VADDPD(shift, d.mul(x, d.num(2/math.Pi)), q)
	d.VSUBPD(shift, q, k)
	d.VMOVAPD(x, r)
	d.VFNMADD231PD(d.num(math.Pi/2), k, r)
	d.VFNMADD231PD(d.num(6.123233995736766e-17), k, r)
	sine := d.odd(r, 1./362880, -1./5040, 1./120, -1./6, 1)
	cosine := d.horner(d.mul(r, r), -1./3628800, 1./40320, -1./720, 1./24, -1./2, 1)
	odd := d.vec(d.w)
	d.VPSLLQ(operand.U8(63), q, odd) // the sign is that of odd quarters
	zero := d.num(0)
	turned := d.bits(1)
	turned = d.and(q, turned)
	d.VPSLLQ(operand.U8(62), turned, turned) // 2 for odd quarters, as a number
	top := d.choose(isEqual, turned, zero, sine, cosine)
	under := d.choose(isEqual, turned, zero, cosine, sine)
	r = d.xor(d.div(top, under), odd)
	return d.choose(isEqual, x, zero, x, r)
}

func (d *double) sinh(x reg.VecVirtual) reg.VecVirtual {
	size, _ := d.magnitude(x)
	e := d.exp(x)
	far := d.mul(d.sub(e, d.div(d.num(1), e)), d.num(0.5))
	near := d.odd(x, 1./39916800, 1./362880, 1./5040, 1./120, 1./6, 1)
	return d.choose(isLess, size, d.num(1), near, far)
}

func (d *double) cosh(x reg.VecVirtual) reg.VecVirtual {
	e := d.exp(x)
	return d.mul(d.add(e, d.div(d.num(1), e)), d.num(0.5))
}

func (d *double) asinh(x reg.VecVirtual) reg.VecVirtual {
	size, sign := d.magnitude(x)
	far := d.log(d.add(size, d.root(d.add(d.mul(size, size), d.num(1)))))
	return d.choose(isLess, size, d.num(1e-3), d.odd(x, 3./40, -1./6, 1), d.or(far, sign))
}

func (d *double) acosh(x reg.VecVirtual) reg.VecVirtual {
	r := d.log(d.add(x, d.root(d.sub(d.mul(x, x), d.num(1)))))
	return d.choose(isLess, x, d.num(1), d.num(math.NaN()), r)
}

func (d *double) atanh(x reg.VecVirtual) reg.VecVirtual {
	size, sign := d.magnitude(x)
	one := d.num(1)
	far := d.mul(d.log(d.div(d.add(one, size), d.sub(one, size))), d.num(0.5))
	return d.choose(isLess, size, d.num(1e-2), d.odd(x, 1./7, 1./5, 1./3, 1), d.or(far, sign))
}

// powers writes a^b with the special cases of C.
func (d *double) powers() {
	d.function("powers"+d.w.set, "func(dst, a, b *float32, n int)")
	dst, pa, pb, n := d.Load(d.Param("dst"), d.GP64()), d.Load(d.Param("a"), d.GP64()), d.Load(d.Param("b"), d.GP64()), d.Load(d.Param("n"), d.GP64())
	d.table = d.GP64()
	d.LEAQ(d.data, d.table)
	d.walk(n, func(mask reg.Register) {
		x, y := d.load(pa, mask), d.load(pb, mask)
		size, sign := d.magnitude(x)
		// Of an infinite exponent a large one is enough, and has a product with the logarithm of 1.
		r := d.exp(d.mul(d.bounded(y, 1e300), d.log(size)))
		d.store(d.signed(x, y, r, sign), dst, mask)
	}, dst, pa, pb)
}

// signed is the power of x by y, whose size without the sign of x is r, with the special cases of
// C.
func (d *double) signed(x, y, r, sign reg.Register) reg.VecVirtual {
	half := d.mul(y, d.num(0.5))
	minus, none, zero, one := d.xor(r, sign), d.num(math.NaN()), d.num(0), d.num(1)
	whole := d.choose(isEqual, d.whole(half), half, r, minus)
	parts := d.choose(isLess, x, zero, d.choose(isGreater, x, d.num(math.Inf(-1)), none, r), r)
	p := d.choose(isEqual, d.whole(y), y, whole, parts)
	p = d.choose(isEqual, y, zero, one, p)
	return d.choose(isEqual, x, one, one, p)
}
