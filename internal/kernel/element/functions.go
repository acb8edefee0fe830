package element

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Ceil writes the least whole numbers that are not less; dst may be src, here and below.
func Ceil(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		n := e.Ceil(dst[:len(src)], src)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = float32(math.Ceil(float64(x)))
	}
}

// Floor writes the greatest whole numbers that are not greater.
func Floor(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		n := e.Floor(dst[:len(src)], src)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = float32(math.Floor(float64(x)))
	}
}

// ToEven writes the nearest whole numbers, of two equally near the even one.
func ToEven(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		n := e.ToEven(dst[:len(src)], src)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = float32(math.RoundToEven(float64(x)))
	}
}

// Roots writes square roots.
func Roots(dst, src []float32) {
	if r := simd.RowKernels(); r != nil {
		r.Roots(dst[:len(src)], src)
		return
	}
	for i, x := range src {
		dst[i] = float32(math.Sqrt(float64(x)))
	}
}

// Reciprocals writes 1/src.
func Reciprocals(dst, src []float32) {
	dst = dst[:len(src)]
	if e := simd.ElementKernels(); e != nil {
		e.ScalarDiv(dst, 1, src)
		return
	}
	for i, x := range src {
		dst[i] = 1 / x
	}
}

// Magnitudes writes src without its signs.
func Magnitudes(dst, src []float32) {
	if e := simd.ElementKernels(); e != nil {
		e.Abs(dst[:len(src)], src)
		return
	}
	for i, x := range src {
		dst[i] = math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	}
}

// Signs writes 1 for what is above zero, -1 for what is below it, and others as they are.
func Signs(dst, src []float32) {
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

// Limit writes src where it is neither less than lo nor greater than hi, else the limit: what is no number stays, and so does
// the sign of a zero.
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
