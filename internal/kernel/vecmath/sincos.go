package vecmath

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// waveMost bounds what vectors take the sine of: beyond it a quarter of a turn is no longer found in float64.
const waveMost = 1 << 30

// SinTo sets dst[i] = sin(src[i]), to within a unit in the last place.
func SinTo(dst, src []float32) { waveTo(dst, src, (*simd.Curves).Sin, math.Sin) }

// CosTo sets dst[i] = cos(src[i]), to within a unit in the last place.
func CosTo(dst, src []float32) { waveTo(dst, src, (*simd.Curves).Cos, math.Cos) }

// TanTo sets dst[i] = tan(src[i]), to within a unit in the last place.
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
	for i, x := range src { // no value changes the result of another
		if x >= -waveMost && x <= waveMost {
			loop(c, dst[i:i+1], src[i:i+1])
		} else {
			dst[i] = float32(f(float64(x)))
		}
	}
}
