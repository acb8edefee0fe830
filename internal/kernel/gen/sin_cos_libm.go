package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// libmWave writes Sin of package libm, or Cos where turn is 1, and returns for how many numbers:
// it stops at 16 of which one is 120 or more in size, or no number. t has 2/π times 2^24, π/2,
// the terms of the sine and those of the cosine.
func (a *asm) libmWave() {
	a.function("libmWaveAVX512", "func(dst, src *float32, n int, turn int32, t *float64) (done int)")
	dst, src := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64())
	left, t := a.Load(a.Param("n"), a.GP64()), a.Load(a.Param("t"), a.GP64())
	turn, far, eighth, tiny, noSign := a.spread512("turn"), a.number512(0x42f00000), a.number512(0x3f490fdb), a.number512(0x39800000), a.number512(0x7fffffff)
	half, one, two := a.number512(0x800000), a.number512(1), a.number512(2)
	first := a.GP64()
	a.MOVQ(src, first)
	var terms [10]reg.VecVirtual
	for i := range terms {
		terms[i] = a.ZMM()
		a.VBROADCASTSD(at(t, 8*i), terms[i])
	}
	by, quarter, s, c := terms[0], terms[1], terms[2:5], terms[5:]
	a.masked("numbers", left, 16, func(mask reg.Register) {
		x, size := a.ZMM(), a.ZMM()
		a.loadFloats(at(src, 0), mask, x)
		a.VPANDD(noSign, x, size)
		a.VCMPPS(operand.U8(5), far, size, reg.K2) // not less
		a.KORTESTW(reg.K2, reg.K2)
		a.JNE(operand.LabelRef("stop"))
		a.VCMPPS(operand.U8(13), eighth, size, reg.K2) // at least π/4
		var parts [2]reg.VecVirtual
		for h := range parts {
			z, v, n, wide := a.YMM(), a.ZMM(), a.YMM(), a.ZMM()
			if h == 0 {
				a.VMOVAPS(x.AsY(), z)
			} else {
				a.VEXTRACTF64X4(operand.U8(1), x, z)
				a.KSHIFTRW(operand.U8(8), reg.K2, reg.K2)
			}
			a.VCVTPS2PD(z, v)
			// Quadrants are counted in the upper eight bits of a scaled product.
			a.VMULPD(by, v, wide)
			a.VCVTTPD2DQ(wide, n)
			a.VPADDD(half.AsY(), n, n)
			a.VPSRAD_Z(operand.U8(24), n, reg.K2, n)
			a.VCVTDQ2PD(n, wide)
			a.VMULPD(quarter, wide, wide)
			a.VSUBPD(wide, v, v)
			// Signs of the numbers, and of results that come of the cosine's terms.
			sign, turned, cosine := a.ZMM(), a.ZMM(), a.YMM()
			a.VPXORD(turn.AsY(), n, cosine)
			a.VPTESTMD(one.AsY(), cosine, reg.K3)
			a.VPADDD(one.AsY(), n, cosine)
			a.VPANDD(two.AsY(), cosine, cosine)
			a.VPMOVSXDQ(cosine, sign)
			a.VPSLLQ(operand.U8(62), sign, sign)
			a.VPXORQ(sign, v, v)
			a.VPANDD(two.AsY(), n, n)
			a.VPMOVSXDQ(n, turned)
			a.VPSLLQ(operand.U8(62), turned, turned)
			square, cube, odd, term := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
			a.VMULPD(v, v, square)
			a.VMULPD(square, v, cube)
			a.VMULPD(s[0], cube, odd)
			a.VADDPD(odd, v, odd)
			a.VMULPD(s[2], square, term)
			a.VADDPD(term, s[1], term)
			a.VMULPD(square, cube, cube)
			a.VMULPD(term, cube, term)
			a.VADDPD(term, odd, odd)
			fourth, even := a.ZMM(), a.ZMM()
			a.VMULPD(square, square, fourth)
			a.VMULPD(c[1], square, even)
			a.VADDPD(even, c[0], even)
			a.VMULPD(c[2], fourth, term)
			a.VADDPD(term, even, even)
			a.VMULPD(c[4], square, term)
			a.VADDPD(term, c[3], term)
			a.VMULPD(square, fourth, fourth)
			a.VMULPD(term, fourth, term)
			a.VADDPD(term, even, even)
			a.VPXORQ(turned, even, reg.K3, odd)
			parts[h] = a.YMM()
			a.VCVTPD2PS(odd, parts[h])
		}
		r, near := a.ZMM(), a.ZMM()
		a.VINSERTF64X4(operand.U8(1), parts[1], parts[0].AsZ(), r)
		// Of what is next to zero the sine is the number, and the cosine 1.
		a.VCMPPS(operand.U8(17), tiny, size, reg.K2)
		a.VMOVAPS(x, near)
		a.VPTESTMD(one, turn, reg.K3)
		a.VCVTDQ2PS(one, reg.K3, near)
		a.VMOVAPS(near, reg.K2, r)
		a.storeFloats(r, mask, at(dst, 0))
	}, step{src, 64}, step{dst, 64})
	done := a.GP64()
	a.Load(a.Param("n"), done)
	a.JMP(operand.LabelRef("return"))
	a.Label("stop")
	a.MOVQ(src, done)
	a.SUBQ(first, done)
	a.SHRQ(operand.U8(2), done)
	a.Label("return")
	a.Store(done, a.ReturnIndex(0))
	a.VZEROUPPER()
	a.RET()
}
