// Package libm computes elementary functions of float32 with the rounding of a common C library
// (glibc 2.36). Its errors of up to one ulp differ from those of other implementations. The
// TFLite reference kernels call that library; this package makes their results reproducible bit
// for bit.
//
// Elsewhere use internal/kernel/vecmath, which is faster and more accurate.
//
// Sources: exp and log follow the description and the constants of Arm's optimised routines
// (table and polynomial in float64, rounded once); tanh and expm1 follow Sun's FDLIBM in float32.
package libm

import "math"

// Exponentials: x = (k/32)·ln 2 + r, e^x = 2^(k/32)·(1 + r + …).
const (
	expBits  = 5
	expShift = 0x1.8p+52
	expScale = 0x1.71547652b82fep+0 * (1 << expBits)
	expC0    = 0x1.c6af84b912394p-5 / (1 << (3 * expBits))
	expC1    = 0x1.ebfce50fac4f3p-3 / (1 << (2 * expBits))
	expC2    = 0x1.62e42ff0c52d6p-1 / (1 << expBits)
	expAbove = 0x1.62e42ep6 // infinity above
	expBelow = -0x1.9fe368p6
)

// Limits of the sigmoid in the reference kernels.
const sigmoidTop, sigmoidBottom = 16.619047164916992188, -9

var exp2Table = func() (t [1 << expBits]uint64) {
	for i := range t {
		t[i] = math.Float64bits(math.Exp2(float64(i)/(1<<expBits))) - uint64(i)<<(52-expBits)
	}
	return t
}()

// Exp returns e^x.
func Exp(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > expAbove:
		return float32(math.Inf(1))
	case x < expBelow:
		return 0
	}
	z := expScale * float64(x)
	kd := z + expShift
	ki := math.Float64bits(kd)
	kd -= expShift
	r := z - kd
	s := math.Float64frombits(exp2Table[ki%(1<<expBits)] + ki<<(52-expBits))
	return float32((float64((expC0*r+expC1)*(r*r)) + (expC2*r + 1)) * s)
}

// Constants of the logarithm: ln 2 and the polynomial coefficients.
const (
	logLn2 = 0x1.62e42fefa39efp-1
	logA0  = -0x1.00ea348b88334p-2
	logA1  = 0x1.5575b0be00b6ap-2
	logA2  = -0x1.ffffef20a4123p-2
)

// logTable holds, for sixteen intervals of the mantissa, a number near 1/c and the
// logarithm of c for c near the middle of the interval.
var logTable = [16][2]float64{
	{0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2},
	{0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2},
	{0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2},
	{0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3},
	{0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3},
	{0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3},
	{0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4},
	{0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4},
	{0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5},
	{1, 0},
	{0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5},
	{0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4},
	{0x1.b2036576afce6p-1, 0x1.526e57720db08p-3},
	{0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3},
	{0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2},
	{0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2},
}

// Log returns the natural logarithm.
func Log(x float32) float32 {
	const offset = 0x3f330000
	b := math.Float32bits(x)
	switch {
	case x == 1:
		return 0
	case x == 0:
		return float32(math.Inf(-1))
	case x < 0 || x != x:
		return float32(math.NaN())
	case math.IsInf(float64(x), 1):
		return x
	case b < 0x00800000: // subnormal
		b = math.Float32bits(x*(1<<23)) - 23<<23
	}
	t := b - offset
	e := logTable[t>>(23-4)%16]
	k := float64(int32(t) >> 23)
	z := float64(math.Float32frombits(b - t&0xff800000))
	r := z*e[0] - 1
	y0 := e[1] + k*logLn2
	r2 := r * r
	y := logA1*r + logA2
	y = logA0*r2 + y
	return float32(y*r2 + (y0 + r))
}

// Sigmoid returns 1/(1+e^-x) as the reference kernels compute it: in float32, 1 above 16.6 and
// e^x below -9.
func Sigmoid(x float32) float32 {
	switch {
	case x > sigmoidTop:
		return 1
	case x < sigmoidBottom:
		return Exp(x)
	}
	return 1 / (1 + Exp(-x))
}

// Tanh returns the hyperbolic tangent.
func Tanh(x float32) float32 {
	a := float32(math.Abs(float64(x)))
	var z float32
	switch {
	case x != x || a == 0:
		return x
	case a >= 22:
		z = 1
	case a < 0x1p-55:
		return x * (1 + x)
	case a >= 1:
		z = 1 - 2/(Expm1(2*a)+2)
	default:
		t := Expm1(-2 * a)
		z = -t / (t + 2)
	}
	if x < 0 {
		return -z
	}
	return z
}

// Expm1 returns e^x - 1 for x below 44.
func Expm1(x float32) float32 {
	const (
		ln2hi, ln2lo = float32(6.9313812256e-01), float32(9.0580006145e-06)
		invln2       = float32(1.4426950216e+00)
		q1, q2       = float32(-3.3333335072e-02), float32(1.5873016091e-03)
		q3, q4       = float32(-7.9365076090e-05), float32(4.0082177293e-06)
		q5           = float32(-2.0109921195e-07)
	)
	hx := math.Float32bits(x) & 0x7fffffff
	if hx >= 0x4195b844 && x < 0 { // below -27 ln 2
		return -1
	}
	var k int32
	var c float32
	switch {
	case hx > 0x3eb17218: // above ln 2 / 2
		var hi, lo float32
		switch {
		case hx >= 0x3f851592: // from 1.5 ln 2
			half := float32(0.5)
			if x < 0 {
				half = -0.5
			}
			k = int32(float32(invln2*x) + half)
			t := float32(k)
			hi, lo = x-float32(t*ln2hi), t*ln2lo
		case x > 0:
			k, hi, lo = 1, x-ln2hi, ln2lo
		default:
			k, hi, lo = -1, x+ln2hi, -ln2lo
		}
		x = hi - lo
		c = (hi - x) - lo
	case hx < 0x33000000:
		return x
	}
	hfx := 0.5 * x
	hxs := x * hfx
	r1 := 1 + float32(hxs*(q1+float32(hxs*(q2+float32(hxs*(q3+float32(hxs*(q4+float32(hxs*q5)))))))))
	t := 3 - float32(r1*hfx)
	e := hxs * ((r1 - t) / (6 - float32(x*t)))
	if k == 0 {
		return x - (float32(x*e) - hxs)
	}
	e = float32(x*(e-c)) - c
	e -= hxs
	switch {
	case k == -1:
		return float32(0.5*(x-e)) - 0.5
	case k == 1:
		if x < -0.25 {
			return -2 * (e - (x + 0.5))
		}
		return 1 + float32(2*(x-e))
	case k <= -2 || k > 56:
		return ldexp(1-(e-x), k) - 1
	case k < 23:
		return ldexp(math.Float32frombits(0x3f800000-0x1000000>>k)-(e-x), k)
	}
	y := x - (e + math.Float32frombits(uint32(0x7f-k)<<23))
	return ldexp(y+1, k)
}

// ldexp adds k to the exponent of a normal number.
func ldexp(x float32, k int32) float32 {
	return math.Float32frombits(uint32(int32(math.Float32bits(x)) + k<<23))
}
