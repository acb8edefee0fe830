package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Numbers of sines and cosines, float64, in the order of their table: what makes quarters of a
// turn of x, the way back in two parts, what rounds so that the lowest bits tell the quarter, and
// the series of both, the last coefficient first.
var waveNumbers = []float64{
	2 / math.Pi, math.Pi / 2, 6.123233995736766e-17, 3 << 51, 1,
	1. / 362880, -1. / 5040, 1. / 120, -1. / 6,
	-1. / 3628800, 1. / 40320, -1. / 720, 1. / 24, -1. / 2,
}

const (
	waveQuarters = 8 * iota
	waveHigh
	waveLow
	waveShift
	waveOne
	waveSine
	waveCosine = waveSine + 4*8
)

// waves writes sines and cosines, of numbers up to 2^30, by their remainders of a quarter of a
// turn in float64.
func waves(a *asm) {
	table := a.StaticGlobal("waves")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range waveNumbers {
		a.AddDatum(8*i, operand.F64(v))
	}
	for _, cosine := range []bool{false, true} {
		name := "sin"
		if cosine {
			name = "cos"
		}
		a.wave(name, table, cosine)
		a.waveWide(name, table, cosine)
	}
}

// wave takes n values, a multiple of 8.
func (a *asm) wave(name string, table operand.Mem, cosine bool) {
	a.function(name+"AVX2", "func(dst, src *float32, n int, t *SingleTable)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p := a.GP64()
	a.LEAQ(table, p)
	spread := func(off int) reg.VecVirtual {
		v := a.YMM()
		a.VBROADCASTSD(at(p, off), v)
		return v
	}
	quarters, high, low, shift, one := spread(waveQuarters), spread(waveHigh), spread(waveLow), spread(waveShift), spread(waveOne)
	a.loop(n, 4, func() {
		x, k, q, r, s := a.YMM(), a.YMM(), a.YMM(), a.YMM(), a.YMM()
		a.VCVTPS2PD(at(src, 0), x)
		a.VMULPD(quarters, x, k)
		a.VADDPD(shift, k, q)
		a.VSUBPD(shift, q, k)
		a.VMOVAPD(x, r)
		a.VFNMADD231PD(high, k, r)
		a.VFNMADD231PD(low, k, r)
		if cosine {
			a.VADDPD(one, q, q)
		}
		a.VMULPD(r, r, s)
		series := func(off, n int) reg.VecVirtual {
			v := spread(off)
			for i := 1; i < n; i++ {
				a.VFMADD213PD(spread(off+8*i), s, v)
			}
			return v
		}
		sine, other := series(waveSine, 4), series(waveCosine, 5)
		a.VMULPD(s, sine, sine)
		a.VFMADD213PD(r, r, sine)
		a.VFMADD213PD(one, s, other)
		odd, turn := a.YMM(), a.YMM()
		a.VPSLLQ(operand.U8(63), q, odd)
		a.VBLENDVPD(odd, other, sine, sine)
		a.VPSRLQ(operand.U8(1), q, turn)
		a.VPSLLQ(operand.U8(63), turn, turn)
		a.VXORPD(turn, sine, sine)
		if !cosine { // of zero the sign, too
			zero := a.YMM()
			a.VXORPD(zero, zero, zero)
			a.VCMPPD(operand.U8(0), zero, x, zero)
			a.VBLENDVPD(zero, x, sine, sine)
		}
		half := a.XMM()
		a.VCVTPD2PSY(sine, half)
		a.VMOVUPS(half, at(dst, 0))
	}, step{src, 16}, step{dst, 16})
	a.VZEROUPPER()
	a.RET()
}

// waveWide takes any number of values.
func (a *asm) waveWide(name string, table operand.Mem, cosine bool) {
	a.function(name+"AVX512", "func(dst, src *float32, n int, t *SingleTable)")
	dst := a.Load(a.Param("dst"), a.GP64())
	src := a.Load(a.Param("src"), a.GP64())
	n := a.Load(a.Param("n"), a.GP64())
	p := a.GP64()
	a.LEAQ(table, p)
	spread := func(off int) reg.VecVirtual {
		v := a.ZMM()
		a.VBROADCASTSD(at(p, off), v)
		return v
	}
	numbers := make([]reg.VecVirtual, len(waveNumbers))
	for i := range numbers {
		numbers[i] = spread(8 * i)
	}
	num := func(off int) reg.VecVirtual { return numbers[off/8] }
	a.masked("numbers", n, 8, func(mask reg.Register) {
		f, x, k, q, r, s := a.YMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
		if mask != nil {
			a.VMOVUPS_Z(at(src, 0), mask, f)
		} else {
			a.VMOVUPS(at(src, 0), f)
		}
		a.VCVTPS2PD(f, x)
		a.VMULPD(num(waveQuarters), x, k)
		a.VADDPD(num(waveShift), k, q)
		a.VSUBPD(num(waveShift), q, k)
		a.VMOVAPD(x, r)
		a.VFNMADD231PD(num(waveHigh), k, r)
		a.VFNMADD231PD(num(waveLow), k, r)
		if cosine {
			a.VADDPD(num(waveOne), q, q)
		}
		a.VMULPD(r, r, s)
		series := func(off, n int) reg.VecVirtual {
			v := a.ZMM()
			a.VMOVAPD(num(off), v)
			for i := 1; i < n; i++ {
				a.VFMADD213PD(num(off+8*i), s, v)
			}
			return v
		}
		sine, other := series(waveSine, 4), series(waveCosine, 5)
		a.VMULPD(s, sine, sine)
		a.VFMADD213PD(r, r, sine)
		a.VFMADD213PD(num(waveOne), s, other)
		bit := a.ZMM()
		a.VPSLLQ(operand.U8(63), q, bit)
		a.VPMOVQ2M(bit, reg.K2)
		a.VMOVAPD(other, reg.K2, sine)
		a.VPSRLQ(operand.U8(1), q, bit)
		a.VPSLLQ(operand.U8(63), bit, bit)
		a.VPXORQ(bit, sine, sine)
		if !cosine { // of zero the sign, too
			zero := a.ZMM()
			a.VPXORQ(zero, zero, zero)
			a.VCMPPD(operand.U8(0), zero, x, reg.K2)
			a.VMOVAPD(x, reg.K2, sine)
		}
		y := a.YMM()
		a.VCVTPD2PS(sine, y)
		a.storeFloats(y, mask, at(dst, 0))
	}, step{src, 32}, step{dst, 32})
	a.VZEROUPPER()
	a.RET()
}
