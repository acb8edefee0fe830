package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// masksOf8 writes the table that maskOf8 reads.
func (a *asm) masksOf8(name string) operand.Mem {
	masks := a.StaticGlobal(name + "Masks")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		a.AddDatum(4*i, operand.U32([]uint32{math.MaxUint32, 0}[i/8]))
	}
	return masks
}

// maskOf8 makes the mask of the first n numbers, at most 8. p is a register to use.
func (a *asm) maskOf8(masks operand.Mem, n, p, mask reg.Register) {
	a.LEAQ(masks, p)
	a.SHLQ(operand.U8(2), n)
	a.SUBQ(n, p)
	a.VMOVUPS(at(p, 32), mask)
	a.SHRQ(operand.U8(2), n)
}

// eights runs body for eight numbers at a time, then with a mask for the rest.
func (a *asm) eights(name string, n reg.Register, body func(mask reg.Register), steps ...step) {
	masks := a.masksOf8(name)
	a.Label("eight")
	a.SUBQ(operand.U8(8), n)
	a.JLT(operand.LabelRef("few"))
	body(nil)
	for _, s := range steps {
		a.ADDQ(operand.U8(uint8(s.by)), s.p)
	}
	a.JMP(operand.LabelRef("eight"))
	a.Label("few")
	a.ADDQ(operand.U8(8), n)
	a.JZ(operand.LabelRef("end"))
	mask := a.YMM()
	a.maskOf8(masks, n, a.GP64(), mask)
	body(mask)
	a.Label("end")
}

func (a *asm) loadSomeOf8(m operand.Mem, mask, x reg.Register) {
	if mask != nil {
		a.VMASKMOVPS(m, mask, x)
	} else {
		a.VMOVUPS(m, x)
	}
}

func (a *asm) storeSomeOf8(x, mask reg.Register, m operand.Mem) {
	if mask != nil {
		a.VMASKMOVPS(x, mask, m)
	} else {
		a.VMOVUPS(x, m)
	}
}

// eightTimes writes numbers to a table, each eight times, then rows of eight as they are.
func (a *asm) eightTimes(name string, numbers []uint32, rows ...[8]float32) operand.Mem {
	table := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range numbers {
		for k := range 8 {
			a.AddDatum(32*i+4*k, operand.U32(v))
		}
	}
	for i, row := range rows {
		for k, v := range row {
			a.AddDatum(32*(len(numbers)+i)+4*k, operand.U32(math.Float32bits(v)))
		}
	}
	return table
}

// Numbers of expm1Narrow after tanhNumbers, and rows that VPERMILPS looks up by the multiple of
// ln 2 in a negative argument, at most 3: what is added before and after the product with a power.
const (
	narrowLn2hi = tanhStep + 1 + iota
	narrowLn2lo
	narrowMost
	narrowBias
	narrowBefore
	narrowAfter
)

var narrowNumbers = append(append([]uint32{}, tanhNumbers...), math.Float32bits(tanhLn2hi), math.Float32bits(tanhLn2lo), 3, 127)

// expm1Narrow is [expm1] for eight values. A sign turns the argument; k is how often ln 2 is in its
// magnitude.
type expm1Narrow struct {
	*asm
	table reg.Register
}

func (a *asm) expm1Narrow(table operand.Mem) expm1Narrow {
	e := expm1Narrow{a, a.GP64()}
	a.LEAQ(table, e.table)
	return e
}

func (e expm1Narrow) num(i int) operand.Mem { return at(e.table, 32*i) }

// multiple is x/ln 2, rounded, for x that is not negative.
func (e expm1Narrow) multiple(x reg.VecVirtual) reg.VecVirtual {
	k := e.YMM()
	e.VMULPS(e.num(tanhInvLn2), x, k)
	e.VADDPS(e.num(tanhHalf), k, k)
	e.VCVTTPS2DQ(k, k)
	return k
}

// of computes e^y - 1 of a negative y, or where big is set, of a positive one of at least 2. sign
// is that of y. y changes.
func (e expm1Narrow) of(y, k, sign, big reg.VecVirtual) reg.VecVirtual {
	num := e.num
	few := e.YMM()
	e.VPMINSD(num(narrowMost), k, few)
	before, after := e.YMM(), e.YMM()
	table := e.YMM()
	e.VMOVUPS(num(narrowBefore), table)
	e.VPERMILPS(few, table, before)
	e.VMOVUPS(num(narrowAfter), table)
	e.VPERMILPS(few, table, after)
	hi, lo, c, power := e.YMM(), e.YMM(), e.YMM(), e.YMM()
	bias := e.YMM()
	e.VMOVDQU(num(narrowBias), bias)
	e.VPSUBD(k, bias, power)
	e.VPSLLD(operand.U8(23), power, power)
	e.VCVTDQ2PS(k, c)
	if big != nil {
		// 1 - 2^-k before, nothing after, and the power is 2^k.
		less, up := e.YMM(), e.YMM()
		e.VMOVUPS(num(tanhOne), less)
		e.VSUBPS(power, less, less)
		e.VBLENDVPS(big, less, before, before)
		e.VPANDN(after, big, after)
		e.VPADDD(k, bias, up)
		e.VPSLLD(operand.U8(23), up, up)
		e.VBLENDVPS(big, up, power, power)
		e.VXORPS(sign, c, c)
	} else {
		e.VXORPS(num(tanhSign), c, c)
	}
	e.VMULPS(num(narrowLn2hi), c, hi)
	e.VMULPS(num(narrowLn2lo), c, lo)
	e.VSUBPS(hi, y, hi)
	e.VSUBPS(lo, hi, y)
	e.VSUBPS(y, hi, c)
	e.VSUBPS(lo, c, c)
	hfx, hxs, r, t, d, f := e.YMM(), e.YMM(), e.YMM(), e.YMM(), e.YMM(), e.YMM()
	e.VMULPS(num(tanhHalf), y, hfx)
	e.VMULPS(hfx, y, hxs)
	e.VMULPS(num(tanhQ5), hxs, r)
	for _, q := range []int{tanhQ4, tanhQ3, tanhQ2, tanhQ1, tanhOne} {
		e.VADDPS(num(q), r, r)
		if q != tanhOne {
			e.VMULPS(hxs, r, r)
		}
	}
	number := e.YMM()
	e.VMULPS(hfx, r, t)
	e.VMOVUPS(num(tanhThree), number)
	e.VSUBPS(t, number, t)
	e.VMULPS(t, y, d)
	e.VMOVUPS(num(tanhSix), number)
	e.VSUBPS(d, number, d)
	e.VSUBPS(t, r, f)
	e.VDIVPS(d, f, f)
	e.VMULPS(hxs, f, f)
	e.VSUBPS(c, f, f)
	e.VMULPS(y, f, f)
	e.VSUBPS(c, f, f)
	e.VSUBPS(hxs, f, f)
	e.VSUBPS(f, y, y)
	e.VADDPS(before, y, y)
	e.VFMADD213PS(after, y, power)
	return power
}

// libmTanhNarrow is libmTanh for eight values.
func (a *asm) libmTanhNarrow() {
	table := a.eightTimes("libmNarrow", narrowNumbers, [8]float32{0, 0, 1, 1, 0, 0, 1, 1}, [8]float32{0, -0.5, -1, -1, 0, -0.5, -1, -1})
	a.libmEluNarrow(table)
	a.function("libmTanhAVX2", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	e := a.expm1Narrow(table)
	num := e.num
	a.eights("libmTanhAVX2", n, func(mask reg.Register) {
		x, y, big, sign, top := a.YMM(), a.YMM(), a.YMM(), a.YMM(), a.YMM()
		a.loadSomeOf8(at(src, 0), mask, x)
		a.VANDPS(num(tanhNoSign), x, y)
		a.VMOVUPS(num(tanhTop), top)
		a.VMINPS(y, top, y)                            // NaN stays such
		a.VCMPPS(operand.U8(29), num(tanhOne), y, big) // at least 1
		a.VMOVUPS(num(tanhSign), top)
		a.VANDNPS(top, big, sign)
		// y = 2a or -2a.
		a.VADDPS(y, y, y)
		k := e.multiple(y)
		a.VXORPS(sign, y, y)
		t := e.of(y, k, sign, big)
		// 1 - 2/(t+2), or -t/(t+2).
		d, one, two := a.YMM(), a.YMM(), a.YMM()
		a.VMOVUPS(num(tanhTwo), two)
		a.VADDPS(two, t, d)
		a.VBLENDVPS(big, two, t, t)
		a.VANDPS(num(tanhOne), big, one)
		a.VDIVPS(d, t, t)
		a.VSUBPS(t, one, t)
		a.VANDPS(num(tanhSign), x, x)
		a.VORPS(x, t, t)
		a.storeSomeOf8(t, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// libmEluNarrow is libmElu for eight values.
func (a *asm) libmEluNarrow(table operand.Mem) {
	a.function("libmEluAVX2", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	e := a.expm1Narrow(table)
	a.eights("libmEluAVX2", n, func(mask reg.Register) {
		x, y, negative, zero := a.YMM(), a.YMM(), a.YMM(), a.YMM()
		a.loadSomeOf8(at(src, 0), mask, x)
		a.VXORPS(zero, zero, zero)
		a.VCMPPS(operand.U8(17), zero, x, negative)
		a.VANDPS(e.num(tanhNoSign), x, y)
		a.VMINPS(e.num(tanhEluTop), y, y)
		k := e.multiple(y)
		a.VXORPS(e.num(tanhSign), y, y)
		a.VBLENDVPS(negative, e.of(y, k, nil, nil), x, x)
		a.storeSomeOf8(x, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// expOfEight is Exp of package libm for eight float32. Values of which nothing is left are not
// computed: some processors take a hundred times as long for numbers that are too small. The
// polynomial is fused, which changes no result of any float32. Fusing the reduction of the argument
// would change two results.
func (c *curveLoop) expOfEight(x reg.VecVirtual) reg.VecVirtual {
	none, some := c.YMM(), c.YMM()
	c.VCMPPS(operand.U8(17), c.at(libmBelow), x, none)
	c.VMOVUPS(c.at(libmMost), some)
	c.VMINPS(x, some, some) // NaN passes
	c.VANDNPS(some, none, some)
	upper := c.XMM()
	c.VEXTRACTF128(operand.U8(1), some, upper)
	parts := [2]reg.Register{some.AsX(), upper}
	all := c.YMM()
	c.VXORPS(all, all, all) // so that the allocator knows all of it to be written
	e := [2]reg.Register{all.AsX(), c.XMM()}
	for i, half := range parts {
		d, kd, p, k := c.YMM(), c.YMM(), c.YMM(), c.YMM()
		c.VCVTPS2PD(half, d)
		c.VMULPD(c.scale, d, d)
		c.VADDPD(c.shift, d, k)
		c.VSUBPD(c.shift, k, kd)
		c.VSUBPD(kd, d, d)
		s := c.scaled(k)
		c.VMOVUPD(c.at(libmC1), p)
		c.VFMADD231PD(c.at(libmC0), d, p)
		c.VFMADD213PD(c.at(libmC2), d, p)
		c.VFMADD213PD(c.at(libmOne), d, p)
		c.VMULPD(s, p, p)
		c.VCVTPD2PSY(p, e[i])
	}
	c.VINSERTF128(operand.U8(1), e[1], all, all)
	c.VANDNPS(all, none, all)
	return all
}
