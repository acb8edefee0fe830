package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// curves writes functions of float64, in AVX-512, that end within two units in the last place or
// so.
func (d *double) curves() {
	d.onDoubles("sigmoidDoubles", func(x reg.VecVirtual) reg.VecVirtual {
		one := d.num(1)
		return d.div(one, d.add(one, d.fullExp(d.sub(d.num(0), x), nil)))
	})
	d.onDoubles("tanhDoubles", d.fullTanh)
	d.onDoubles("logDoubles", d.fullLog)
	d.fullWave("sinDoubles", false)
	d.fullWave("cosDoubles", true)
	d.fullPowers()
}

// onDoubles takes any number of values.
func (d *double) onDoubles(name string, f func(x reg.VecVirtual) reg.VecVirtual) {
	d.function(name+d.w.set, "func(dst, src *float64, n int)")
	dst, src, n := d.Load(d.Param("dst"), d.GP64()), d.Load(d.Param("src"), d.GP64()), d.Load(d.Param("n"), d.GP64())
	d.table = d.GP64()
	d.LEAQ(d.data, d.table)
	d.masked("values", n, 8, func(mask reg.Register) {
		d.put(f(d.get(src, mask)), dst, mask)
	}, step{src, 64}, step{dst, 64})
	d.VZEROUPPER()
	d.RET()
}

func (d *double) get(p, mask reg.Register) reg.VecVirtual {
	x := d.ZMM()
	if mask != nil {
		d.VMOVUPD_Z(at(p, 0), mask, x)
	} else {
		d.VMOVUPD(at(p, 0), x)
	}
	return x
}

func (d *double) put(x reg.VecVirtual, p, mask reg.Register) {
	if mask != nil {
		d.VMOVUPD(x, mask, at(p, 0))
	} else {
		d.VMOVUPD(x, at(p, 0))
	}
}

// fused is x·y+z, less where minus is set.
func (d *double) fused(x, y, z reg.Register, minus bool) reg.VecVirtual {
	r := d.ZMM()
	d.VMOVAPD(z, r)
	if minus {
		d.VFMSUB231PD(y, x, r)
	} else {
		d.VFMADD231PD(y, x, r)
	}
	return r
}

// expParts are p and n with e^(x+low) = (1+p)·2^n; low may be nil. See [asm.expDoubles] for the
// series.
func (d *double) expParts(x, low reg.Register) (p, n reg.VecVirtual) {
	r := d.ZMM()
	n = d.whole(d.mul(x, d.num(math.Log2E)))
	d.VMOVAPD(x, r)
	d.VFNMADD231PD(d.num(math.Ln2), n, r)
	d.VFNMADD231PD(d.num(ln2Rest), n, r)
	if low != nil {
		d.VADDPD(low, r, r)
	}
	return d.fused(d.mul(r, r), d.horner(r, expTerms()...), r, false), n
}

// fullExp is e^(x+low) of any x; low may be nil.
func (d *double) fullExp(x, low reg.Register) reg.VecVirtual {
	p, n := d.expParts(d.bounded(x, 1000), low)
	d.VADDPD(d.num(1), p, p)
	d.VSCALEFPD(n, p, p)
	return p
}

// fullTanh goes by e^2x-1, of which what is small is computed without the one.
func (d *double) fullTanh(x reg.VecVirtual) reg.VecVirtual {
	size, sign := d.magnitude(x)
	p, n := d.expParts(d.bounded(d.add(size, size), 44), nil)
	one, power := d.num(1), d.ZMM()
	d.VSCALEFPD(n, one, power)
	d.VSCALEFPD(n, p, p)
	less := d.add(p, d.sub(power, one))
	return d.or(d.div(less, d.add(less, d.num(2))), sign)
}

// mantissa is m and k with |x| = m·2^k, m between the square roots of a half and of two.
func (d *double) mantissa(x reg.Register) (m, k reg.VecVirtual) {
	m, k = d.ZMM(), d.ZMM()
	d.VGETMANTPD(operand.U8(4), x, m) // from 1 to 2, without the sign
	d.VGETEXPPD(x, k)
	d.VCMPPD(operand.U8(isGreater), d.num(math.Sqrt2), m, reg.K2)
	d.VMULPD(d.num(0.5), m, reg.K2, m)
	d.VADDPD(d.num(1), k, reg.K2, k)
	return m, k
}

// fullLog is that of FreeBSD's e_log.c, as the one of package math.
func (d *double) fullLog(x reg.VecVirtual) reg.VecVirtual {
	m, k := d.mantissa(x)
	f := d.sub(m, d.num(1))
	s := d.div(f, d.add(f, d.num(2)))
	square := d.mul(s, s)
	r := d.mul(square, d.horner(square, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
		2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01))
	half := d.mul(d.mul(f, f), d.num(0.5))
	low := d.fused(s, d.add(half, r), d.mul(k, d.num(1.90821492927058770002e-10)), false)
	r = d.sub(d.mul(k, d.num(6.93147180369123816490e-01)), d.sub(d.sub(half, low), f))
	zero := d.num(0)
	r = d.choose(isEqual, x, zero, d.num(math.Inf(-1)), r)
	return d.choose(isLess, x, zero, d.num(math.NaN()), r)
}

// fullWave writes sines or cosines, and returns for how many numbers: it stops at eight of which
// one is beyond 2^30. See waves for the quarters.
func (d *double) fullWave(name string, cosine bool) {
	d.function(name+d.w.set, "func(dst, src *float64, n int) (done int)")
	dst, src, n := d.Load(d.Param("dst"), d.GP64()), d.Load(d.Param("src"), d.GP64()), d.Load(d.Param("n"), d.GP64())
	first := d.GP64()
	d.MOVQ(src, first)
	d.table = d.GP64()
	d.LEAQ(d.data, d.table)
	d.masked("numbers", n, 8, func(mask reg.Register) {
		x := d.get(src, mask)
		size, _ := d.magnitude(x)
		d.VCMPPD(operand.U8(isGreater), d.num(1<<30), size, reg.K2)
		d.KORTESTW(reg.K2, reg.K2)
		d.JNE(operand.LabelRef("stop"))
		shift, q, k, r := d.num(3<<51), d.ZMM(), d.ZMM(), d.ZMM()
		d.VADDPD(shift, d.mul(x, d.num(2/math.Pi)), q)
		d.VSUBPD(shift, q, k)
		d.VMOVAPD(x, r)
		d.VFNMADD231PD(d.num(math.Pi/2), k, r)
		d.VFNMADD231PD(d.num(6.123233995736766e-17), k, r)
		if cosine {
			d.VPADDQ(d.bits(1), q, q)
		}
		// The coefficients are those of FreeBSD's k_sin.c and k_cos.c.
		s := d.mul(r, r)
		sine := d.fused(d.mul(r, s), d.horner(s, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
			-1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01), r, false)
		rest := d.horner(s, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
			2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02)
		half := d.mul(s, d.num(0.5))
		other := d.sub(d.num(1), d.sub(half, d.mul(d.mul(s, s), rest)))
		bit := d.ZMM()
		d.VPSLLQ(operand.U8(63), q, bit)
		d.VPMOVQ2M(bit, reg.K2)
		d.VMOVAPD(other, reg.K2, sine)
		d.VPSRLQ(operand.U8(1), q, bit)
		d.VPSLLQ(operand.U8(63), bit, bit)
		y := d.xor(bit, sine)
		if !cosine { // of zero the sign, too
			y = d.choose(isEqual, x, d.num(0), x, y)
		}
		d.put(y, dst, mask)
	}, step{src, 64}, step{dst, 64})
	done := d.GP64()
	d.Load(d.Param("n"), done)
	d.JMP(operand.LabelRef("return"))
	d.Label("stop")
	d.MOVQ(src, done)
	d.SUBQ(first, done)
	d.SHRQ(operand.U8(3), done)
	d.Label("return")
	d.Store(done, d.ReturnIndex(0))
	d.VZEROUPPER()
	d.RET()
}

// logParts is the logarithm of |x| as a sum whose second part the first one cannot hold, and
// which is NaN where the first is infinite: twice the series of the area tangent of s =
// (m-1)/(m+1), of which all terms that count are computed in two parts.
func (d *double) logParts(x reg.VecVirtual) (high, low reg.VecVirtual) {
	m, k := d.mantissa(x)
	one := d.num(1)
	f, under := d.sub(m, one), d.add(m, one)
	underLow := d.sub(m, d.sub(under, one))
	s := d.div(f, under)
	rest, by := d.ZMM(), d.ZMM()
	d.VMOVAPD(f, rest)
	d.VFNMADD231PD(under, s, rest)
	d.VFNMADD231PD(underLow, s, rest)
	d.VRCP14PD(under, by)
	sLow := d.mul(rest, by)
	z := d.mul(s, s)
	zLow := d.fused(d.add(s, s), sLow, d.fused(s, s, z, true), false)
	// A third, and the terms behind it.
	third := d.num(1. / 3)
	tail := d.mul(z, d.horner(z, 1./21, 1./19, 1./17, 1./15, 1./13, 1./11, 1./9, 1./7, 1./5))
	u := d.add(third, tail)
	// a third, exactly, less its float64
	uLow := d.add(d.add(d.sub(third, u), tail), d.num(1.8503717077085943e-17))
	v := d.mul(z, u)
	vLow := d.fused(z, uLow, d.fused(zLow, u, d.fused(z, u, v, true), false), false)
	t := d.mul(s, v)
	tLow := d.fused(s, vLow, d.fused(sLow, v, d.fused(s, v, t, true), false), false)
	sum := d.add(s, t)
	sumLow := d.add(d.add(d.sub(s, sum), t), d.add(tLow, sLow))
	sum, sumLow = d.add(sum, sum), d.add(sumLow, sumLow)
	// A product with the upper part of the logarithm of two is exact.
	power := d.mul(k, d.num(6.93147180369123816490e-01))
	high = d.add(power, sum)
	low = d.add(d.sub(power, high), sum)
	return high, d.fused(k, d.num(1.90821492927058770002e-10), d.add(low, sumLow), false)
}

// fullPowers writes a^b with the special cases of C.
func (d *double) fullPowers() {
	d.function("powDoubles"+d.w.set, "func(dst, a, b *float64, n int)")
	dst, pa, pb, n := d.Load(d.Param("dst"), d.GP64()), d.Load(d.Param("a"), d.GP64()), d.Load(d.Param("b"), d.GP64()), d.Load(d.Param("n"), d.GP64())
	d.table = d.GP64()
	d.LEAQ(d.data, d.table)
	d.masked("values", n, 8, func(mask reg.Register) {
		x, y := d.get(pa, mask), d.get(pb, mask)
		high, low := d.logParts(x)
		times := d.bounded(y, 1e300) // of an infinite exponent a large one is enough
		product := d.mul(times, high)
		rest, some := d.fused(times, low, d.fused(times, high, product, true), false), d.ZMM()
		// Beside an infinite product, as of the logarithm of zero, the rest is NaN, and does not
		// count.
		d.VMINPD(d.num(1), rest, some)
		d.VMAXPD(d.num(-1), some, some)
		r := d.fullExp(product, some)
		_, sign := d.magnitude(x)
		d.put(d.signed(x, y, r, sign), dst, mask)
	}, step{dst, 64}, step{pa, 64}, step{pb, 64})
	d.VZEROUPPER()
	d.RET()
}
