package conv

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestGemmInt16 compares 16-bit GEMM with its definition: the largest values of all signs, odd row
// lengths, several K ranges, multipliers of all sizes, weights of 8, 9 and 16 bits.
func TestGemmInt16(t *testing.T) {
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
			words := r.IntN(3) == 0
			if words && r.IntN(4) > 0 {
				for i := range w {
					w[i] = int32(int16(r.Uint32()))
				}
				if r.IntN(3) == 0 {
					for i := range w {
						w[i] = math.MinInt16
					}
				}
			}
			p := gemm.NewPackedInt16(n, k)
			q := &gemm.Requant16{Zero: int32(r.IntN(3) - 1), Min: -32768 + int32(r.IntN(3)), Max: 32767 - int32(r.IntN(3)), Narrow: r.IntN(5) == 0}
			for range []int{1, n}[r.IntN(2)] {
				q.Mul = append(q.Mul, fixed.FromReal(math.Ldexp(r.Float64(), r.IntN(60)-45)))
			}
			if r.IntN(2) == 0 {
				q.Bias = make([]int64, n)
				for i := range q.Bias {
					if q.Bias[i] = int64(r.Uint64()) >> 24; q.Narrow {
						q.Bias[i] >>= 10
					}
				}
			}
			got, want := make([]int16, m*n+1), make([]int16, m*n+1)
			got[m*n], want[m*n] = 77, 77
			for i := range m * n {
				var sum int64
				for j, v := range x[i/n*k:][:k] {
					sum += int64(v) * int64(w[i%n*k+j])
				}
				want[i] = q.One(sum, i%n)
			}
			var product *gemm.Int16
			if words { // filled later
				product = gemm.NewInt16Dynamic(p, q)
			}
			if p.Fill(w, k, 1); !words {
				product = gemm.NewInt16(p, q)
			}
			if product.Run(pool, m, x, got); !slices.Equal(got, want) {
				t.Fatalf("%v: %d by %d by %d: %v, want %v", set, m, k, n, got, want)
			}
		}
		undo()
	}
}
