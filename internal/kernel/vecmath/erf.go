package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

const (
	erfSteps = 32 // table points per unit
	erfMax   = 6  // erf(x) rounds to one in float32 above 4; Gelu needs more
)

// erfTable holds the Taylor coefficients of erf at multiples of 1/32: each derivative is the
// first one times a Hermite polynomial.
var erfTable = func() (t [256][6]float64) {
	for i := range t {
		a := float64(i) / erfSteps
		d := 2 / math.SqrtPi * math.Exp(-a*a)
		t[i] = [6]float64{math.Erf(a), d, -a * d, (4*a*a - 2) / 6 * d, a * (12 - 8*a*a) / 24 * d, (12 + a*a*(16*a*a-48)) / 120 * d}
	}
	return t
}()

// erfSeries computes erf for 0 <= s < erfMax.
func erfSeries(s float64) float64 {
	k := s*erfSteps + expShift
	d := s - (k-expShift)*(1.0/erfSteps)
	t := &erfTable[math.Float64bits(k)&0xff]
	return t[0] + d*(t[1]+d*(t[2]+d*(t[3]+d*(t[4]+d*t[5]))))
}

func erf64(x float64) float64 {
	s := math.Abs(x)
	if s < erfMax {
		return math.Copysign(erfSeries(s), x)
	}
	if s >= erfMax {
		return math.Copysign(1, x)
	}
	return x // NaN
}

// Erf returns the error function.
func Erf(x float32) float32 { return float32(erf64(float64(x))) }

// ErfTo sets dst[i] = erf(src[i]), as accurate as [SigmoidTo].
func ErfTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Erf(dst, src)
		return
	}
	for i, x := range src {
		d := float64(x)
		if s := math.Abs(d); s < erfMax {
			dst[i] = float32(math.Copysign(erfSeries(s), d))
		} else {
			dst[i] = Erf(x)
		}
	}
}

// Gelu returns x·Φ(x), where Φ is the normal distribution function, computed by erf.
func Gelu(x float32) float32 {
	d := float64(x)
	if d < -8 {
		// The true value underflows towards -0; -Inf·0 must not become NaN.
		d = math.Max(d, -60)
		return float32(d * 0.5 * math.Erfc(-d/math.Sqrt2))
	}
	return float32(0.5 * d * (1 + erf64(d/math.Sqrt2)))
}

// GeluTo sets dst[i] = Gelu(src[i]); with SIMD kernels within 3 ulp above -1 and within 1e-7
// below.
func GeluTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Gelu(dst, src)
		return
	}
	for i, x := range src {
		d := float64(x)
		if s := math.Abs(d) * (1 / math.Sqrt2); s < erfMax-1 {
			dst[i] = float32(0.5 * d * (1 + math.Copysign(erfSeries(s), d)))
		} else {
			dst[i] = Gelu(x)
		}
	}
}

// GeluTanh returns the tanh approximation of Gelu, x/2·(1+tanh(√(2/π)(x+0.044715x³))).
func GeluTanh(x float32) float32 {
	d := float64(x)
	u := 2 * 0.7978845608028654 * d * (1 + 0.044715*d*d)
	// (1+tanh(u/2))/2 is the sigmoid of u, without the cancellation.
	if u < -expMax {
		return 0
	}
	return float32(d / (1 + exp64(clamp(-u))))
}

// GeluTanhTo sets dst[i] = GeluTanh(src[i]); with SIMD kernels within 3 ulp above -1 and within
// 1e-7 below.
func GeluTanhTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.GeluTanh(dst, src)
		return
	}
	for i, x := range src {
		d := float64(x)
		u := 2 * 0.7978845608028654 * d * (1 + 0.044715*d*d)
		if u > -expMax && u < expMax {
			dst[i] = float32(d / (1 + exp64(-u)))
		} else {
			dst[i] = GeluTanh(x)
		}
	}
}
