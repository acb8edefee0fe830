package quantise

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestRescaleMatrix compares requantised rows of sums with the definition, one sum at a time.
func TestRescaleMatrix(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		pool := workers.New(2, nil)
		defer pool.Close()
		r := rand.New(rand.NewPCG(7, 3))
		for range sets.Rounds(60) {
			rows, n := 1+r.IntN(40), 1+r.IntN(700)
			q := &Rescale{Scales: make([]float32, n), Bias: make([]int32, n), Signed: r.IntN(2) == 0}
			if q.Lo, q.Hi = 0, 255; q.Signed {
				q.Lo, q.Hi = -128, 127
			}
			q.Zero = int32(q.Lo) + int32(r.IntN(256))
			largest := []float32{0.01, 0.4, 3}[r.IntN(3)]
			for i := range n {
				q.Scales[i], q.Bias[i] = largest*(2*r.Float32()-1), int32(r.IntN(2000))-1000
			}
			sums := make([]int32, rows*n)
			for i := range sums {
				sums[i] = int32(r.NormFloat64() * 1e4)
			}
			sums[0], sums[len(sums)-1] = 1<<31-1, -1<<31
			q.Prepare()
			got, want := make([]uint8, len(sums)), make([]uint8, len(sums))
			RescaleMatrix(pool, got, sums, q)
			for i, v := range sums {
				want[i] = q.Quantise(v, i%n)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d rows of %d sums, %+v: codes differ", rows, n, q.Q)
			}
		}
	})
}
