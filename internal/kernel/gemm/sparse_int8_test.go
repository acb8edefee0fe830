package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

func TestSparseIntProducts(t *testing.T) {
	kernels.SparseSets(t, 30, func(t *testing.T, r *rand.Rand, pool *workers.Pool) func() bool {
		m, n, k := 1+r.IntN(200), 1+r.IntN(100), 1+r.IntN(200)
		if r.IntN(8) == 0 {
			k = 1 + r.IntN(1200)
		}
		w, x := kernels.Pruned(r, n*k, k), kernels.BytesOf(r, m*k)
		vec, elem := k, 1
		if r.IntN(2) == 0 {
			turned := make([]int32, n*k)
			for i, v := range w {
				turned[i%k*n+i/k] = v
			}
			w, vec, elem = turned, 1, n
		}
		tables := make([]ByteTable, []int{1, m}[r.IntN(2)])
		signed := r.IntN(2) == 0
		fill := func() []int32 {
			r := rand.New(rand.NewPCG(7, 8))
			for i := range tables {
				tables[i].Fill(signed, kernels.Value(uint8(r.Uint32()), signed))
			}
			p := NewPackedInt8(n, k)
			p.Fill(w, vec, elem)
			y := make([]int32, m*n)
			MultiplyInt8(pool, m, x, tables, p, y)
			return y
		}
		var want []int32
		sets.Go(func() { want = fill() })
		return func() bool {
			if got := fill(); !slices.Equal(got, want) {
				t.Fatalf("%d×%d·%d differs", m, k, n)
			}
			p := NewPackedInt8(n, k)
			p.Fill(w, vec, elem)
			return p.UsesSparse(m)
		}
	})
}
