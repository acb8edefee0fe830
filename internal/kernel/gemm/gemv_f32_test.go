package gemm

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"pgregory.net/rapid"
)

// TestGemv compares matrix-vector products with float64 sums.
func TestGemv(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		m, k := rapid.IntRange(0, 70).Draw(t, "rows"), rapid.SampledFrom([]int{0, 1, 3, 8, 16, 17, 40, 3000}).Draw(t, "columns")
		a, x, y := make([]float32, m*k), make([]float32, k), make([]float32, m)
		for i := range a {
			a[i] = float32(i*7%19-9) / 4
		}
		for i := range x {
			x[i] = float32(i*5%13-6) / 8
		}
		for i := range y {
			y[i] = 7
		}
		Gemv(pool, y, a, x)
		for i, got := range y {
			want, size := 0.0, 0.0
			for j, v := range x {
				p := float64(a[i*k+j]) * float64(v)
				want += p
				size += math.Abs(p)
			}
			// Each of up to k additions rounds.
			if math.Abs(float64(got)-want) > size*1e-6 {
				t.Fatalf("row %d of %dx%d is %v, want %v", i, m, k, got, want)
			}
		}
	})
}
