package simd

import (
	"math/rand/v2"
	"testing"
)

// TestPoolSums compares sums of lines, of special values, and of signed and unsigned bytes with
// their definitions.
func TestPoolSums(t *testing.T) {
	everyElements(t, func(t *testing.T, _ *Elements, r *rand.Rand, a, _ []float32, n int) {
		f := PoolKernels()
		if f == nil {
			t.Skip("no kernels")
		}
		lines := 1 + r.IntN(5)
		cols := n / lines
		step := cols + r.IntN(2)
		if (lines-1)*step+cols > n {
			step = cols
		}
		out := make([]float32, cols+1)
		out[cols] = 7
		f.AddFloats(out[:cols], a, step, lines)
		sameFloats(t, "sums", out, cols, func(i int) (s float32) {
			for l := range lines {
				s += a[l*step+i]
			}
			return s
		})
		codes, sums, signed := make([]uint8, n), make([]int32, cols+1), r.IntN(2) == 0
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		f.AddBytes(sums[:cols], codes, step, lines, signed)
		for i, got := range sums {
			want := int32(0)
			for l := 0; l < lines && i < cols; l++ {
				if v := codes[l*step+i]; signed {
					want += int32(int8(v))
				} else {
					want += int32(v)
				}
			}
			if got != want {
				t.Fatalf("sum %d of %d lines is %d, want %d", i, lines, got, want)
			}
		}
	})
}
