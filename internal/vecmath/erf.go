package vecmath

import "math"

const (
	erfSteps = 32 // table points per unit
	erfMax   = 6  // erf(x) rounds to one in float32 above 4; Gelu needs more
)

// erfTable holds erf and its derivative at the multiples of 1/32.
var erfTable = func() (t [256]struct{ f, d float64 }) {
	for i := range t {
		a := float64(i) / erfSteps
		t[i].f, t[i].d = math.Erf(a), 2/math.SqrtPi*math.Exp(-a*a)
	}
	return t
}()

// erf64 expands erf in its Taylor series at the nearest table point: every
// derivative is the first one times a Hermite polynomial.
func erf64(x float64) float64 {
	s := math.Abs(x)
	if !(s < erfMax) {
		if s >= erfMax {
			return math.Copysign(1, x)
		}
		return x // NaN
	}
	k := s*erfSteps + expShift
	a := (k - expShift) * (1.0 / erfSteps)
	d := s - a
	t := &erfTable[math.Float64bits(k)&0xff]
	a2 := a * a
	c3 := (4*a2 - 2) * (1.0 / 6)
	c4 := a * (12 - 8*a2) * (1.0 / 24)
	c5 := (12 + a2*(16*a2-48)) * (1.0 / 120)
	return math.Copysign(t.f+t.d*d*(1+d*(-a+d*(c3+d*(c4+d*c5)))), x)
}

// Erf returns the error function.
func Erf(x float32) float32 { return float32(erf64(float64(x))) }

// ErfTo sets dst[i] = erf(src[i]).
func ErfTo(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = Erf(x)
	}
}

// Gelu returns x·Φ(x), with the normal distribution function by erf.
func Gelu(x float32) float32 {
	d := float64(x)
	if d < -8 {
		// The true value underflows towards -0; -Inf·0 must not become NaN.
		return float32(d * 0.5 * math.Erfc(-math.Max(d, -60)/math.Sqrt2))
	}
	return float32(0.5 * d * (1 + erf64(d/math.Sqrt2)))
}

// GeluTo sets dst[i] = Gelu(src[i]).
func GeluTo(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = Gelu(x)
	}
}

// GeluTanh returns the tanh approximation of Gelu,
// x/2·(1+tanh(√(2/π)(x+0.044715x³))).
func GeluTanh(x float32) float32 {
	d := float64(x)
	u := 2 * 0.7978845608028654 * d * (1 + 0.044715*d*d)
	// (1+tanh(u/2))/2 is the sigmoid of u, without the cancellation.
	if u < -expMax {
		return 0
	}
	return float32(d / (1 + exp64(clamp(-u))))
}

// GeluTanhTo sets dst[i] = GeluTanh(src[i]).
func GeluTanhTo(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = GeluTanh(x)
	}
}
