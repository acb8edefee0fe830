package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// double computes a function in float64, with SIMD kernels if available.
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

// AsinTo sets dst[i] = arcsin(src[i]), within 1 ulp.
func AsinTo(dst, src []float32) { double(dst, src, (*simd.Curves).Asin, math.Asin) }

// AcosTo sets dst[i] = arccos(src[i]), within 1 ulp.
func AcosTo(dst, src []float32) { double(dst, src, (*simd.Curves).Acos, math.Acos) }

// AtanTo sets dst[i] = arctan(src[i]), within 1 ulp.
func AtanTo(dst, src []float32) { double(dst, src, (*simd.Curves).Atan, math.Atan) }

// SinhTo sets dst[i] = sinh(src[i]), within 1 ulp.
func SinhTo(dst, src []float32) { double(dst, src, (*simd.Curves).Sinh, math.Sinh) }

// CoshTo sets dst[i] = cosh(src[i]), within 1 ulp.
func CoshTo(dst, src []float32) { double(dst, src, (*simd.Curves).Cosh, math.Cosh) }

// AsinhTo sets dst[i] = arsinh(src[i]), within 1 ulp.
func AsinhTo(dst, src []float32) { double(dst, src, (*simd.Curves).Asinh, math.Asinh) }

// AcoshTo sets dst[i] = arcosh(src[i]), within 1 ulp.
func AcoshTo(dst, src []float32) { double(dst, src, (*simd.Curves).Acosh, math.Acosh) }

// AtanhTo sets dst[i] = artanh(src[i]), within 1 ulp.
func AtanhTo(dst, src []float32) { double(dst, src, (*simd.Curves).Atanh, math.Atanh) }

// PowTo sets dst[i] = a[i]^b[i], with the special cases and the accuracy of [Pow].
func PowTo(dst, a, b []float32) {
	n := 0
	if c := simd.CurveKernels(); c != nil {
		n = c.Pow(dst, a, b)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = Pow(a[i], b[i])
	}
}
