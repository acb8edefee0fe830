package conv

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

// BenchmarkWinograd shows from how many channels Winograd is faster.
func BenchmarkWinograd(b *testing.B) {
	defer simd.Use(simd.Go)()
	for _, n := range []int{8, 12, 16, 24, 32, 128} {
		s := Shape{N: 1, C: n, H: 28, W: 28, OC: n, OH: 28, OW: 28, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
		x, w, y := make([]float32, n*28*28), make([]float32, n*n*9), make([]float32, n*28*28)
		for _, name := range []string{"im2col", "Winograd F(2×2, 3×3)"} {
			c := NewNCHW(s, w, nil, activation.Clamp{})
			c.dense = algorithmNamed(b, name)
			c.SetWeights(w, nil)
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				kernels.Quickest(b, "GFLOP/s", float64(2*n*n*9*28*28), func() { c.Run(nil, x, y) })
			})
		}
	}
}
