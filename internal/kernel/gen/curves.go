package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the numbers of simd.ExpTable, of which each is there four times.
const (
	expScale = 32 * iota
	expShift
	expStep
	expHigh
	expLow
	expOne
	expHalf
	expSixth
	exp24th
	expTwo
	expSign
	expIndex
	expTable
)

// Places of the numbers of simd.LibmTable; those from libmAbove on are float32, each
// there eight times.
const (
	libmScale = 32 * iota
	libmShift
	libmC0
	libmC1
	libmC2
	libmOne
	libmIndex
	libmAbove
	libmBelow
	libmInf
	libmSign
	libmOnes
	libmTop
	libmBottom
	libmTable
)

func curves(a *asm) {
	a.curve("exp", func(c *curveLoop, d reg.VecVirtual) reg.VecVirtual {
		c.limit(d)
		return c.exp(d)
	})
	a.curve("silu", func(c *curveLoop, d reg.VecVirtual) reg.VecVirtual {
		x := c.YMM()
		c.VXORPD(c.at(expSign), d, x)
		c.limit(x)
		e := c.exp(x)
		c.VADDPD(c.at(expOne), e, e)
		c.VDIVPD(e, d, e)
		// Nothing is left below the limit, of infinity neither.
		below := c.YMM()
		c.VCMPPD(operand.U8(17), c.at(expLow), d, below)
		c.VANDNPD(e, below, e)
		return e
	})
	a.curve("tanh", func(c *curveLoop, d reg.VecVirtual) reg.VecVirtual {
		zero, x, none := c.YMM(), c.YMM(), c.YMM()
		c.VXORPD(none, none, none)
		c.VCMPPD(operand.U8(0), none, d, zero)
		c.VANDPD(d, zero, none) // a zero of its sign
		c.VADDPD(d, d, x)
		c.limit(x)
		e, t := c.expm1(x), c.YMM()
		c.VADDPD(c.at(expTwo), e, t)
		c.VDIVPD(t, e, e)
		c.VANDNPD(e, zero, e)
		c.VORPD(none, e, e)
		return e
	})
	a.expSum()
	a.libmExp()
	a.libmExpWide()
	a.libmSigmoid()
	a.single("sigmoid", (*singleLoop).sigmoid)
	a.single("erf", (*singleLoop).erf)
	a.singleWide("sigmoid", (*wideLoop).sigmoid)
	a.singleWide("erf", (*wideLoop).erf)
	a.libmTanh()
}

// curveLoop is a loop over four values at a time.
type curveLoop struct {
	*asm
	table    reg.Register
	place    int // of the table behind the numbers
	bits     uint8
	index    int
	dst, src reg.Register
}

func (c *curveLoop) at(off int) operand.Mem { return at(c.table, off) }

func (c *curveLoop) load(off int) reg.VecVirtual {
	v := c.YMM()
	c.VMOVUPD(c.at(off), v)
	return v
}

// limit bounds x; what is no number passes.
func (c *curveLoop) limit(x reg.VecVirtual) {
	lo, hi := c.load(expLow), c.load(expHigh)
	c.VMINPD(x, hi, x)
	c.VMAXPD(x, lo, x)
}

// power splits x into a power of two s and a rest r.
func (c *curveLoop) power(x reg.VecVirtual) (s, r reg.VecVirtual) {
	k, t := c.YMM(), c.YMM()
	r = c.YMM()
	c.VMULPD(c.at(expScale), x, k)
	c.VADDPD(c.at(expShift), k, k)
	c.VSUBPD(c.at(expShift), k, t)
	c.VMULPD(c.at(expStep), t, t)
	c.VSUBPD(t, x, r)
	return c.scaled(k), r
}

// scaled is the power of two of a shifted number.
func (c *curveLoop) scaled(k reg.VecVirtual) reg.VecVirtual {
	i, s, mask := c.YMM(), c.YMM(), c.YMM()
	c.VPAND(c.at(c.index), k, i)
	c.VPCMPEQD(mask, mask, mask)
	c.VPGATHERQQ(mask, operand.Mem{Base: c.table, Disp: c.place, Index: i, Scale: 8}, s)
	c.VPSLLQ(operand.U8(c.bits), k, k)
	c.VPADDQ(k, s, s)
	return s
}

// exp is exp64 of package vecmath.
func (c *curveLoop) exp(x reg.VecVirtual) reg.VecVirtual {
	s, r := c.power(x)
	p, q := c.YMM(), c.YMM()
	c.VMULPD(c.at(expSixth), r, p)
	c.VADDPD(c.at(expHalf), p, p)
	c.VMULPD(p, r, p)
	c.VADDPD(c.at(expOne), p, p)
	c.VMULPD(r, s, q)
	c.VMULPD(p, q, q)
	c.VADDPD(q, s, s)
	return s
}

// expm1 is expm164 of package vecmath.
func (c *curveLoop) expm1(x reg.VecVirtual) reg.VecVirtual {
	s, r := c.power(x)
	p, q := c.YMM(), c.YMM()
	c.VMULPD(c.at(exp24th), r, p)
	c.VADDPD(c.at(expSixth), p, p)
	c.VMULPD(p, r, p)
	c.VADDPD(c.at(expHalf), p, p)
	c.VMULPD(p, r, p)
	c.VADDPD(c.at(expOne), p, p)
	c.VMULPD(r, s, q)
	c.VMULPD(p, q, q)
	c.VSUBPD(c.at(expOne), s, s)
	c.VADDPD(q, s, s)
	return s
}

func (a *asm) vecmathLoop() *curveLoop {
	c := &curveLoop{asm: a, place: expTable, bits: 52 - 6, index: expIndex}
	c.dst = a.Load(a.Param("dst"), a.GP64())
	c.src = a.Load(a.Param("src"), a.GP64())
	c.table = a.Load(a.Param("t"), a.GP64())
	return c
}

// curve writes f of n values, a multiple of 4, in float64.
func (a *asm) curve(name string, f func(c *curveLoop, d reg.VecVirtual) reg.VecVirtual) {
	a.function(name+"AVX2", "func(dst, src *float32, n int, t *byte)")
	c := a.vecmathLoop()
	n := a.Load(a.Param("n"), a.GP64())
	a.loop(n, 4, func() {
		d := a.YMM()
		a.VCVTPS2PD(at(c.src, 0), d)
		e := f(c, d)
		low := a.XMM()
		a.VCVTPD2PSY(e, low)
		a.VMOVUPS(low, at(c.dst, 0))
	}, step{c.src, 16}, step{c.dst, 16})
	a.VZEROUPPER()
	a.RET()
}

// expSum writes the exponential of values less shift, and their sums in each lane.
func (a *asm) expSum() {
	a.function("expSumAVX2", "func(dst, src *float32, n int, shift float32, t *byte) float64")
	c := a.vecmathLoop()
	n := a.Load(a.Param("n"), a.GP64())
	shift, sum := a.YMM(), a.YMM()
	sx := a.XMM()
	a.Load(a.Param("shift"), sx)
	a.VCVTSS2SD(sx, sx, sx)
	a.VBROADCASTSD(sx, shift)
	a.VXORPD(sum, sum, sum)
	a.loop(n, 4, func() {
		d, low := a.YMM(), a.XMM()
		a.VCVTPS2PD(at(c.src, 0), d)
		a.VSUBPD(shift, d, d)
		c.limit(d)
		e := c.exp(d)
		a.VADDPD(e, sum, sum)
		a.VCVTPD2PSY(e, low)
		a.VMOVUPS(low, at(c.dst, 0))
	}, step{c.src, 16}, step{c.dst, 16})
	a.VHADDPD(sum, sum, sum)
	a.VEXTRACTF128(operand.U8(1), sum, sx)
	a.VADDSD(sx, sum.AsX(), sx)
	a.Store(sx, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) libmLoop() *curveLoop {
	c := a.vecmathLoop()
	c.place, c.bits, c.index = libmTable, 52-5, libmIndex
	return c
}

// expOf is Exp of package libm for four float32.
func (c *curveLoop) expOf(x reg.VecVirtual) reg.VecVirtual {
	d, kd, r, p, q := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	k := c.YMM()
	c.VCVTPS2PD(x, d)
	c.VMULPD(c.at(libmScale), d, d)
	c.VADDPD(c.at(libmShift), d, k)
	c.VSUBPD(c.at(libmShift), k, kd)
	c.VSUBPD(kd, d, r)
	s := c.scaled(k)
	c.VMULPD(c.at(libmC0), r, p)
	c.VADDPD(c.at(libmC1), p, p)
	c.VMULPD(r, r, q)
	c.VMULPD(q, p, p)
	c.VMULPD(c.at(libmC2), r, q)
	c.VADDPD(c.at(libmOne), q, q)
	c.VADDPD(q, p, p)
	c.VMULPD(s, p, p)
	e, far := c.XMM(), c.XMM()
	c.VCVTPD2PSY(p, e)
	inf := c.XMM()
	c.VMOVUPS(c.at(libmInf), inf)
	c.VCMPPS(operand.U8(30), c.at(libmAbove), x, far)
	c.VBLENDVPS(far, inf, e, e)
	c.VCMPPS(operand.U8(17), c.at(libmBelow), x, far)
	c.VANDNPS(e, far, e)
	return e
}

// libmExp writes the exponential of (x - top)·beta.
func (a *asm) libmExp() {
	a.function("libmExpAVX2", "func(dst, src *float32, n int, top, beta float32, t *byte)")
	c := a.libmLoop()
	n := a.Load(a.Param("n"), a.GP64())
	top, beta := a.XMM(), a.XMM()
	a.Load(a.Param("top"), top)
	a.VBROADCASTSS(top, top)
	a.Load(a.Param("beta"), beta)
	a.VBROADCASTSS(beta, beta)
	a.loop(n, 4, func() {
		x := a.XMM()
		a.VMOVUPS(at(c.src, 0), x)
		a.VSUBPS(top, x, x)
		a.VMULPS(beta, x, x)
		a.VMOVUPS(c.expOf(x), at(c.dst, 0))
	}, step{c.src, 16}, step{c.dst, 16})
	a.VZEROUPPER()
	a.RET()
}

// libmExpWide is libmExp for n values, a multiple of 8, with the powers of two in registers.
func (a *asm) libmExpWide() {
	a.function("libmExpAVX512", "func(dst, src *float32, n int, top, beta float32, t *byte)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	top, beta := a.spreadParam("top"), a.spreadParam("beta")
	t := a.Load(a.Param("t"), a.GP64())
	number := func(place int) reg.VecVirtual {
		v := a.ZMM()
		a.VBROADCASTSD(at(t, place), v)
		return v
	}
	scale, shift, c0, c1, c2, one, index := number(libmScale), number(libmShift), number(libmC0), number(libmC1), number(libmC2), number(libmOne), number(libmIndex)
	above, below, inf := a.YMM(), a.YMM(), a.YMM()
	a.VMOVUPS(at(t, libmAbove), above)
	a.VMOVUPS(at(t, libmBelow), below)
	a.VMOVUPS(at(t, libmInf), inf)
	var powers [4]reg.VecVirtual
	for i := range powers {
		powers[i] = a.ZMM()
		a.VMOVDQU64(at(t, libmTable+64*i), powers[i])
	}
	sixteen := a.ZMM()
	a.VPSLLQ(operand.U8(63), index, sixteen)
	a.VPSRLQ(operand.U8(59), sixteen, sixteen)
	a.loop(n, 8, func() {
		x, e := a.YMM(), a.YMM()
		d, k, kd, r, p, q, i, s := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		a.VMOVUPS(at(src, 0), x)
		a.VSUBPS(top, x, x)
		a.VMULPS(beta, x, x)
		a.VCVTPS2PD(x, d)
		a.VMULPD(scale, d, d)
		a.VADDPD(shift, d, k)
		a.VSUBPD(shift, k, kd)
		a.VSUBPD(kd, d, r)
		a.VPANDQ(index, k, i)
		a.VMOVDQA64(i, s)
		a.VPTESTMQ(sixteen, i, reg.K1)
		a.VPERMI2Q(powers[1], powers[0], s)
		a.VPERMI2Q(powers[3], powers[2], i)
		a.VMOVDQA64(i, reg.K1, s)
		a.VPSLLQ(operand.U8(52-5), k, k)
		a.VPADDQ(k, s, s)
		a.VMULPD(c0, r, p)
		a.VADDPD(c1, p, p)
		a.VMULPD(r, r, q)
		a.VMULPD(q, p, p)
		a.VMULPD(c2, r, q)
		a.VADDPD(one, q, q)
		a.VADDPD(q, p, p)
		a.VMULPD(s, p, p)
		a.VCVTPD2PS(p, e)
		a.VCMPPS(operand.U8(30), above, x, reg.K2)
		a.VMOVAPS(inf, reg.K2, e)
		a.VCMPPS(operand.U8(21), below, x, reg.K2) // not below: what is no number neither
		a.VMOVAPS_Z(e, reg.K2, e)
		a.VMOVUPS(e, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// libmSigmoid writes Sigmoid of package libm.
func (a *asm) libmSigmoid() {
	a.function("libmSigmoidAVX2", "func(dst, src *float32, n int, t *byte)")
	c := a.libmLoop()
	n := a.Load(a.Param("n"), a.GP64())
	a.loop(n, 4, func() {
		x, turned, low, one, y := a.XMM(), a.XMM(), a.XMM(), a.XMM(), a.XMM()
		a.VMOVUPS(at(c.src, 0), x)
		a.VXORPS(c.at(libmSign), x, turned)
		a.VCMPPS(operand.U8(17), c.at(libmBottom), x, low)
		a.VBLENDVPS(low, x, turned, turned)
		e := c.expOf(turned)
		a.VMOVUPS(c.at(libmOnes), one)
		a.VADDPS(one, e, y)
		a.VDIVPS(y, one, y)
		a.VBLENDVPS(low, e, y, y)
		a.VCMPPS(operand.U8(30), c.at(libmTop), x, low)
		a.VBLENDVPS(low, one, y, y)
		a.VMOVUPS(y, at(c.dst, 0))
	}, step{c.src, 16}, step{c.dst, 16})
	a.VZEROUPPER()
	a.RET()
}

// Places of the numbers of simd.SingleTable, of which each is there eight times.
const (
	singleSign = 32 * iota
	singleLeast
	singleScale
	singleHigh
	singleLow
	singleBias
	singleOne
	singleFactors                    // of r² and up, the highest first
	singleErfMost = 32 * (iota + 5)  // above it erf is 1
	singleErfEdge = 32 * (iota + 5)  // between the polynomials
	singleErfNear = 32 * (iota + 5)  // of x², the highest first
	singleErfFar  = 32 * (iota + 11) // of |x|, the highest first
)

// singleLoop is a loop over eight values at a time in float32.
type singleLoop struct {
	*asm
	table reg.Register
}

func (c *singleLoop) at(off int) operand.Mem { return at(c.table, off) }

func (c *singleLoop) load(off int) reg.VecVirtual {
	v := c.YMM()
	c.VMOVUPS(c.at(off), v)
	return v
}

// horner evaluates a polynomial with the n coefficients at a place, the highest first.
func (c *singleLoop) horner(x reg.VecVirtual, place, n int) reg.VecVirtual {
	p := c.load(place)
	for i := 1; i < n; i++ {
		c.VFMADD213PS(c.at(place+32*i), x, p)
	}
	return p
}

// exp is e^y of y <= 0; what is no number passes.
func (c *singleLoop) exp(y reg.VecVirtual) reg.VecVirtual {
	least, n, half := c.load(singleLeast), c.YMM(), c.YMM()
	c.VMAXPS(y, least, y)
	c.VMULPS(c.at(singleScale), y, n)
	c.VROUNDPS(operand.U8(8), n, n)
	r := c.YMM()
	c.VMOVAPS(y, r)
	c.VFNMADD231PS(c.at(singleHigh), n, r)
	c.VFNMADD231PS(c.at(singleLow), n, r)
	p, q := c.horner(r, singleFactors, 6), c.YMM()
	// e^r = 1 + (r + r²·p)
	c.VMULPS(r, r, q)
	c.VFMADD213PS(r, q, p)
	c.VADDPS(c.at(singleOne), p, p)
	// In two steps, so that the result may be smaller than the least normal number.
	c.VCVTPS2DQ(n, n)
	c.VPSRAD(operand.U8(1), n, half)
	c.VPSUBD(half, n, n)
	for _, v := range []reg.VecVirtual{half, n} {
		c.VPADDD(c.at(singleBias), v, v)
		c.VPSLLD(operand.U8(23), v, v)
		c.VMULPS(v, p, p)
	}
	return p
}

// sigmoid is 1/(1+e^-x), by the exponential of -|x|.
func (c *singleLoop) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	y, top, one := c.YMM(), c.YMM(), c.load(singleOne)
	c.VORPS(c.at(singleSign), x, y)
	z := c.exp(y)
	c.VBLENDVPS(x, z, one, top)
	c.VADDPS(one, z, z)
	c.VDIVPS(z, top, top)
	return top
}

// erf is the error function: x·P(x²) near zero, 1 - e^(|x|·Q(|x|)) beyond.
func (c *singleLoop) erf(x reg.VecVirtual) reg.VecVirtual {
	a, s, sign, far := c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VANDPS(c.at(singleSign), x, sign)
	c.VXORPS(sign, x, a)
	c.VMULPS(a, a, s)
	near := c.horner(s, singleErfNear, 7)
	c.VFMADD213PS(a, a, near)
	most := c.load(singleErfMost)
	c.VCMPPS(operand.U8(29), c.at(singleErfEdge), a, far)
	c.VMINPS(a, most, a)
	y := c.horner(a, singleErfFar, 6)
	c.VMULPS(a, y, y)
	c.VSUBPS(a, y, y)
	e, one := c.exp(y), c.load(singleOne)
	c.VSUBPS(e, one, e)
	c.VBLENDVPS(far, e, near, near)
	c.VORPS(sign, near, near)
	return near
}

// single writes f of n values, a multiple of 8, in float32.
func (a *asm) single(name string, f func(c *singleLoop, x reg.VecVirtual) reg.VecVirtual) {
	a.function(name+"AVX2", "func(dst, src *float32, n int, t *byte)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	c := &singleLoop{a, a.Load(a.Param("t"), a.GP64())}
	n := a.Load(a.Param("n"), a.GP64())
	a.loop(n, 8, func() {
		x := a.YMM()
		a.VMOVUPS(at(src, 0), x)
		a.VMOVUPS(f(c, x), at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// wideLoop is singleLoop for sixteen values at a time: the same operations, and the same bits.
type wideLoop struct {
	*asm
	table            reg.Register
	least, one, most reg.VecVirtual
}

func (c *wideLoop) at(off int) operand.Mem { return at(c.table, off) }

func (c *wideLoop) load(off int) reg.VecVirtual {
	v := c.ZMM()
	c.VBROADCASTSS(c.at(off), v)
	return v
}

func (c *wideLoop) horner(x reg.VecVirtual, place, n int) reg.VecVirtual {
	p := c.load(place)
	for i := 1; i < n; i++ {
		c.VFMADD213PS_BCST(c.at(place+32*i), x, p)
	}
	return p
}

func (c *wideLoop) exp(y reg.VecVirtual) reg.VecVirtual {
	n, r, q := c.ZMM(), c.ZMM(), c.ZMM()
	c.VMAXPS(y, c.least, y)
	c.VMULPS_BCST(c.at(singleScale), y, n)
	c.VRNDSCALEPS(operand.U8(8), n, n)
	c.VMOVAPS(y, r)
	c.VFNMADD231PS_BCST(c.at(singleHigh), n, r)
	c.VFNMADD231PS_BCST(c.at(singleLow), n, r)
	p := c.horner(r, singleFactors, 6)
	c.VMULPS(r, r, q)
	c.VFMADD213PS(r, q, p)
	c.VADDPS(c.one, p, p)
	c.VSCALEFPS(n, p, p)
	return p
}

func (c *wideLoop) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	y, top := c.ZMM(), c.ZMM()
	c.VPORD_BCST(c.at(singleSign), x, y)
	z := c.exp(y)
	c.VPMOVD2M(x, reg.K2)
	c.VMOVAPS(c.one, top)
	c.VMOVAPS(z, reg.K2, top)
	c.VADDPS(c.one, z, z)
	c.VDIVPS(z, top, top)
	return top
}

func (c *wideLoop) erf(x reg.VecVirtual) reg.VecVirtual {
	a, s, sign := c.ZMM(), c.ZMM(), c.ZMM()
	c.VPANDD_BCST(c.at(singleSign), x, sign)
	c.VPXORD(sign, x, a)
	c.VMULPS(a, a, s)
	near := c.horner(s, singleErfNear, 7)
	c.VFMADD213PS(a, a, near)
	c.VCMPPS_BCST(operand.U8(29), c.at(singleErfEdge), a, reg.K2)
	c.VMINPS(a, c.most, a)
	y := c.horner(a, singleErfFar, 6)
	c.VMULPS(a, y, y)
	c.VSUBPS(a, y, y)
	e := c.exp(y)
	c.VSUBPS(e, c.one, e)
	c.VMOVAPS(e, reg.K2, near)
	c.VPORD(sign, near, near)
	return near
}

// singleWide writes f of n values in float32.
func (a *asm) singleWide(name string, f func(c *wideLoop, x reg.VecVirtual) reg.VecVirtual) {
	a.function(name+"AVX512", "func(dst, src *float32, n int, t *byte)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	c := &wideLoop{asm: a, table: a.Load(a.Param("t"), a.GP64())}
	c.least, c.one, c.most = c.load(singleLeast), c.load(singleOne), c.load(singleErfMost)
	n := a.Load(a.Param("n"), a.GP64())
	a.Label("many")
	a.SUBQ(operand.U8(16), n)
	a.JLT(operand.LabelRef("few"))
	x := a.ZMM()
	a.VMOVUPS(at(src, 0), x)
	a.VMOVUPS(f(c, x), at(dst, 0))
	a.ADDQ(operand.U8(64), src)
	a.ADDQ(operand.U8(64), dst)
	a.JMP(operand.LabelRef("many"))
	a.Label("few")
	a.ADDQ(operand.U8(16), n)
	a.JZ(operand.LabelRef("end"))
	bits := a.GP64()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVW(bits.As32(), reg.K1)
	rest := a.ZMM()
	a.VMOVUPS_Z(at(src, 0), reg.K1, rest)
	a.VMOVUPS(f(c, rest), reg.K1, at(dst, 0))
	a.Label("end")
	a.VZEROUPPER()
	a.RET()
}
