package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
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
	libmMost
	libmLeast
	libmTable
	libmHalves = libmTable + 32*8 // of the powers of two: the lower ones, then the upper
)

func curves(a *asm) {
	a.libmExp("libmExp", false)
	a.libmExp("libmExpDivide", true)
	a.softmaxColumns()
	a.libmExpWide()
	a.libmSigmoid()
	a.libmSigmoidWide()
	a.libmTanh()
	a.libmTanhNarrow()
	a.libmLog()
	a.libmWave()
	a.shares()
}

// curveLoop is a loop over eight values at a time. Of the numbers that every four values need, two
// are in registers.
type curveLoop struct {
	*asm
	table        reg.Register
	dst, src     reg.Register
	scale, shift reg.VecVirtual
}

func (c *curveLoop) at(off int) operand.Mem { return at(c.table, off) }

// scaled is the power of two of a shifted number.
func (c *curveLoop) scaled(k reg.VecVirtual) reg.VecVirtual {
	i, s, mask := c.YMM(), c.YMM(), c.YMM()
	c.VPAND(c.at(libmIndex), k, i)
	c.VPXOR(mask, mask, mask) // so that the allocator knows that nothing reads it before
	c.VPCMPEQD(mask, mask, mask)
	c.VPGATHERQQ(mask, operand.Mem{Base: c.table, Disp: libmTable, Index: i, Scale: 8}, s)
	c.VPSLLQ(operand.U8(52-5), k, k)
	c.VPADDQ(k, s, s)
	return s
}

func (a *asm) libmLoop() *curveLoop {
	c := &curveLoop{asm: a}
	c.dst = a.Load(a.Param("dst"), a.GP64())
	c.src = a.Load(a.Param("src"), a.GP64())
	c.table = a.Load(a.Param("t"), a.GP64())
	c.scale, c.shift = a.YMM(), a.YMM()
	a.VMOVUPD(c.at(libmScale), c.scale)
	a.VMOVUPD(c.at(libmShift), c.shift)
	return c
}

// libmExp writes the exponential of (x - top)·beta. With quotients it divides as many other values
// by a number: that takes no time, since another unit of the processor does it.
func (a *asm) libmExp(name string, quotients bool) {
	more := ""
	if quotients {
		more = ", others *float32, by float32"
	}
	a.function(name+"AVX2", "func(dst, src *float32, n int, top, beta float32, t *LibmTable"+more+")")
	c := a.libmLoop()
	n := a.Load(a.Param("n"), a.GP64())
	top, beta := a.spreadParam("top"), a.spreadParam("beta")
	steps := []step{{c.src, 32}, {c.dst, 32}}
	var others reg.Register
	var by reg.VecVirtual
	if quotients {
		others, by = a.Load(a.Param("others"), a.GP64()), a.spreadParam("by")
		steps = append(steps, step{others, 32})
	}
	a.eights(name+"AVX2", n, func(mask reg.Register) {
		if quotients {
			y := a.YMM()
			a.loadSomeOf8(at(others, 0), mask, y)
			a.VDIVPS(by, y, y)
			a.storeSomeOf8(y, mask, at(others, 0))
		}
		x := a.YMM()
		a.loadSomeOf8(at(c.src, 0), mask, x)
		a.VSUBPS(top, x, x)
		a.VMULPS(beta, x, x)
		a.storeSomeOf8(c.expOfEight(x), mask, at(c.dst, 0))
	}, steps...)
	a.VZEROUPPER()
	a.RET()
}

// softmaxColumns writes the exponentials of eight columns of lines that are step bytes apart, less
// the largest of each column and times beta, and their sums in order. It divides the columns at
// before, whose sums it reads. The first function only divides.
func (a *asm) softmaxColumns() {
	a.function("quotientsOfColumnsAVX2", "func(dst *float32, lines, step int, sums *float32)")
	dst, lines, step := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("lines"), a.GP64()), a.Load(a.Param("step"), a.GP64())
	sum := a.YMM()
	a.VMOVUPS(at(a.Load(a.Param("sums"), a.GP64()), 0), sum)
	a.Label("line")
	y := a.YMM()
	a.VMOVUPS(at(dst, 0), y)
	a.VDIVPS(sum, y, y)
	a.VMOVUPS(y, at(dst, 0))
	a.ADDQ(step, dst)
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("line"))
	a.VZEROUPPER()
	a.RET()

	a.function("libmSoftmaxColumnsAVX2", "func(dst, src *float32, lines, step int, beta float32, t *LibmTable, before, sums *float32)")
	c := a.libmLoop()
	lines, step = a.Load(a.Param("lines"), a.GP64()), a.Load(a.Param("step"), a.GP64())
	before, sums, beta := a.Load(a.Param("before"), a.GP64()), a.Load(a.Param("sums"), a.GP64()), a.spreadParam("beta")
	p, left, top, by := a.GP64(), a.GP64(), a.YMM(), a.YMM()
	a.VMOVUPS(at(sums, 0), by)
	a.MOVQ(c.src, p)
	a.MOVQ(lines, left)
	a.VMOVUPS(at(p, 0), top)
	a.Label("largest")
	a.VMAXPS(at(p, 0), top, top) // with a NaN all results are NaN in any case
	a.ADDQ(step, p)
	a.DECQ(left)
	a.JNZ(operand.LabelRef("largest"))
	sum = a.YMM()
	a.VXORPS(sum, sum, sum)
	a.Label("exponentials")
	y = a.YMM()
	a.VMOVUPS(at(before, 0), y)
	a.VDIVPS(by, y, y)
	a.VMOVUPS(y, at(before, 0))
	x := a.YMM()
	a.VMOVUPS(at(c.src, 0), x)
	a.VSUBPS(top, x, x)
	a.VMULPS(beta, x, x)
	e := c.expOfEight(x)
	a.VADDPS(e, sum, sum)
	a.VMOVUPS(e, at(c.dst, 0))
	for _, at := range []reg.Register{before, c.src, c.dst} {
		a.ADDQ(step, at)
	}
	a.DECQ(lines)
	a.JNZ(operand.LabelRef("exponentials"))
	a.VMOVUPS(sum, at(sums, 0))
	a.VZEROUPPER()
	a.RET()
}

// libmWide is what exponentials of package libm need for sixteen values at a time: numbers and
// powers of two in registers.
type libmWide struct {
	*asm
	dst, src, n                     reg.Register
	scale, shift, c0, c1, c2, one   reg.VecVirtual
	most, least                     reg.VecVirtual
	low0, low1, high0, high1, table reg.Register
}

// libmWide loads the arguments that all have in common.
func (a *asm) libmWide() *libmWide {
	c := &libmWide{asm: a}
	c.dst = a.Load(a.Param("dst"), a.GP64())
	c.src = a.Load(a.Param("src"), a.GP64())
	c.n = a.Load(a.Param("n"), a.GP64())
	c.table = a.Load(a.Param("t"), a.GP64())
	number := func(place int) reg.VecVirtual {
		v := a.ZMM()
		a.VBROADCASTSD(at(c.table, place), v)
		return v
	}
	c.scale, c.shift, c.one = number(libmScale), number(libmShift), number(libmOne)
	c.c0, c.c1, c.c2 = number(libmC0), number(libmC1), number(libmC2)
	c.most, c.least = c.single(libmMost), c.single(libmLeast)
	for i, v := range []*reg.Register{&c.low0, &c.low1, &c.high0, &c.high1} {
		z := a.ZMM()
		a.VMOVDQU32(at(c.table, libmHalves+64*i), z)
		*v = z
	}
	return c
}

// single is a float32 of the table in all lanes.
func (c *libmWide) single(place int) reg.VecVirtual {
	v := c.ZMM()
	c.VBROADCASTSS(at(c.table, place), v)
	return v
}

// exp is Exp of package libm. Above the limit, which changes no result, it is as there; below the
// other one nothing is left, see [curveLoop.expOfEight]. some is a mask to use.
func (c *libmWide) exp(x reg.VecVirtual, some reg.Register) reg.VecVirtual {
	y, far := c.ZMM(), c.YMM()
	c.VMINPS(x, c.most, y) // NaN passes
	c.VCMPPS(operand.U8(notLess), c.least, y, some)
	c.VMOVAPS_Z(y, some, y)
	c.VEXTRACTF64X4(operand.U8(1), y, far)
	var r, k [2]reg.VecVirtual
	for i, half := range []reg.Register{y.AsY(), far} {
		d, kd := c.ZMM(), c.ZMM()
		k[i], r[i] = c.ZMM(), c.ZMM()
		c.VCVTPS2PD(half, d)
		c.VMULPD(c.scale, d, d)
		c.VADDPD(c.shift, d, k[i])
		c.VSUBPD(c.shift, k[i], kd)
		c.VSUBPD(kd, d, r[i])
	}
	// Of the shifted numbers the lower halves: for every two of the first those of two of the
	// second. The powers come in halves, too, which go together again in the same order.
	high, low, up := c.ZMM(), c.ZMM(), c.ZMM()
	c.VSHUFPS(operand.U8(0x88), k[1], k[0], high)
	c.VPSLLD(operand.U8(52-5-32), high, up)
	c.VMOVDQA64(high, low)
	c.VPERMI2D(c.high1, c.high0, high)
	c.VPERMI2D(c.low1, c.low0, low)
	c.VPADDD(up, high, high)
	s := [2]reg.VecVirtual{c.ZMM(), c.ZMM()}
	c.VPUNPCKLDQ(high, low, s[0])
	c.VPUNPCKHDQ(high, low, s[1])
	var e [2]reg.VecVirtual
	for i := range e {
		p, q := c.ZMM(), c.ZMM()
		e[i] = c.YMM()
		c.VMULPD(c.c0, r[i], p)
		c.VADDPD(c.c1, p, p)
		c.VMULPD(r[i], r[i], q)
		c.VMULPD(q, p, p)
		c.VMULPD(c.c2, r[i], q)
		c.VADDPD(c.one, q, q)
		c.VADDPD(q, p, p)
		c.VMULPD(s[i], p, p)
		c.VCVTPD2PS(p, e[i])
	}
	all := c.ZMM()
	c.VINSERTF64X4(operand.U8(1), e[1], e[0].AsZ(), all)
	c.VMOVAPS_Z(all, some, all)
	return all
}

// each writes f of all values; masks are for f to use.
func (c *libmWide) each(together int, f func(x reg.VecVirtual, masks []reg.OpmaskPhysical) reg.VecVirtual) {
	c.chains("values", c.n, 16, together, func(off, chain int, mask reg.Register) {
		x := c.ZMM()
		c.loadFloats(at(c.src, off), mask, x)
		c.storeFloats(f(x, maskRegs[2+3*chain:]), mask, at(c.dst, off))
	}, step{c.src, 64}, step{c.dst, 64})
	c.VZEROUPPER()
	c.RET()
}

// libmExpWide is libmExp for any number of values.
func (a *asm) libmExpWide() {
	a.function("libmExpAVX512", "func(dst, src *float32, n int, top, beta float32, t *LibmTable)")
	c, top, beta := a.libmWide(), a.ZMM(), a.ZMM()
	for i, v := range []reg.VecVirtual{top, beta} {
		x := a.XMM()
		a.Load(a.Param([]string{"top", "beta"}[i]), x)
		a.VBROADCASTSS(x, v)
	}
	c.each(2, func(x reg.VecVirtual, masks []reg.OpmaskPhysical) reg.VecVirtual {
		a.VSUBPS(top, x, x)
		a.VMULPS(beta, x, x)
		return c.exp(x, masks[0])
	})
}

// libmSigmoidWide is libmSigmoid for any number of values.
func (a *asm) libmSigmoidWide() {
	a.function("libmSigmoidAVX512", "func(dst, src *float32, n int, t *LibmTable)")
	c := a.libmWide()
	sign, ones, top, bottom := c.single(libmSign), c.single(libmOnes), c.single(libmTop), c.single(libmBottom)
	c.each(2, func(x reg.VecVirtual, masks []reg.OpmaskPhysical) reg.VecVirtual {
		turned, y := a.ZMM(), a.ZMM()
		a.VCMPPS(operand.U8(17), bottom, x, masks[0])
		a.VCMPPS(operand.U8(30), top, x, masks[1])
		a.VPXORD(sign, x, turned)
		a.VMOVAPS(x, masks[0], turned)
		e := c.exp(turned, masks[2])
		a.VADDPS(ones, e, y)
		a.VDIVPS(y, ones, y)
		a.VMOVAPS(e, masks[0], y)
		a.VMOVAPS(ones, masks[1], y)
		return y
	})
}

// libmSigmoid writes Sigmoid of package libm.
func (a *asm) libmSigmoid() {
	a.function("libmSigmoidAVX2", "func(dst, src *float32, n int, t *LibmTable)")
	c := a.libmLoop()
	n := a.Load(a.Param("n"), a.GP64())
	a.eights("libmSigmoidAVX2", n, func(mask reg.Register) {
		x, turned, low, one, y := a.YMM(), a.YMM(), a.YMM(), a.YMM(), a.YMM()
		a.loadSomeOf8(at(c.src, 0), mask, x)
		a.VXORPS(c.at(libmSign), x, turned)
		a.VCMPPS(operand.U8(17), c.at(libmBottom), x, low)
		a.VBLENDVPS(low, x, turned, turned)
		e := c.expOfEight(turned)
		a.VMOVUPS(c.at(libmOnes), one)
		a.VADDPS(one, e, y)
		a.VDIVPS(y, one, y)
		a.VBLENDVPS(low, e, y, y)
		a.VCMPPS(operand.U8(30), c.at(libmTop), x, low)
		a.VBLENDVPS(low, one, y, y)
		a.storeSomeOf8(y, mask, at(c.dst, 0))
	}, step{c.src, 32}, step{c.dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// libmLog writes Log of package libm. t has the table's factors, then its logarithms, and the
// numbers behind logLn2.
func (a *asm) libmLog() {
	const (
		logLn2 = 8*32 + 8*iota
		logA0
		logA1
		logA2
		logOne
	)
	a.function("libmLogAVX512", "func(dst, src *float32, n int, t *float64)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	t := a.Load(a.Param("t"), a.GP64())
	zero, least, scale, down := a.ZMM(), a.number512(1<<23), a.number512(0x4b000000), a.number512(23<<23)
	offset, exponent := a.number512(0x3f330000), a.number512(0xff800000)
	// -infinity has the same bits
	infinity, none, negative := a.number512(0x7f800000), a.number512(0x7fc00000), exponent
	a.VPXORD(zero, zero, zero)
	var tables [4]reg.VecVirtual
	for i := range tables {
		tables[i] = a.ZMM()
		a.VMOVUPD(at(t, 64*i), tables[i])
	}
	double := func(place int) reg.VecVirtual {
		v := a.ZMM()
		a.VBROADCASTSD(at(t, place), v)
		return v
	}
	ln2, a0, a1, a2, one := double(logLn2), double(logA0), double(logA1), double(logA2), double(logOne)
	a.masked("values", n, 16, func(mask reg.Register) {
		x, b, u, k := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		a.loadFloats(at(src, 0), mask, x)
		// Numbers below the least normal one are multiplied by 2^23, which is taken out again.
		a.VMOVAPS(x, b)
		a.VPCMPUD(operand.U8(1), least, x, reg.K2)
		a.VMULPS(scale, x, reg.K2, b)
		a.VPSUBD(down, b, reg.K2, b)
		a.VPSUBD(offset, b, u)
		a.VPSRAD(operand.U8(23), u, k)
		i := a.ZMM()
		a.VPSRLD(operand.U8(23-4), u, i) // of which the lower four bits count
		a.VPANDD(exponent, u, u)
		a.VPSUBD(u, b, b)
		var parts [2]reg.VecVirtual
		for h := range parts {
			z, of, place := b.AsY(), k.AsY(), i.AsY()
			if h == 1 {
				upper := [3]reg.VecVirtual{a.YMM(), a.YMM(), a.YMM()}
				for j, v := range []reg.VecVirtual{b, k, i} {
					a.VEXTRACTI64X4(operand.U8(1), v, upper[j])
				}
				z, of, place = upper[0], upper[1], upper[2]
			}
			r, y0, by, y, square := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
			a.VPMOVZXDQ(place, by)
			log := a.ZMM()
			a.VMOVDQA64(by, log)
			a.VPERMI2PD(tables[1], tables[0], by)
			a.VPERMI2PD(tables[3], tables[2], log)
			a.VCVTPS2PD(z, r)
			a.VMULPD(by, r, r)
			a.VSUBPD(one, r, r)
			a.VCVTDQ2PD(of, y0)
			a.VMULPD(ln2, y0, y0)
			a.VADDPD(y0, log, y0)
			a.VMULPD(r, r, square)
			a.VMULPD(a1, r, y)
			a.VADDPD(a2, y, y)
			a.VMULPD(a0, square, by)
			a.VADDPD(y, by, y)
			a.VMULPD(square, y, y)
			a.VADDPD(r, y0, y0)
			a.VADDPD(y0, y, y)
			parts[h] = a.YMM()
			a.VCVTPD2PS(y, parts[h])
		}
		r := a.ZMM()
		a.VINSERTF64X4(operand.U8(1), parts[1], parts[0].AsZ(), r)
		a.VCMPPS(operand.U8(0), infinity, x, reg.K2)
		a.VMOVAPS(x, reg.K2, r)
		a.VCMPPS(operand.U8(25), zero, x, reg.K2) // less, or no number
		a.VMOVAPS(none, reg.K2, r)
		a.VCMPPS(operand.U8(0), zero, x, reg.K2)
		a.VMOVAPS(negative, reg.K2, r)
		a.storeFloats(r, mask, at(dst, 0))
	}, step{src, 64}, step{dst, 64})
	a.VZEROUPPER()
	a.RET()
}

// shares writes rows of n values divided by a number each, as division rounds them. A product
// with the reciprocal is made exact by two steps of Newton with fused remainders (Markstein,
// IA-64 and Elementary Functions), which a processor does in a third of the time of dividing,
// where no remainder can be too small: of numbers from 2^-60 to 2^60, and of zero. Registers with
// others are divided.
func (a *asm) shares() {
	a.function("sharesAVX512", "func(dst, src *float32, n int, by *float32, rows int)")
	dst, src := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64())
	n, by, rows := a.Load(a.Param("n"), a.GP64()), a.Load(a.Param("by"), a.GP64()), a.Load(a.Param("rows"), a.GP64())
	least, span, one := a.number512((127-60)<<23), a.number512(120<<23), a.number512(127<<23)
	whole, part, left := a.ZMM(), a.ZMM(), a.GP64()
	a.Label("row")
	a.VBROADCASTSS(at(by, 0), whole)
	a.VDIVPS(whole, one, part)
	a.MOVQ(n, left)
	divide := func(name string, mask reg.Register) {
		x, q, e, far := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		a.loadFloats(at(src, 0), mask, x)
		a.VPSUBD(least, x, far)
		a.VPCMPUD(operand.U8(6), span, far, reg.K2)
		a.VPTESTMD(x, x, reg.K2, reg.K2)
		a.VMULPS(part, x, q)
		a.VMOVAPS(x, e)
		a.VFNMADD231PS(whole, q, e)
		a.VFMADD231PS(part, e, q)
		a.VMOVAPS(x, e)
		a.VFNMADD231PS(whole, q, e)
		a.VFMADD231PS(part, e, q)
		a.KTESTW(reg.K2, reg.K2)
		a.JZ(operand.LabelRef(name))
		a.VDIVPS(whole, x, q)
		a.Label(name)
		a.storeFloats(q, mask, at(dst, 0))
	}
	a.sixteens(left, func() {
		divide("divided", nil)
		a.ADDQ(operand.U8(64), src)
		a.ADDQ(operand.U8(64), dst)
	}, func() {
		divide("rest", reg.K1)
		a.LEAQ(operand.Mem{Base: src, Index: left, Scale: 4}, src)
		a.LEAQ(operand.Mem{Base: dst, Index: left, Scale: 4}, dst)
	})
	a.ADDQ(operand.U8(4), by)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}
