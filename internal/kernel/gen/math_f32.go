package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Places of the numbers of simd.SingleTable, of which each is there eight times.
const (
	singleSign = 32 * iota
	singleLeast
	singleScale
	singleHigh
	singleLow
	singleBias
	singleOne
	singleFactors                     // of r² and up, the highest first
	singleErfMost  = 32 * (iota + 5)  // above it erf is 1
	singleErfEdge  = 32 * (iota + 5)  // between the polynomials
	singleErfNear  = 32 * (iota + 5)  // of x², the highest first
	singleErfFar   = 32 * (iota + 11) // of |x|, the highest first
	singleTanhEdge = 32 * (iota + 16)
	singleTanhNear = 32 * (iota + 16) // of x², the highest first
	singleRoot     = 32 * (iota + 21) // of a half
	singleCube     = 32 * (iota + 21) // of x³ in the approximation of GELU by tanh
	singleLine     = 32 * (iota + 21) // of x there
	singleNormal   = 32 * (iota + 21) // below it exponentials are less than the least normal number
	singleLog      = 32 * (iota + 21) // of s² in ln(1+z)/s with s = z/(2+z), the highest first
	singleMost     = 32 * (iota + 28) // above it exponentials are infinite
	singleTiny     = 32 * (iota + 28) // the least normal number
	singleUp       = 32 * (iota + 28) // what makes normal numbers of smaller ones, 2^23
	singleDown     = 32 * (iota + 28) // its logarithm to base 2
	singleMiddle   = 32 * (iota + 28) // the bits of √½
	singleFraction = 32 * (iota + 28) // the bits below the exponent
	singleInf      = 32 * (iota + 28)
	singleThree    = 32 * (iota + 28)
	singleSix      = 32 * (iota + 28)
	singleHalf     = singleFactors + 5*32
	singleSixth    = singleFactors + 4*32
)

func singles(a *asm) {
	a.single("sigmoid", (*singleLoop).sigmoid)
	a.single("erf", (*singleLoop).erf)
	a.single("tanh", (*singleLoop).tanh)
	a.single("silu", (*singleLoop).silu)
	a.single("gelu", (*singleLoop).gelu)
	a.single("geluTanh", (*singleLoop).geluTanh)
	a.single("hardSwish", (*singleLoop).hardSwish)
	a.single("libmHardSwish", (*singleLoop).libmHardSwish)
	a.single("exponential", (*singleLoop).exponential)
	a.single("logarithm", (*singleLoop).logarithm)
	a.singleWide("exponential", (*wideLoop).exponential)
	a.singleWide("logarithm", (*wideLoop).logarithm)
	a.single("softplus", (*singleLoop).softplus)
	a.single("mish", (*singleLoop).mish)
	a.expSum()
	a.singleWide("softplus", (*wideLoop).softplus)
	a.singleWide("mish", (*wideLoop).mish)
	waves(a)
	a.singleWide("sigmoid", (*wideLoop).sigmoid)
	a.singleWide("erf", (*wideLoop).erf)
	a.singleWide("tanh", (*wideLoop).tanh)
	a.singleWide("silu", (*wideLoop).silu)
	a.singleWide("gelu", (*wideLoop).gelu)
	a.singleWide("geluTanh", (*wideLoop).geluTanh)
	a.singleWide("hardSwish", (*wideLoop).hardSwish)
	a.singleWide("libmHardSwish", (*wideLoop).libmHardSwish)
	a.expSumWide()
}

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

// exp is e^y of y <= 0; NaN passes.
func (c *singleLoop) exp(y reg.VecVirtual) reg.VecVirtual {
	least, n, half := c.load(singleLeast), c.YMM(), c.YMM()
	c.VMAXPS(y, least, y)
	c.VMULPS(c.at(singleScale), y, n)
	c.VROUNDPS(operand.U8(8), n, n)
	p := c.reduced(y, n)
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

// reduced is e^(y - n·ln 2).
func (c *singleLoop) reduced(y, n reg.VecVirtual) reg.VecVirtual {
	r := c.YMM()
	c.VMOVAPS(y, r)
	c.VFNMADD231PS(c.at(singleHigh), n, r)
	c.VFNMADD231PS(c.at(singleLow), n, r)
	p, q := c.horner(r, singleFactors, 6), c.YMM()
	// e^r = 1 + (r + r·(r·p)): the square of a small r would be less than the least normal
	// number, with which processors are slow.
	c.VMULPS(r, p, q)
	c.VFMADD213PS(r, r, q)
	c.VADDPS(c.at(singleOne), q, p)
	return p
}

// expNormal is e^y of y <= 0 with a normal result. shift is the sum of 1.5·2^23, whose addition
// rounds, and the bias of exponents. NaN passes.
func (c *singleLoop) expNormal(y, shift reg.VecVirtual) reg.VecVirtual {
	k, n := c.YMM(), c.YMM()
	c.VMOVAPS(shift, k)
	c.VFMADD231PS(c.at(singleScale), y, k)
	c.VSUBPS(shift, k, n)
	p := c.reduced(y, n)
	c.VPSLLD(operand.U8(23), k, k)
	c.VMULPS(k, p, p)
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

// silu is x·sigmoid(x); below the least nothing is left, of infinity neither.
func (c *singleLoop) silu(x reg.VecVirtual) reg.VecVirtual { return c.weighed(x, x) }

// weighed is x·sigmoid(u); x and u have one sign.
func (c *singleLoop) weighed(x, u reg.VecVirtual) reg.VecVirtual {
	s, least, y := c.sigmoid(u), c.load(singleLeast), c.YMM()
	c.VMAXPS(x, least, y)
	c.VMULPS(y, s, s)
	return s
}

// hardSwish is x·min(max(x/6 + 1/2, 0), 1).
func (c *singleLoop) hardSwish(x reg.VecVirtual) reg.VecVirtual {
	y, zero, one := c.load(singleSixth), c.YMM(), c.load(singleOne)
	c.VXORPS(zero, zero, zero)
	c.VFMADD213PS(c.at(singleHalf), x, y)
	c.VMAXPS(y, zero, y)
	c.VMINPS(y, one, y)
	c.VMULPS(x, y, y)
	return y
}

// libmHardSwish is x·min(max(x+3, 0), 6)/6, rounded after each step.
func (c *singleLoop) libmHardSwish(x reg.VecVirtual) reg.VecVirtual {
	y, zero, six := c.load(singleThree), c.YMM(), c.load(singleSix)
	c.VXORPS(zero, zero, zero)
	c.VADDPS(y, x, y)
	c.VMAXPS(y, zero, y)
	c.VMINPS(y, six, y)
	c.VMULPS(x, y, y)
	c.VDIVPS(six, y, y)
	return y
}

// geluTanh is the approximation x/2·(1+tanh(√(2/π)(x+0.044715x³))), by the sigmoid.
func (c *singleLoop) geluTanh(x reg.VecVirtual) reg.VecVirtual {
	s, u := c.YMM(), c.load(singleCube)
	c.VMULPS(x, x, s)
	c.VFMADD213PS(c.at(singleLine), s, u)
	c.VMULPS(x, u, u)
	return c.weighed(x, u)
}

// tanh is x+x³·P(x²) near zero, (1-e^-2|x|)/(1+e^-2|x|) beyond.
func (c *singleLoop) tanh(x reg.VecVirtual) reg.VecVirtual {
	a, s, sign, far, y := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VANDPS(c.at(singleSign), x, sign)
	c.VXORPS(sign, x, a)
	c.VMULPS(a, a, s)
	near := c.horner(s, singleTanhNear, 6)
	c.VMULPS(a, s, s)
	c.VFMADD213PS(a, s, near)
	c.VCMPPS(operand.U8(29), c.at(singleTanhEdge), a, far)
	c.VADDPS(a, a, y)
	c.VORPS(c.at(singleSign), y, y)
	z, one, top := c.exp(y), c.load(singleOne), c.YMM()
	c.VSUBPS(z, one, top)
	c.VADDPS(one, z, z)
	c.VDIVPS(z, top, top)
	c.VBLENDVPS(far, top, near, near)
	c.VORPS(sign, near, near)
	return near
}

// gelu is x/2·(1+erf(x/√2)), with 1-erf from the exponential far from zero.
func (c *singleLoop) gelu(x reg.VecVirtual) reg.VecVirtual {
	h, t, a, s, sign, far, within := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	least := c.load(singleLeast)
	c.VMAXPS(x, least, h)
	c.VMULPS(c.at(singleHalf), h, h)
	c.VMULPS(c.at(singleRoot), x, t)
	c.VANDPS(c.at(singleSign), t, sign)
	c.VXORPS(sign, t, a)
	c.VMULPS(a, a, s)
	near := c.horner(s, singleErfNear, 7)
	c.VFMADD213PS(t, t, near)
	c.VFMADD213PS(h, h, near)
	c.VCMPPS(operand.U8(29), c.at(singleErfEdge), a, far)
	c.VCMPPS(operand.U8(17), c.at(singleErfMost), a, within)
	most := c.load(singleErfMost)
	c.VMINPS(a, most, a)
	y := c.horner(a, singleErfFar, 6)
	c.VMULPS(a, y, y)
	c.VSUBPS(a, y, y)
	e, two := c.exp(y), c.load(singleOne)
	c.VANDPS(within, e, e)
	c.VADDPS(two, two, two)
	c.VSUBPS(e, two, two)
	c.VBLENDVPS(sign, e, two, e)
	c.VMULPS(h, e, e)
	c.VBLENDVPS(far, e, near, near)
	return near
}

// exponential is e^x of any x.
func (c *singleLoop) exponential(x reg.VecVirtual) reg.VecVirtual {
	most := c.load(singleMost)
	c.VMINPS(x, most, x)
	return c.exp(x)
}

// logarithm is ln(x) = e·ln 2 + ln(m) with m from √½ to √2, whose logarithm is a series of
// (m-1)/(m+1). Only positive numbers have one.
func (c *singleLoop) logarithm(x reg.VecVirtual) reg.VecVirtual {
	small, y, e, m, down := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VCMPPS(operand.U8(17), c.at(singleTiny), x, small)
	c.VMULPS(c.at(singleUp), x, y)
	c.VBLENDVPS(small, y, x, y)
	c.VPSUBD(c.at(singleMiddle), y, y)
	c.VPSRAD(operand.U8(23), y, e)
	c.VPAND(c.at(singleFraction), y, m)
	c.VPADDD(c.at(singleMiddle), m, m)
	c.VCVTDQ2PS(e, e)
	c.VANDPS(c.at(singleDown), small, down)
	c.VSUBPS(down, e, e)
	one, f, s, d := c.load(singleOne), c.YMM(), c.YMM(), c.YMM()
	c.VSUBPS(one, m, f)
	c.VADDPS(one, m, m)
	c.VDIVPS(m, f, s)
	c.VMULPS(s, s, d)
	p, low := c.horner(d, singleLog+2*32, 6), c.YMM()
	c.VMULPS(c.at(singleLow), e, low)
	c.VFMADD213PS(low, s, p)
	c.VFMADD231PS(c.at(singleHigh), e, p)
	zero, inf, odd, least := c.YMM(), c.load(singleInf), c.YMM(), c.YMM()
	c.VXORPS(zero, zero, zero)
	c.VXORPS(c.at(singleSign), inf, least)
	c.VCMPPS(operand.U8(0), zero, x, odd)
	c.VBLENDVPS(odd, least, p, p)
	c.VCMPPS(operand.U8(17), zero, x, odd)
	c.VORPS(odd, p, p) // all bits are set: no number
	c.VCMPPS(operand.U8(notLess), inf, x, odd)
	c.VBLENDVPS(odd, x, p, p)
	return p
}

// softplus is ln(1+e^x): max(x, 0) + ln(1+z) with z = e^-|x|, by the series of the inverse
// hyperbolic tangent.
func (c *singleLoop) softplus(x reg.VecVirtual) reg.VecVirtual {
	y, s, d, zero := c.YMM(), c.YMM(), c.load(singleOne), c.YMM()
	c.VORPS(c.at(singleSign), x, y)
	z := c.exp(y)
	c.VADDPS(d, d, d)
	c.VADDPS(z, d, d)
	c.VDIVPS(d, z, s)
	c.VMULPS(s, s, d)
	p := c.horner(d, singleLog, 8)
	c.VXORPS(zero, zero, zero)
	c.VMAXPS(x, zero, zero)
	c.VFMADD213PS(zero, s, p)
	return p
}

// mish is x·tanh(ln(1+e^x)), which is x·n/(n+2) with n = e^x·(e^x+2), by the exponential of -|x|.
// Below the least nothing is left.
func (c *singleLoop) mish(x reg.VecVirtual) reg.VecVirtual {
	y, top, d, one, least := c.YMM(), c.YMM(), c.YMM(), c.load(singleOne), c.load(singleLeast)
	c.VORPS(c.at(singleSign), x, y)
	z := c.exp(y)
	two, above := c.YMM(), c.YMM()
	c.VADDPS(one, one, two)
	c.VADDPS(two, z, top)
	c.VMULPS(z, top, top)
	c.VMOVAPS(one, above)
	c.VFMADD231PS(two, z, above)
	c.VMULPS(z, z, d)
	c.VADDPS(d, d, d)
	c.VBLENDVPS(x, top, above, top)
	c.VBLENDVPS(x, two, d, d)
	c.VADDPS(top, d, d)
	c.VMAXPS(x, least, y)
	c.VMULPS(y, top, top)
	c.VDIVPS(d, top, top)
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
	a.function(name+"AVX2", "func(dst, src *float32, n int, t *SingleTable)")
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
	c.VMULPS(r, p, q)
	c.VFMADD213PS(r, r, q)
	c.VADDPS(c.one, q, p)
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

func (c *wideLoop) silu(x reg.VecVirtual) reg.VecVirtual { return c.weighed(x, x) }

func (c *wideLoop) weighed(x, u reg.VecVirtual) reg.VecVirtual {
	s, y := c.sigmoid(u), c.ZMM()
	c.VMAXPS(x, c.least, y)
	c.VMULPS(y, s, s)
	return s
}

func (c *wideLoop) hardSwish(x reg.VecVirtual) reg.VecVirtual {
	y, zero := c.load(singleSixth), c.ZMM()
	c.VPXORD(zero, zero, zero)
	c.VFMADD213PS_BCST(c.at(singleHalf), x, y)
	c.VMAXPS(y, zero, y)
	c.VMINPS(y, c.one, y)
	c.VMULPS(x, y, y)
	return y
}

func (c *wideLoop) libmHardSwish(x reg.VecVirtual) reg.VecVirtual {
	y, zero, six := c.load(singleThree), c.ZMM(), c.load(singleSix)
	c.VPXORD(zero, zero, zero)
	c.VADDPS(y, x, y)
	c.VMAXPS(y, zero, y)
	c.VMINPS(y, six, y)
	c.VMULPS(x, y, y)
	c.VDIVPS(six, y, y)
	return y
}

func (c *wideLoop) geluTanh(x reg.VecVirtual) reg.VecVirtual {
	s, u := c.ZMM(), c.load(singleCube)
	c.VMULPS(x, x, s)
	c.VFMADD213PS_BCST(c.at(singleLine), s, u)
	c.VMULPS(x, u, u)
	return c.weighed(x, u)
}

func (c *wideLoop) tanh(x reg.VecVirtual) reg.VecVirtual {
	a, s, sign, y := c.ZMM(), c.ZMM(), c.ZMM(), c.ZMM()
	c.VPANDD_BCST(c.at(singleSign), x, sign)
	c.VPXORD(sign, x, a)
	c.VMULPS(a, a, s)
	near := c.horner(s, singleTanhNear, 6)
	c.VMULPS(a, s, s)
	c.VFMADD213PS(a, s, near)
	c.VCMPPS_BCST(operand.U8(29), c.at(singleTanhEdge), a, reg.K2)
	c.VADDPS(a, a, y)
	c.VPORD_BCST(c.at(singleSign), y, y)
	z, top := c.exp(y), c.ZMM()
	c.VSUBPS(z, c.one, top)
	c.VADDPS(c.one, z, z)
	c.VDIVPS(z, top, top)
	c.VMOVAPS(top, reg.K2, near)
	c.VPORD(sign, near, near)
	return near
}

func (c *wideLoop) gelu(x reg.VecVirtual) reg.VecVirtual {
	h, t, a, s, sign := c.ZMM(), c.ZMM(), c.ZMM(), c.ZMM(), c.ZMM()
	c.VMAXPS(x, c.least, h)
	c.VMULPS_BCST(c.at(singleHalf), h, h)
	c.VMULPS_BCST(c.at(singleRoot), x, t)
	c.VPANDD_BCST(c.at(singleSign), t, sign)
	c.VPXORD(sign, t, a)
	c.VMULPS(a, a, s)
	near := c.horner(s, singleErfNear, 7)
	c.VFMADD213PS(t, t, near)
	c.VFMADD213PS(h, h, near)
	c.VCMPPS_BCST(operand.U8(29), c.at(singleErfEdge), a, reg.K2)
	c.VCMPPS(operand.U8(17), c.most, a, reg.K3)
	c.VMINPS(a, c.most, a)
	y := c.horner(a, singleErfFar, 6)
	c.VMULPS(a, y, y)
	c.VSUBPS(a, y, y)
	e, two := c.exp(y), c.ZMM()
	c.VMOVAPS_Z(e, reg.K3, e)
	c.VADDPS(c.one, c.one, two)
	c.VSUBPS(e, two, two)
	c.VPMOVD2M(sign, reg.K3)
	c.VMOVAPS(e, reg.K3, two)
	c.VMULPS(h, two, two)
	c.VMOVAPS(two, reg.K2, near)
	return near
}

func (c *wideLoop) exponential(x reg.VecVirtual) reg.VecVirtual {
	most := c.load(singleMost)
	c.VMINPS(x, most, x)
	return c.exp(x)
}

func (c *wideLoop) logarithm(x reg.VecVirtual) reg.VecVirtual {
	y, e, m := c.ZMM(), c.ZMM(), c.ZMM()
	c.VCMPPS_BCST(operand.U8(17), c.at(singleTiny), x, reg.K2)
	c.VMOVAPS(x, y)
	c.VMULPS_BCST(c.at(singleUp), x, reg.K2, y)
	c.VPSUBD_BCST(c.at(singleMiddle), y, y)
	c.VPSRAD(operand.U8(23), y, e)
	c.VPANDD_BCST(c.at(singleFraction), y, m)
	c.VPADDD_BCST(c.at(singleMiddle), m, m)
	c.VCVTDQ2PS(e, e)
	c.VSUBPS_BCST(c.at(singleDown), e, reg.K2, e)
	f, s, d := c.ZMM(), c.ZMM(), c.ZMM()
	c.VSUBPS(c.one, m, f)
	c.VADDPS(c.one, m, m)
	c.VDIVPS(m, f, s)
	c.VMULPS(s, s, d)
	p, low := c.horner(d, singleLog+2*32, 6), c.ZMM()
	c.VMULPS_BCST(c.at(singleLow), e, low)
	c.VFMADD213PS(low, s, p)
	c.VFMADD231PS_BCST(c.at(singleHigh), e, p)
	zero, inf, least, none := c.ZMM(), c.load(singleInf), c.ZMM(), c.ZMM()
	c.VPXORD(zero, zero, zero)
	c.VPXORD_BCST(c.at(singleSign), inf, least)
	c.VPTERNLOGD(operand.U8(0xff), none, none, none)
	c.VCMPPS(operand.U8(0), zero, x, reg.K2)
	c.VMOVAPS(least, reg.K2, p)
	c.VCMPPS(operand.U8(17), zero, x, reg.K2)
	c.VMOVAPS(none, reg.K2, p)
	c.VCMPPS(operand.U8(notLess), inf, x, reg.K2)
	c.VMOVAPS(x, reg.K2, p)
	return p
}

func (c *wideLoop) softplus(x reg.VecVirtual) reg.VecVirtual {
	y, s, d, zero := c.ZMM(), c.ZMM(), c.ZMM(), c.ZMM()
	c.VPORD_BCST(c.at(singleSign), x, y)
	z := c.exp(y)
	c.VADDPS(c.one, c.one, d)
	c.VADDPS(z, d, d)
	c.VDIVPS(d, z, s)
	c.VMULPS(s, s, d)
	p := c.horner(d, singleLog, 8)
	c.VPXORD(zero, zero, zero)
	c.VMAXPS(x, zero, zero)
	c.VFMADD213PS(zero, s, p)
	return p
}

func (c *wideLoop) mish(x reg.VecVirtual) reg.VecVirtual {
	y, top, d, two := c.ZMM(), c.ZMM(), c.ZMM(), c.ZMM()
	c.VPORD_BCST(c.at(singleSign), x, y)
	z := c.exp(y)
	c.VPMOVD2M(x, reg.K2)
	above := c.ZMM()
	c.VADDPS(c.one, c.one, two)
	c.VADDPS(two, z, top)
	c.VMULPS(z, top, top)
	c.VMOVAPS(c.one, above)
	c.VFMADD231PS(two, z, above)
	c.VMULPS(z, z, d)
	c.VADDPS(d, d, d)
	c.VMOVAPS(top, reg.K2, above)
	c.VMOVAPS(two, reg.K2, d)
	c.VADDPS(above, d, d)
	c.VMAXPS(x, c.least, y)
	c.VMULPS(y, above, above)
	c.VDIVPS(d, above, above)
	return above
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
	a.function(name+"AVX512", "func(dst, src *float32, n int, t *SingleTable)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	c := a.wide()
	n := a.Load(a.Param("n"), a.GP64())
	a.sixteens(n, func() {
		x := a.ZMM()
		a.VMOVUPS(at(src, 0), x)
		a.VMOVUPS(f(c, x), at(dst, 0))
		a.ADDQ(operand.U8(64), src)
		a.ADDQ(operand.U8(64), dst)
	}, func() {
		rest := a.ZMM()
		a.VMOVUPS_Z(at(src, 0), reg.K1, rest)
		a.VMOVUPS(f(c, rest), reg.K1, at(dst, 0))
	})
	a.VZEROUPPER()
	a.RET()
}

func (a *asm) wide() *wideLoop {
	c := &wideLoop{asm: a, table: a.Load(a.Param("t"), a.GP64())}
	c.least, c.one, c.most = c.load(singleLeast), c.load(singleOne), c.load(singleErfMost)
	return c
}

// sixteens runs whole for each sixteen of n values, and then rest, with K1 as mask, for those
// that are left.
func (a *asm) sixteens(n reg.Register, whole, rest func()) {
	a.Label("many")
	a.SUBQ(operand.U8(16), n)
	a.JLT(operand.LabelRef("few"))
	whole()
	a.JMP(operand.LabelRef("many"))
	a.Label("few")
	a.ADDQ(operand.U8(16), n)
	a.JZ(operand.LabelRef("end"))
	bits := a.GP64()
	a.MOVQ(operand.I32(-1), bits)
	a.BZHIQ(n, bits, bits)
	a.KMOVW(bits.As32(), reg.K1)
	rest()
	a.Label("end")
}

// notLess is the comparison that NaN passes.
const notLess = 21

// expSum writes the exponential of values less shift, the largest, and returns the sum of the
// results. What is less than the least normal number becomes zero, as it is of masked scores:
// some processors take a hundred times as long for such numbers, here and in what reads them.
func (a *asm) expSum() {
	a.function("expSumAVX2", "func(dst, src *float32, n int, shift float32, t *SingleTable) float64")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	c := &singleLoop{a, a.Load(a.Param("t"), a.GP64())}
	n := a.Load(a.Param("n"), a.GP64())
	shift, low, high := a.spreadParam("shift"), a.YMM(), a.YMM()
	bits, narrow, bias := a.GP32(), a.XMM(), a.YMM()
	a.MOVL(operand.U32(math.Float32bits(1.5*(1<<23)+127)), bits)
	a.VMOVD(bits, narrow)
	a.VPBROADCASTD(narrow, bias)
	a.VXORPD(low, low, low)
	a.VXORPD(high, high, high)
	a.loop(n, 8, func() {
		y, d, half := a.YMM(), a.YMM(), a.XMM()
		a.VMOVUPS(at(src, 0), y)
		a.VSUBPS(shift, y, y)
		some := a.YMM()
		a.VCMPPS(operand.U8(notLess), c.at(singleNormal), y, some)
		a.VANDPS(some, y, y)
		e := c.expNormal(y, bias)
		a.VANDPS(some, e, e)
		a.VMOVUPS(e, at(dst, 0))
		a.VCVTPS2PD(e.AsX(), d)
		a.VADDPD(d, low, low)
		a.VEXTRACTF128(operand.U8(1), e, half)
		a.VCVTPS2PD(half, d)
		a.VADDPD(d, high, high)
	}, step{src, 32}, step{dst, 32})
	a.VADDPD(high, low, low)
	a.total(low)
}

// total returns the sum of four numbers.
func (a *asm) total(sum reg.VecVirtual) {
	x := a.XMM()
	a.VHADDPD(sum, sum, sum)
	a.VEXTRACTF128(operand.U8(1), sum, x)
	a.VADDSD(x, sum.AsX(), x)
	a.Store(x, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}

// expSumWide is expSum for sixteen values at a time, and the rest.
func (a *asm) expSumWide() {
	a.function("expSumAVX512", "func(dst, src *float32, n int, shift float32, t *SingleTable) float64")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	c := a.wide()
	least := c.load(singleNormal)
	exp := func(y reg.VecVirtual) reg.VecVirtual {
		a.VCMPPS(operand.U8(notLess), least, y, reg.K2)
		a.VMOVAPS_Z(y, reg.K2, y)
		e := c.exp(y)
		a.VMOVAPS_Z(e, reg.K2, e)
		return e
	}
	n := a.Load(a.Param("n"), a.GP64())
	narrow, shift, low, high := a.XMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.Load(a.Param("shift"), narrow)
	a.VBROADCASTSS(narrow, shift)
	a.VPXORQ(low, low, low)
	a.VPXORQ(high, high, high)
	add := func(e reg.VecVirtual) {
		d, half := a.ZMM(), a.YMM()
		a.VCVTPS2PD(e.AsY(), d)
		a.VADDPD(d, low, low)
		a.VEXTRACTF64X4(operand.U8(1), e, half)
		a.VCVTPS2PD(half, d)
		a.VADDPD(d, high, high)
	}
	a.sixteens(n, func() {
		y := a.ZMM()
		a.VMOVUPS(at(src, 0), y)
		a.VSUBPS(shift, y, y)
		e := exp(y)
		a.VMOVUPS(e, at(dst, 0))
		add(e)
		a.ADDQ(operand.U8(64), src)
		a.ADDQ(operand.U8(64), dst)
	}, func() {
		y := a.ZMM()
		a.VMOVUPS_Z(at(src, 0), reg.K1, y)
		a.VSUBPS(shift, y, y)
		e := exp(y)
		a.VMOVUPS(e, reg.K1, at(dst, 0))
		a.VMOVAPS_Z(e, reg.K1, e)
		add(e)
	})
	a.VADDPD(high, low, low)
	quarter := a.YMM()
	a.VEXTRACTF64X4(operand.U8(1), low, quarter)
	sum := a.YMM()
	a.VADDPD(quarter, low.AsY(), sum)
	a.total(sum)
}
