package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// waveMost bounds the arguments of the SIMD kernels: beyond it float64 cannot resolve a quarter
// turn.
const waveMost = 1 << 30

// SinTo sets dst[i] = sin(src[i]), within 1 ulp.
func SinTo(dst, src []float32) { waveTo(dst, src, (*simd.Curves).Sin, math.Sin) }

// CosTo sets dst[i] = cos(src[i]), within 1 ulp.
func CosTo(dst, src []float32) { waveTo(dst, src, (*simd.Curves).Cos, math.Cos) }

// TanTo sets dst[i] = tan(src[i]), within 1 ulp.
func TanTo(dst, src []float32) { waveTo(dst, src, (*simd.Curves).Tan, math.Tan) }

func waveTo(dst, src []float32, loop func(c *simd.Curves, dst, src []float32), f func(float64) float64) {
	dst = dst[:len(src)]
	c, e := simd.CurveKernels(), simd.ElementKernels()
	if c == nil || e == nil {
		for i, x := range src {
			dst[i] = float32(f(float64(x)))
		}
		return
	}
	if least, most := e.Extent(src, 0, 0); least >= -waveMost && most <= waveMost {
		loop(c, dst, src)
		return
	}
	for i, x := range src { // each result depends on its own value only
		if x >= -waveMost && x <= waveMost {
			loop(c, dst[i:i+1], src[i:i+1])
		} else {
			dst[i] = float32(f(float64(x)))
		}
	}
}
