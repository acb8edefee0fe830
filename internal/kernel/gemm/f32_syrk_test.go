package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// TestSyrk compares Syrk with a plain loop, added to the old values.
func TestSyrk(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		n, k, columns := 1+r.IntN(150), 1+r.IntN(700), r.IntN(2) == 0
		lda := k + r.IntN(5)
		a := make([]float32, n*lda)
		if columns {
			lda = n + r.IntN(5)
			a = make([]float32, k*lda)
		}
		for i := range a {
			a[i] = float32(r.NormFloat64())
		}
		ldc := scratch.RoundUp(n, SyrkStride)
		c := make([]float32, n*ldc)
		for i := range c {
			c[i] = float32(i % 7)
		}
		Syrk(pool, n, k, a, lda, columns, c, ldc)
		at := func(v, i int) float64 {
			if columns {
				return float64(a[i*lda+v])
			}
			return float64(a[v*lda+i])
		}
		for i := range n {
			for j := range i + 1 {
				want := float64((i*ldc + j) % 7)
				for x := range k {
					want += at(i, x) * at(j, x)
				}
				// Sums of k products of values around 1, rounded to 24 bits each.
				if got := float64(c[i*ldc+j]); math.Abs(got-want) > 2e-6*float64(k)+1e-5 {
					t.Fatalf("%d vectors of %d, columns %t: (%d,%d) is %v, want %v", n, k, columns, i, j, got, want)
				}
			}
		}
	}
}
