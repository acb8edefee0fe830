package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAddProducts compares sums of products of float64 with those of plain Go, of which each product is rounded.
func TestAddProducts(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f, r := FoldKernels(), rand.New(rand.NewPCG(8, 1))
		for range 200 {
			k, n, stepX, more := 1+r.IntN(20), r.IntN(80), 1+r.IntN(3), r.IntN(3)
			step := n + more
			x, lines, got := make([]float64, k*stepX), make([]float64, k*step+n), make([]float64, n+1)
			for _, v := range [][]float64{x, lines, got} {
				for i := range v {
					v[i] = r.NormFloat64()
				}
			}
			want, end := slices.Clone(got), got[n]
			for i := range k {
				for j := range n {
					want[j] += x[i*stepX] * lines[i*step+j]
				}
			}
			if !f.AddProducts(got[:n], x, stepX, lines, step, k) {
				return
			}
			for j, w := range want[:n] {
				if d := math.Abs(got[j] - w); d > 1e-13 {
					t.Fatalf("sum %d of %d is %v, want %v", j, n, got[j], w)
				}
			}
			if got[n] != end {
				t.Fatal("written behind the end")
			}
		}
	})
}
