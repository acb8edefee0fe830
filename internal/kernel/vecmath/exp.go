package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// exp2 of the fractions i/64, and the constants that split x into
// (64n + i)·ln2/64 + r with |r| <= ln2/128.
const (
	expBits  = 6
	expSize  = 1 << expBits
	expScale = expSize * math.Log2E
	expStep  = math.Ln2 / expSize
	// expShift adds to a float64 so that its low mantissa bits hold the rounded
	// integer part.
	expShift = 3 << 51
	// expMax bounds |x| so that e^x stays a normal float64; float32 results are
	// infinite or zero long before.
	expMax = 700
)

var expTable = func() (t [expSize]uint64) {
	for i := range t {
		// The index is taken off the exponent field beforehand, so that adding the
		// whole shifted integer gives exponent and fraction in one step.
		t[i] = math.Float64bits(math.Exp2(float64(i)/expSize)) - uint64(i)<<(52-expBits)
	}
	return t
}()

// exp64 computes e^x to about 35 bits for |x| <= expMax.
func exp64(x float64) float64 {
	k := x*expScale + expShift
	r := x - (k-expShift)*expStep
	b := math.Float64bits(k)
	s := math.Float64frombits(expTable[b%expSize] + b<<(52-expBits))
	return s + s*r*(1+r*(0.5+r*(1.0/6)))
}

// expm164 computes e^x - 1 to about 35 bits of the result for |x| <= expMax.
func expm164(x float64) float64 {
	k := x*expScale + expShift
	r := x - (k-expShift)*expStep
	b := math.Float64bits(k)
	s := math.Float64frombits(expTable[b%expSize] + b<<(52-expBits))
	return (s - 1) + s*r*(1+r*(0.5+r*(1.0/6+r*(1.0/24))))
}

// clamp bounds x to ±expMax and passes NaN.
func clamp(x float64) float64 {
	if x > expMax {
		return expMax
	}
	if x < -expMax {
		return -expMax
	}
	return x
}

// Exp returns e^x.
func Exp(x float32) float32 { return float32(exp64(clamp(float64(x)))) }

// ExpTo sets dst[i] = e^src[i]: within 0.51 ulp in plain Go, within 2 ulp with SIMD kernels.
func ExpTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Exp(dst, src)
		return
	}
	for i, x := range src {
		dst[i] = float32(exp64(clamp(float64(x))))
	}
}

// ExpSumTo sets dst[i] = e^(src[i]-shift) and returns the sum of the results: the inner loop of
// softmax. It is as accurate as [SigmoidTo], but SIMD kernels flush results below e^-87.33 to
// zero. shift is at least the maximum of src.
func ExpSumTo(dst, src []float32, shift float32) float32 {
	dst = dst[:len(src)]
	var sum float64
	if c := simd.CurveKernels(); c != nil {
		return float32(c.ExpSum(dst, src, shift))
	}
	sh := float64(shift)
	for i, x := range src {
		e := exp64(clamp(float64(x) - sh))
		sum += e
		dst[i] = float32(e)
	}
	return float32(sum)
}

// Expm1 returns e^x - 1, accurate near zero.
func Expm1(x float32) float32 {
	if x == 0 {
		return x
	}
	return float32(expm164(clamp(float64(x))))
}

// Sigmoid returns 1/(1+e^-x).
func Sigmoid(x float32) float32 { return float32(1 / (1 + exp64(clamp(-float64(x))))) }

// SigmoidTo sets dst[i] = 1/(1+e^-src[i]): within 0.51 ulp in plain Go, within 2 ulp with SIMD
// kernels.
func SigmoidTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Sigmoid(dst, src)
		return
	}
	for i, x := range src {
		dst[i] = float32(1 / (1 + exp64(clamp(-float64(x)))))
	}
}

// Silu returns x/(1+e^-x), also called swish.
func Silu(x float32) float32 {
	d := float64(x)
	if d < -expMax {
		return 0 // also for -Inf
	}
	return float32(d / (1 + exp64(clamp(-d))))
}

// SiluTo sets dst[i] = src[i]/(1+e^-src[i]), as accurate as [SigmoidTo].
func SiluTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Silu(dst, src)
		return
	}
	for i, x := range src {
		if d := float64(x); d > -expMax && d < expMax {
			dst[i] = float32(d / (1 + exp64(-d)))
		} else {
			dst[i] = Silu(x)
		}
	}
}

// tanhMax is the argument from which tanh rounds to one.
const tanhMax = 10

func tanh64(x float64) float64 {
	if x > tanhMax {
		return 1
	}
	if x < -tanhMax {
		return -1
	}
	e := expm164(2 * x)
	return e / (e + 2)
}

// Tanh returns the hyperbolic tangent.
func Tanh(x float32) float32 {
	if x == 0 {
		return x
	}
	return float32(tanh64(float64(x)))
}

// TanhTo sets dst[i] = tanh(src[i]), as accurate as [SigmoidTo].
func TanhTo(dst, src []float32) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		c.Tanh(dst, src)
		return
	}
	for i, x := range src {
		if !(x < tanhMax && x > -tanhMax) || x == 0 {
			dst[i] = Tanh(x)
			continue
		}
		e := expm164(2 * float64(x))
		dst[i] = float32(e / (e + 2))
	}
}
