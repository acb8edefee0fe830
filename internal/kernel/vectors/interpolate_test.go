package vectors

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestInterpolator compares SIMD interpolation with its definition, bit for bit, and checks that
// nothing beside the output is written.
func TestInterpolator(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		r := rand.New(rand.NewPCG(15, 16))
		made := 0
		for range sets.Rounds(500) {
			n, m, lines := 1+r.IntN(100), 1+r.IntN(200), 1+r.IntN(300)
			at, weights := make([]int, 2*m), make([]float32, 2*m)
			for i := range m {
				p := min(float64(i)*float64(n)/float64(m), float64(n-1))
				at[2*i], at[2*i+1] = int(p), min(int(p)+1, n-1)
				weights[2*i+1] = float32(p - math.Floor(p))
				weights[2*i] = 1 - weights[2*i+1]
			}
			b := NewInterpolator(n, at, weights)
			if b == nil {
				continue
			}
			made++
			src, got := make([]float32, lines*n), make([]float32, lines*m+2)
			for _, v := range [][]float32{src, got} {
				for i := range v {
					v[i] = float32(r.NormFloat64())
				}
			}
			before, after := got[0], got[lines*m+1]
			b.Lines(got[1:lines*m+1], src)
			if math.Float32bits(got[0]) != math.Float32bits(before) || math.Float32bits(got[lines*m+1]) != math.Float32bits(after) {
				t.Fatal("values beside the results are written to")
			}
			for i := range lines * m {
				x, o := src[i/m*n:], i%m
				want := float32(weights[2*o]*x[at[2*o]]) + float32(weights[2*o+1]*x[at[2*o+1]])
				if g := got[i+1]; math.Float32bits(g) != math.Float32bits(want) && (g == g || want == want) {
					t.Fatalf("%d lines of %d to %d: value %d is %v, want %v", lines, n, m, i, g, want)
				}
			}
		}
		if made == 0 {
			t.Skip("none in this set")
		}
	})
}
