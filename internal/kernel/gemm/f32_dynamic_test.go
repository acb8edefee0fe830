package gemm

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRepackedB multiplies by parts of several matrices that are packed into one buffer in turn.
func TestRepackedB(t *testing.T) {
	t.Parallel()
	var w RepackedB
	rapid.Check(t, func(t *rapid.T) {
		of := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		m, n, k, apart := of("m", 1, 30), of("n", 1, 150), of("k", 1, 400), of("apart", 0, 3)
		trans := rapid.Bool().Draw(t, "transposed")
		rows, ld := k, n+apart
		if trans {
			rows, ld = n, k+apart
		}
		b := make([]float32, rows*ld)
		for i := range b {
			b[i] = float32(i%17) - 8
		}
		w.Pack(k, n, b, ld, trans)
		col, step := of("column", 0, (n-1)/w.ColumnStep())*w.ColumnStep(), of("step", 0, k-1)
		g := Params{M: m, N: of("columns", 1, n-col), K: of("steps", 1, k-step)}
		g.LDC = g.N + apart
		a, c := make([]float32, m*g.K), make([]float32, m*g.LDC)
		for i := range a {
			a[i] = float32(i%5) - 2
		}
		w.Multiply(g, a, col, step, c)
		for i := range m {
			for j := range g.N {
				var want float64
				for s := range g.K {
					at := (step+s)*ld + col + j
					if trans {
						at = (col+j)*ld + step + s
					}
					want += float64(a[i*g.K+s]) * float64(b[at])
				}
				// Integers below 2^24 are exact.
				if got := c[i*g.LDC+j]; math.Abs(float64(got)-want) > 0 {
					t.Fatalf("row %d column %d is %v, want %v", i, j, got, want)
				}
			}
		}
	})
	w.Release()
}
