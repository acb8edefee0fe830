package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Sums of 16-bit numbers against their definition: the largest of all signs, rows of odd length, several pieces
// of a sum.
func TestSums64(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, set := range simd.Available()[1:] {
		undo := simd.Use(set)
		if simd.IntKernels() == nil {
			undo()
			continue
		}
		r := rand.New(rand.NewPCG(2, 4))
		for range 200 {
			m, n, k := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(40)
			if r.IntN(8) == 0 {
				m, k = 1+r.IntN(5), 500+r.IntN(1200)
			}
			x, w := make([]int16, m*k), randomWeights(r, n*k)
			for i := range x {
				x[i] = int16(r.Uint32())
			}
			if r.IntN(3) == 0 {
				for i := range x {
					x[i] = math.MinInt16
				}
			}
			p := NewPacked16(n, k)
			p.Fill(w, k, 1)
			got, want := make([]int64, m*n), make([]int64, m*n)
			for i := range want {
				got[i] = 77
				for j, v := range x[i/n*k:][:k] {
					want[i] += int64(v) * int64(w[i%n*k+j])
				}
			}
			if p.Sums64(pool, m, x, got); !slices.Equal(got, want) {
				t.Fatalf("%v: %d by %d by %d: %v, want %v", set, m, k, n, got, want)
			}
		}
		undo()
	}
}
