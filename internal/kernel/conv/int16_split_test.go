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

// TestSplitInt16 compares sums of split 16-bit values with direct sums, for few and many channels.
func TestSplitInt16(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(5, 6))
		for i := range 60 {
			n, rows := 1+r.IntN(40), 1+r.IntN(50)
			if i%8 == 0 {
				n = 200 + r.IntN(200)
			}
			w := randomWeights(r, n)
			x, got, want := make([]int16, rows*n), make([]int16, rows*n+1), make([]int16, rows*n+1)
			got[rows*n], want[rows*n] = 77, 77
			q := &gemm.Requant16{Zero: int32(r.IntN(3) - 1), Min: -32768 + int32(r.IntN(3)), Max: 32767 - int32(r.IntN(3)), Narrow: i%5 == 4}
			for range []int{1, n}[r.IntN(2)] {
				q.Mul = append(q.Mul, fixed.FromReal(math.Ldexp(r.Float64(), r.IntN(60)-45)))
			}
			if r.IntN(2) == 0 {
				q.Bias = make([]int64, n)
				for i := range q.Bias {
					q.Bias[i] = int64(int32(r.Uint32())) >> 8
				}
			}
			for i := range x {
				if x[i] = int16(r.Uint32()); r.IntN(9) == 0 {
					x[i] = math.MinInt16
				}
				want[i] = q.One(int64(x[i])*int64(w[i%n]), i%n)
			}
			s := gemm.NewSplitInt16(q, n, len(x), len(x), func(n int) []float32 { return make([]float32, n) }, func(_ *workers.Pool, x, y []float32) {
				for i, v := range x {
					y[i] = v * float32(w[i%n])
				}
			})
			if s.Run(pool, x, got[:rows*n]); !slices.Equal(got, want) {
				t.Fatalf("%v: %d rows of %d: %v, want %v", set, rows, n, got, want)
			}
		}
		undo()
	}
}
