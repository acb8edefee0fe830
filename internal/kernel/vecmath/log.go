package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

const (
	logBits = 5
	logSize = 1 << logBits
)

// logTable holds the reciprocal and the logarithm of the centres c = 1 + i/32.
var logTable = func() (t [logSize]struct{ inv, log float64 }) {
	for i := range t {
		c := 1 + float64(i)/logSize
		t[i].inv, t[i].log = 1/c, math.Log(c)
	}
	return t
}()

// log64 computes the natural logarithm of a positive, finite, normal x. The nearest table centre
// of a mantissa just below 2 is the 1 of the next octave, so that close to x = 1 the reduced
// argument is exactly x-1.
func log64(x float64) float64 {
	b := math.Float64bits(x)
	z := b + 1<<(51-logBits)
	n := int64(z>>52) - 1023
	t := &logTable[z>>(52-logBits)%logSize]
	r := math.Float64frombits(b-uint64(n)<<52)*t.inv - 1
	p := r - r*r*(0.5-r*(1.0/3-r*(0.25-r*(0.2-r*(1.0/6)))))
	return float64(n)*math.Ln2 + t.log + p
}

// Log returns the natural logarithm.
func Log(x float32) float32 {
	if x > 0 && x <= math.MaxFloat32 {
		return float32(log64(float64(x)))
	}
	return float32(math.Log(float64(x)))
}

// LogDouble returns the natural logarithm of a float64. It corrects [math.Log], whose amd64
// assembly (Go 1.26) treats denormal numbers as at least 2^-1023: for 5e-324 it returns -709.09
// instead of -744.44.
func LogDouble(x float64) float64 {
	const least, up = 0x1p-1022, 54
	if x > 0 && x < least {
		return math.Log(x*(1<<up)) - up*math.Ln2
	}
	return math.Log(x)
}

// LogTo sets dst[i] = log(src[i]): within 0.51 ulp in plain Go, within 3 ulp with SIMD kernels.
func LogTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Log(dst, src)
		return
	}
	for i, x := range src {
		if x > 0 && x <= math.MaxFloat32 {
			dst[i] = float32(log64(float64(x)))
		} else {
			dst[i] = Log(x)
		}
	}
}

// Log1p returns log(1+x), accurate near zero.
func Log1p(x float32) float32 {
	if d := float64(x); d > 1e-4 && d <= math.MaxFloat32 {
		return float32(log64(1 + d))
	}
	return float32(math.Log1p(float64(x)))
}

// Softplus returns log(1+e^x) without overflow.
func Softplus(x float32) float32 {
	d := float64(x)
	switch {
	case d > 30:
		return x
	case d > -9:
		return float32(log64(1 + exp64(d)))
	}
	return float32(math.Log1p(exp64(clamp(d))))
}

// SoftplusTo sets dst[i] = log(1+e^src[i]), within 4 ulp with SIMD kernels.
func SoftplusTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Softplus(dst, src)
		return
	}
	for i, x := range src {
		dst[i] = Softplus(x)
	}
}

// mish uses tanh(log(1+e)) = (e²+2e)/(e²+2e+2).
func mish(x float32) float32 {
	if x > 20 {
		return x
	}
	e := float64(Exp(x))
	n := e * (e + 2)
	if n == 0 {
		return 0
	}
	return float32(float64(x) * n / (n + 2))
}

// MishTo sets dst[i] = src[i]·tanh(log(1+e^src[i])), within 5 ulp with SIMD kernels.
func MishTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Mish(dst, src)
		return
	}
	for i, x := range src {
		dst[i] = mish(x)
	}
}

// Pow returns x^y with the special cases of math.Pow.
func Pow(x, y float32) float32 {
	if x > 0 && x <= math.MaxFloat32 {
		if e := float64(y) * log64(float64(x)); e < expMax && e > -expMax {
			return float32(exp64(e))
		}
	}
	return float32(math.Pow(float64(x), float64(y)))
}
