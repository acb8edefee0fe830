package element

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Ceil rounds up to integers; dst may be src, here and below.
func Ceil(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		n := e.Ceil(dst[:len(src)], src)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = float32(math.Ceil(float64(x)))
	}
}

// Floor rounds down to integers.
func Floor(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		n := e.Floor(dst[:len(src)], src)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = float32(math.Floor(float64(x)))
	}
}

// RoundEven rounds to the nearest integers, ties to even.
func RoundEven(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		n := e.ToEven(dst[:len(src)], src)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = float32(math.RoundToEven(float64(x)))
	}
}

// Sqrt computes square roots.
func Sqrt(dst, src []float32) {
	if r := simd.RowKernels(); r != nil {
		r.Roots(dst[:len(src)], src)
		return
	}
	for i, x := range src {
		dst[i] = float32(math.Sqrt(float64(x)))
	}
}

// Reciprocal computes 1/src.
func Reciprocal(dst, src []float32) {
	dst = dst[:len(src)]
	if e := simd.ElementKernels(); e != nil {
		e.ScalarDiv(dst, 1, src)
		return
	}
	for i, x := range src {
		dst[i] = 1 / x
	}
}

// Abs computes absolute values.
func Abs(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		e.Abs(dst[:len(src)], src)
		return
	}
	for i, x := range src {
		dst[i] = math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	}
}

// Sign computes 1 for positive values and -1 for negative ones; others (zeros, NaN) stay.
func Sign(dst, src []float32) {
	n := simd.ElementKernels().Signum(dst[:len(src)], src)
	dst, src = dst[n:], src[n:]
	for i, x := range src {
		if x > 0 {
			x = 1
		} else if x < 0 {
			x = -1
		}
		dst[i] = x
	}
}

// Limit clamps src to [lo, hi]. NaN and the sign of a zero stay.
func Limit(dst, src []float32, lo, hi float32) {
	dst = dst[:len(src)]
	if e := simd.ElementKernels(); e != nil {
		e.Limit(dst, src, lo, hi)
		return
	}
	for i, x := range src {
		if x < lo {
			x = lo
		} else if x > hi {
			x = hi
		}
		dst[i] = x
	}
}
