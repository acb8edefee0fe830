package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// double computes a function in float64, in vectors where there are such.
func double(dst, src []float32, loop func(c *simd.Curves, dst, src []float32), f func(float64) float64) {
	dst = dst[:len(src)]
	if c := simd.CurveKernels(); c != nil {
		loop(c, dst, src)
		return
	}
	for i, x := range src {
		dst[i] = float32(f(float64(x)))
	}
}

// AsinTo sets dst[i] = arcsin(src[i]), to within a unit in the last place.
func AsinTo(dst, src []float32) { double(dst, src, (*simd.Curves).Asin, math.Asin) }

// AcosTo sets dst[i] = arccos(src[i]), to within a unit in the last place.
func AcosTo(dst, src []float32) { double(dst, src, (*simd.Curves).Acos, math.Acos) }

// AtanTo sets dst[i] = arctan(src[i]), to within a unit in the last place.
func AtanTo(dst, src []float32) { double(dst, src, (*simd.Curves).Atan, math.Atan) }

// SinhTo sets dst[i] = sinh(src[i]), to within a unit in the last place.
func SinhTo(dst, src []float32) { double(dst, src, (*simd.Curves).Sinh, math.Sinh) }

// CoshTo sets dst[i] = cosh(src[i]), to within a unit in the last place.
func CoshTo(dst, src []float32) { double(dst, src, (*simd.Curves).Cosh, math.Cosh) }

// AsinhTo sets dst[i] = arsinh(src[i]), to within a unit in the last place.
func AsinhTo(dst, src []float32) { double(dst, src, (*simd.Curves).Asinh, math.Asinh) }

// AcoshTo sets dst[i] = arcosh(src[i]), to within a unit in the last place.
func AcoshTo(dst, src []float32) { double(dst, src, (*simd.Curves).Acosh, math.Acosh) }

// AtanhTo sets dst[i] = artanh(src[i]), to within a unit in the last place.
func AtanhTo(dst, src []float32) { double(dst, src, (*simd.Curves).Atanh, math.Atanh) }

// PowTo sets dst[i] = a[i]^b[i], with the special cases of [Pow] and as exact.
func PowTo(dst, a, b []float32) {
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.Pow(dst, a, b)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = Pow(a[i], b[i])
	}
}
