package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestGemmRescaled checks that a smaller sums buffer does not change the results.
func TestGemmRescaled(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		pool := workers.New(2, nil)
		defer pool.Close()
		r := rand.New(rand.NewPCG(9, 1))
		for range sets.Rounds(60) {
			m, n, k := 1+r.IntN(150), 1+r.IntN(150), 1+r.IntN(90)
			x, w := kernels.BytesOf(r, m*k), NewPackedInt8(n, k)
			w.Fill(kernels.WeightsOf(r, n*k), 1, n)
			q := &quantise.Rescale{Scales: make([]float32, []int{1, n}[r.IntN(2)]), Hi: 255, Zero: int32(r.IntN(256))}
			q.Bias = make([]int32, len(q.Scales))
			for i := range q.Scales {
				q.Scales[i], q.Bias[i] = 0.01*r.Float32(), int32(r.IntN(2000))-1000
			}
			q.Prepare()
			tables := make([]ByteTable, []int{1, m}[r.IntN(2)])
			for i := range tables {
				tables[i].Fill(false, int32(r.IntN(256)))
			}
			sums, want := make([]int32, m*n), make([]uint8, m*n)
			MultiplyInt8(pool, m, x, tables, w, sums)
			for i, v := range sums {
				want[i] = q.Quantise(v, i%n%len(q.Scales))
			}
			for _, workspace := range []int{n, min(m, 48) * n, RescaledScratch(pool, m, n)} {
				got := make([]uint8, m*n)
				MultiplyRescaled(pool, m, x, tables, w, make([]int32, workspace), q, got)
				if !slices.Equal(got, want) {
					t.Fatalf("%d×%d×%d with room for %d sums differs", m, n, k, workspace)
				}
			}
		}
	})
}
