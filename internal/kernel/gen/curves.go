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
	a.libmExp()
	a.libmExpWide()
	a.libmSigmoid()
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
