package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows are loops over a row of float32 that add up in float64, and what normalisations do with
// the sums.
func rows(a *asm) {
	a.rowSum("rowSum", "func(src *float32, n int) float64", func(x, sum reg.VecVirtual) { a.VADDPD(x, sum, sum) })
	a.rowSum("rowSquares", "func(src *float32, n int, mean float64) float64", nil)
	a.normalise()
	a.addSquares()
	a.threeQuarters()
	a.roots()
	a.orderedSums()
	a.layerRows(false)
	a.layerRows(true)
}

// orderedSums writes the sums of eight rows of n values, a multiple of 4, step bytes apart, each
// in the order of its values: four columns at a time, turned round so that a column is a
// register.
func (a *asm) orderedSums() {
	a.function("orderedSumsAVX2", "func(sums, src *float32, step, n int)")
	sums := a.Load(a.Param("sums"), a.GP64())
	src, err := a.Param("src").Resolve()
	if err != nil {
		panic(err)
	}
	step, err := a.Param("step").Resolve()
	if err != nil {
		panic(err)
	}
	rows := a.rowPointers(8)
	rows.set(src.Addr, step.Addr)
	n := a.Load(a.Param("n"), a.GP64())
	sum := a.YMM()
	a.VXORPS(sum, sum, sum)
	a.loop(n, 4, func() {
		var x, pairs [4]reg.VecVirtual
		for i := range x {
			x[i] = a.YMM()
			a.VMOVUPS(rows.at(i, 0), x[i].AsX())
			a.VINSERTF128(operand.U8(1), rows.at(i+4, 0), x[i], x[i])
		}
		for i := range pairs {
			pairs[i] = a.YMM()
			unpack := a.VUNPCKLPS
			if i%2 == 1 {
				unpack = a.VUNPCKHPS
			}
			unpack(x[i/2*2+1], x[i/2*2], pairs[i])
		}
		for i := range 4 {
			column := a.YMM()
			a.VSHUFPS(operand.U8([]uint8{0x44, 0xee}[i%2]), pairs[i/2+2], pairs[i/2], column)
			a.VADDPS(column, sum, sum)
		}
		rows.add(operand.U8(16))
	})
	a.VMOVUPS(sum, at(sums, 0))
	a.VZEROUPPER()
	a.RET()
}

// rowSum adds up f of n values, a multiple of 8; without f the squares of what they are above the
// mean.
func (a *asm) rowSum(name, sig string, f func(x, sum reg.VecVirtual)) {
	a.function(name+"AVX2", sig)
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	if f == nil {
		mean := a.spreadDouble("mean")
		f = func(x, sum reg.VecVirtual) {
			a.VSUBPD(mean, x, x)
			a.VFMADD231PD(x, x, sum)
		}
	}
	sums := [2]reg.VecVirtual{a.YMM(), a.YMM()}
	for _, s := range sums {
		a.VXORPD(s, s, s)
	}
	a.loop(n, 8, func() {
		for i, s := range sums {
			x := a.YMM()
			a.VCVTPS2PD(at(src, 16*i), x)
			f(x, s)
		}
	}, step{src, 32})
	a.VADDPD(sums[1], sums[0], sums[0])
	a.total(sums[0])
}

func (a *asm) spreadDouble(name string) reg.VecVirtual {
	x, v := a.XMM(), a.YMM()
	a.Load(a.Param(name), x)
	a.VBROADCASTSD(x, v)
	return v
}

// normalise writes (x - mean)·inv, computed in float64.
func (a *asm) normalise() {
	a.function("normaliseAVX2", "func(dst, src *float32, n int, mean, inv float64)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	mean, inv := a.spreadDouble("mean"), a.spreadDouble("inv")
	a.loop(n, 8, func() {
		for i := range 2 {
			x, y := a.YMM(), a.XMM()
			a.VCVTPS2PD(at(src, 16*i), x)
			a.VSUBPD(mean, x, x)
			a.VMULPD(inv, x, x)
			a.VCVTPD2PSY(x, y)
			a.VMOVUPS(y, at(dst, 16*i))
		}
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// addSquares adds the squares of src to dst.
func (a *asm) addSquares() {
	a.function("addSquaresAVX2", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	a.loop(n, 8, func() {
		x, y := a.YMM(), a.YMM()
		a.VMOVUPS(at(src, 0), x)
		a.VMOVUPS(at(dst, 0), y)
		a.VFMADD231PS(x, x, y)
		a.VMOVUPS(y, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// threeQuarters writes x / t^(3/4), t being bias + scale·sum.
func (a *asm) threeQuarters() {
	a.function("threeQuartersAVX2", "func(dst, x, sum *float32, n int, bias, scale float32)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("x"), a.GP64())
	sum := a.Load(a.Param("sum"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	bias, scale := a.spreadParam("bias"), a.spreadParam("scale")
	a.loop(n, 8, func() {
		t, r := a.YMM(), a.YMM()
		a.VMOVUPS(at(sum, 0), t)
		a.VFMADD213PS(bias, scale, t)
		a.VSQRTPS(t, t)
		a.VSQRTPS(t, r)
		a.VMULPS(t, r, r)
		a.VMOVUPS(at(src, 0), t)
		a.VDIVPS(r, t, t)
		a.VMOVUPS(t, at(dst, 0))
	}, step{src, 32}, step{sum, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// roots writes square roots.
func (a *asm) roots() {
	a.function("rootsAVX2", "func(dst, src *float32, n int)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	a.loop(n, 8, func() {
		x := a.YMM()
		a.VSQRTPS(at(src, 0), x)
		a.VMOVUPS(x, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}

// layerRows writes rows of n values, a multiple of 16, to dst: what they are above their mean,
// divided by their standard deviation, times gamma, plus beta. per is one divided by n; eps is
// added to the variance. All but the last product and sum are float64.
func (a *asm) layerRows(zero bool) {
	if zero {
		a.function("meanSquareRowsAVX512", "func(dst, src, gamma *float32, rows, n int, per, eps float64)")
	} else {
		a.function("layerRowsAVX512", "func(dst, src, gamma, beta *float32, rows, n int, per, eps float64)")
	}
	dst, src := a.Load(a.Param("dst"), a.GP64()), a.Load(a.Param("src"), a.GP64())
	gamma := a.Load(a.Param("gamma"), a.GP64())
	var beta reg.Register
	if !zero {
		beta = a.Load(a.Param("beta"), a.GP64())
	}
	rows, size := a.Load(a.Param("rows"), a.GP64()), a.Load(a.Param("n"), a.GP64())
	per, eps, one := a.Load(a.Param("per"), a.XMM()), a.Load(a.Param("eps"), a.XMM()), a.XMM()
	bits := a.GP64()
	a.MOVQ(operand.U64(0x3ff0000000000000), bits)
	a.VMOVQ(bits, one)
	a.SHLQ(operand.U8(2), size)
	at := a.GP64()
	// each runs body for all parts of a row, the two halves of 16 values.
	each := func(name string, body func(half int, m func(p reg.Register) operand.Mem)) {
		a.XORQ(at, at)
		a.Label(name)
		for half := range 2 {
			body(half, func(p reg.Register) operand.Mem { return operand.Mem{Base: p, Index: at, Scale: 1, Disp: 32 * half} })
		}
		a.ADDQ(operand.U8(64), at)
		a.CMPQ(at, size)
		a.JNE(operand.LabelRef(name))
	}
	mean, inv := a.ZMM(), a.ZMM()
	sums := [2]reg.VecVirtual{a.ZMM(), a.ZMM()}
	// average leaves that of a row in the low part of the first sum.
	average := func() {
		a.VADDPD(sums[1], sums[0], sums[0])
		half := a.YMM()
		a.VEXTRACTF64X4(operand.U8(1), sums[0], half)
		a.VADDPD(half, sums[0].AsY(), half)
		x, y := a.XMM(), a.XMM()
		a.VEXTRACTF128(operand.U8(1), half, x)
		a.VADDPD(x, half.AsX(), x)
		a.VUNPCKHPD(x, x, y)
		a.VADDSD(y, x, x)
		a.VMULSD(per, x, sums[0].AsX())
	}
	clear := func() {
		for _, s := range sums {
			a.VPXORD(s, s, s)
		}
	}
	a.Label("row")
	clear()
	if !zero {
		each("sum", func(half int, m func(p reg.Register) operand.Mem) {
			x := a.ZMM()
			a.VCVTPS2PD(m(src), x)
			a.VADDPD(x, sums[half], sums[half])
		})
		average()
		a.VBROADCASTSD(sums[0].AsX(), mean)
		clear()
	}
	each("squares", func(half int, m func(p reg.Register) operand.Mem) {
		x := a.ZMM()
		a.VCVTPS2PD(m(src), x)
		if !zero {
			a.VSUBPD(mean, x, x)
		}
		a.VFMADD231PD(x, x, sums[half])
	})
	average()
	deviation := a.XMM()
	a.VADDSD(eps, sums[0].AsX(), deviation)
	a.VSQRTSD(deviation, deviation, deviation)
	a.VDIVSD(deviation, one, deviation)
	a.VBROADCASTSD(deviation, inv)
	each("write", func(_ int, m func(p reg.Register) operand.Mem) {
		x, y := a.ZMM(), a.YMM()
		a.VCVTPS2PD(m(src), x)
		if !zero {
			a.VSUBPD(mean, x, x)
		}
		a.VMULPD(inv, x, x)
		a.VCVTPD2PS(x, y)
		a.VMULPS(m(gamma), y, y)
		if !zero {
			a.VADDPS(m(beta), y, y)
		}
		a.VMOVUPS(y, m(dst))
	})
	a.ADDQ(size, src)
	a.ADDQ(size, dst)
	a.DECQ(rows)
	a.JNZ(operand.LabelRef("row"))
	a.VZEROUPPER()
	a.RET()
}
