package gemm

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

func TestProductSets(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			for n := range sets.Rounds(300) {
				g := Params{M: 1 + r.IntN(40), N: 1 + r.IntN(90), K: 1 + r.IntN(60), TransA: r.IntN(3) == 0, TransB: r.IntN(2) == 0, Exact: r.IntN(2) == 0, Accumulate: r.IntN(3) == 0}
				if n%10 == 0 {
					g.M, g.N, g.K = 1+r.IntN(300), 1+r.IntN(300), 1+r.IntN(1200)
				}
				if n%4 == 0 {
					g.M = 1 + r.IntN(4)
				}
				lda, ldb := g.K, g.N
				rowsA, rowsB := g.M, g.K
				if g.TransA {
					lda, rowsA = g.M, g.K
				}
				if g.TransB {
					ldb, rowsB = g.K, g.N
				}
				if r.IntN(2) == 0 {
					lda, ldb = lda+r.IntN(4), ldb+r.IntN(4)
					g.LDA, g.LDB, g.LDC = lda, ldb, g.N+r.IntN(4)
				}
				a, b := kernels.Values(r, g.Exact, (rowsA-1)*lda+max(g.K, g.M)), kernels.Values(r, g.Exact, rowsB*ldb)
				kernels.Prune(r, b, ldb)
				if r.IntN(2) == 0 {
					g.BiasN = kernels.Values(r, g.Exact, g.N)
				} else if r.IntN(2) == 0 {
					g.BiasM = kernels.Values(r, g.Exact, g.M)
				}
				if g.Exact && g.Accumulate {
					// The order of the bias and the old value differs between the plain variants,
					// too; no caller uses both and needs exact bits.
					g.BiasN, g.BiasM = nil, nil
				}
				if r.IntN(2) == 0 {
					g.Act = activation.Clamp{On: true, Min: -1, Max: 3}
				}
				c := kernels.Values(r, g.Exact, g.M*orDefault(g.LDC, g.N))
				clone := func() []float32 { return append([]float32(nil), c...) }
				want, wantP, got, gotP := clone(), clone(), clone(), clone()
				plain(func() {
					Multiply(pool, g, a, b, want)
					MultiplyPacked(pool, g, a, PackB(g.K, g.N, b, g.LDB, g.TransB), wantP)
				})
				Multiply(pool, g, a, b, got)
				MultiplyPacked(pool, g, a, PackB(g.K, g.N, b, g.LDB, g.TransB), gotP)
				// Few rows of an unpacked matrix: plain Go continues from the old values of c.
				if !g.Exact || !g.Accumulate || g.M > 3 || g.TransB {
					sets.Agree(t, g, got, want)
				}
				sets.Agree(t, g, gotP, wantP)
			}
		}
	})
}
