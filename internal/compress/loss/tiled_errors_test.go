package loss

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// Errors by a large matrix of second moments, some rows of it at a time, are those of a plain
// loop over all pairs of columns.
func TestLargeMatrix(t *testing.T) {
	t.Parallel()
	const d, rows, levels = 2100, 3, 20
	r := rand.New(rand.NewPCG(8, 8))
	pool := workers.New(2, nil)
	defer pool.Close()
	m := newMoments(1, d, pool)
	m.allocate()
	const n = 40 // so that the matrix is one of inputs
	x := make([]float32, n*d)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	m.beginRun(0)
	m.rows(0, x, d, n)
	m.finish()
	w, fall := make([]float32, rows*d), make([]uint16, rows*d)
	for i := range w {
		w[i], fall[i] = float32(r.NormFloat64()), uint16(r.IntN(levels+1))
	}
	got := newMatrix(m, w, rows).levelErrors(fall, levels)
	want := make([]float64, levels)
	for i := range rows {
		for k := range levels {
			for s := range n {
				y := 0.0
				for c, v := range w[i*d:][:d] {
					if int(fall[i*d+c]) <= k {
						y += float64(v) * float64(x[s*d+c])
					}
				}
				want[k] += y * y
			}
		}
	}
	// The matrix is in single precision: some thousand sums, each rounded to 24 bits.
	for k, v := range got {
		if math.Abs(v-want[k]) > 1e-5*want[levels-1] {
			t.Errorf("level %d: %v, want %v", k, v, want[k])
		}
	}
}
