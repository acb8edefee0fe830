package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestMultiplyInt8Pairs compares products with their definition where weights of neighbouring
// steps would saturate 16 bits, and says how they were packed.
func TestMultiplyInt8Pairs(t *testing.T) {
	random := func(spread float64) func(r *rand.Rand, i, k int) int32 {
		return func(r *rand.Rand, _, _ int) int32 {
			return int32(max(-128, min(127, spread*r.NormFloat64())))
		}
	}
	cases := []struct {
		name    string
		k, n    int
		weight  func(r *rand.Rand, i, k int) int32
		pairs   bool // no order without saturation
		ordered bool
	}{
		{"small", 64, 40, func(r *rand.Rand, _, _ int) int32 { return r.Int32N(127) - 63 }, false, false},
		{"small, one step", 1, 3, func(r *rand.Rand, _, _ int) int32 { return r.Int32N(127) - 63 }, false, false},
		{"random", 256, 48, random(40), false, true},
		{"random, odd", 155, 37, random(40), false, true},
		{"random, short window", 22, 16, random(36), false, true},
		{"largest in every other step", 96, 32, func(_ *rand.Rand, i, _ int) int32 { return []int32{127, 0}[i%2] }, false, false},
		{"largest in half of the steps", 96, 32, func(_ *rand.Rand, i, _ int) int32 { return []int32{-128, -128, 0, 0}[i%4] }, false, true},
		{"outlier", 64, 16, func(_ *rand.Rand, i, k int) int32 { return []int32{int32(1 - i%2*2), 127}[i/(k-1)] }, false, true},
		{"largest", 64, 32, func(*rand.Rand, int, int) int32 { return 127 }, true, false},
		{"smallest", 33, 17, func(*rand.Rand, int, int) int32 { return -128 }, true, false},
		{"zeros", 48, 16, func(*rand.Rand, int, int) int32 { return 0 }, false, false},
		{"shorter than a window", 9, 20, func(*rand.Rand, int, int) int32 { return 127 }, true, false},
	}
	sets.Every(t, func(t *testing.T, _ func(func())) {
		for _, c := range cases {
			r := rand.New(rand.NewPCG(1, 2))
			w := make([]int32, c.n*c.k)
			for i := range w {
				w[i] = c.weight(r, i%c.k, c.k)
			}
			for _, signed := range []bool{false, true} {
				for _, zero := range []int32{0, 3, 127} {
					m := 1 + r.IntN(20)
					x := make([]uint8, m*c.k)
					for i := range x {
						if x[i] = uint8(r.Uint32()); m%2 == 0 {
							x[i] = 255
						}
					}
					p := NewPackedInt8(c.n, c.k)
					p.Fill(w, c.k, 1)
					var table ByteTable
					table.Fill(signed, zero)
					y := make([]int32, m*c.n)
					MultiplyInt8(nil, m, x, []ByteTable{table}, p, y)
					for i, got := range y {
						var want int32
						for k := range c.k {
							a := int32(x[i/c.n*c.k+k])
							if signed {
								a = int32(int8(a))
							}
							want += (a - zero) * w[i%c.n*c.k+k]
						}
						if got != want {
							t.Fatalf("%s, signed %t, zero point %d, row %d of %d, column %d: %d, want %d", c.name, signed, zero, i/c.n, m, i%c.n, got, want)
						}
					}
					if f := simd.IntKernels(); f != nil && f.Saturates() {
						if pairs, ordered := p.Panels.Sums == nil, p.Panels.order != nil; pairs != c.pairs || ordered != c.ordered {
							t.Errorf("%s: in pairs %t, ordered %t, want %t, %t", c.name, pairs, ordered, c.pairs, c.ordered)
						}
					}
				}
			}
		}
	})
}

// BenchmarkFill packs weights of which few exceed half of the range, as those of networks.
func BenchmarkFill(b *testing.B) {
	const n, k = 256, 2304
	for _, spread := range []float64{20, 40} {
		r := rand.New(rand.NewPCG(1, 2))
		w := make([]int32, n*k)
		for i := range w {
			w[i] = int32(max(-127, min(127, spread*r.NormFloat64())))
		}
		b.Run(fmt.Sprint(spread), func(b *testing.B) {
			kernels.Quickest(b, "GB/s", n*k, func() { NewPackedInt8(n, k).Fill(w, k, 1) })
		})
	}
}
