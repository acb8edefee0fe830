package activation

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// The logistic function and tanh of all numbers of 16 bits, in vectors, for scales that are powers of two and others.
func TestCurve16(t *testing.T) {
	t.Parallel()
	e := simd.ElementKernels()
	src, dst := make([]int16, 1<<16), make([]int16, 1<<16)
	for i := range src {
		src[i] = int16(i + math.MinInt16)
	}
	for _, tanh := range []bool{false, true} {
		f, most := fixed.Logistic16, 0
		if tanh {
			f, most = fixed.Tanh16, 1
		}
		for _, scale := range []float32{1. / 4096, 1. / 2048, 1e-5, 3e-4, 0.0017, 1, 7.5} {
			m, shift := fixed.Activation16(scale, most)
			n := len(src) - 5
			done := e.Curve16(dst[:n], src, linesOf(tanh, m, shift))
			for i, v := range src[:done] {
				if want := f(v, m, shift); dst[i] != want {
					t.Fatalf("tanh %v of %d at scale %v: %d, want %d", tanh, v, scale, dst[i], want)
				}
			}
			if done == n && dst[n] != 0 {
				t.Fatal("wrote behind the end")
			}
		}
	}
}
