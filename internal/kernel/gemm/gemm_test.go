package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

func TestGemm(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := Params{M: 1 + r.IntN(20)*r.IntN(2), N: 1 + r.IntN(40), K: r.IntN(50), TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, Accumulate: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			g.BiasN = kernels.Random(r, g.N)
		}
		if r.IntN(2) == 0 {
			g.BiasM = kernels.Random(r, g.M)
		}
		if r.IntN(2) == 0 {
			g.Act = activation.Clamp{On: true, Min: -0.5, Max: float32(math.Inf(1))}
		}
		a, b, c := kernels.Random(r, g.M*g.K), kernels.Random(r, g.K*g.N), kernels.Random(r, g.M*g.N)
		want := make([]float32, len(c))
		for m := range g.M {
			for n := range g.N {
				var s float64
				for k := range g.K {
					ai, bi := m*g.K+k, k*g.N+n
					if g.TransA {
						ai = k*g.M + m
					}
					if g.TransB {
						bi = n*g.K + k
					}
					s += float64(a[ai]) * float64(b[bi])
				}
				if g.Accumulate {
					s += float64(c[m*g.N+n])
				}
				if g.BiasN != nil {
					s += float64(g.BiasN[n])
				}
				if g.BiasM != nil {
					s += float64(g.BiasM[m])
				}
				if g.Act.On {
					s = max(s, float64(g.Act.Min))
				}
				want[m*g.N+n] = float32(s)
			}
		}
		packed := slices.Clone(c)
		Multiply(pool, g, a, b, c)
		kernels.Near(t, c, want)
		MultiplyPacked(pool, g, a, PackB(g.K, g.N, b, 0, g.TransB), packed)
		kernels.Near(t, packed, want)
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, n := range []int{64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := make([]float32, n*n)
			c := make([]float32, n*n)
			kernels.Quickest(b, "GFLOP/s", 2*float64(n*n*n), func() { Multiply(nil, Params{M: n, N: n, K: n}, v, v, c) })
		})
	}
}

func BenchmarkGemmRow(b *testing.B) {
	const n = 256
	v, c := make([]float32, n*n), make([]float32, n)
	w := PackB(n, n, v, 0, false)
	kernels.Quickest(b, "GFLOP/s", 2*n*n, func() { MultiplyPacked(nil, Params{M: 1, N: n, K: n}, v, w, c) })
}
