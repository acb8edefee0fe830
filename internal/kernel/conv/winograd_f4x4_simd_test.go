package conv

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"pgregory.net/rapid"
)

// TestWinograd4 compares Winograd with direct sums: within its error bound, equal for each split of
// the work, and no writes beside the output.
func TestWinograd4(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			if simd.WinogradKernels() == nil {
				t.Skip("none in this set")
			}
			rapid.Check(t, func(t *rapid.T) {
				draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
				s := Shape{
					N: draw(1, 2, "n"), Groups: draw(1, 2, "groups"), H: draw(1, 40, "h"), W: draw(1, 200, "w"), KH: 3, KW: 3,
					DilH: 1, DilW: 1, StrideH: 1, StrideW: 1, PadT: draw(0, 6, "top"), PadL: draw(0, 6, "left"),
				}
				s.C, s.OC = s.Groups*draw(2, 40, "cg"), s.Groups*draw(1, 130, "og")
				s.OH, s.OW = draw(1, s.H+8, "oh"), draw(1, s.W+8, "ow")
				if draw(0, 20, "deep") == 0 {
					s.C, s.OH, s.OW = s.Groups*draw(300, 700, "many"), draw(1, 9, "oh"), draw(1, 20, "ow")
				}
				state := rapid.Uint64().Draw(t, "seed") | 1
				values := func(n int) []float32 {
					v := make([]float32, n)
					for i := range v {
						state = state*6364136223846793005 + 1442695040888963407
						v[i] = float32(int32(state>>33))/(1<<30) - 1
					}
					return v
				}
				x, w, bias := values(s.N*s.C*s.H*s.W), values(s.OC*s.C/s.Groups*9), values(s.OC)
				if draw(0, 3, "bias") == 0 {
					bias = nil
				}
				c := NewNCHW(s, w, bias, activation.Clamp{On: draw(0, 1, "clamp") == 1, Min: -3, Max: 5})
				if c.winograd4 = c.newWinograd4(); c.winograd4 != nil {
					c.dense = algorithmNamed(t, "Winograd F(4×4, 3×3)")
				}
				c.SetWeights(w, bias)
				pool := workers.New(draw(2, 4, "threads"), nil)
				defer pool.Close()
				n := s.Outputs()
				got, want, other := values(n+2), values(n+2), make([]float32, n)
				before, after := got[0], got[n+1]
				c.Run(nil, x, got[1:n+1])
				c.Run(pool, x, other)
				c.dense = algorithmNamed(t, "gathered panels")
				c.SetWeights(w, bias)
				c.Run(pool, x, want[1:n+1])
				if got[0] != before || got[n+1] != after {
					t.Fatal("values beside the results are written to")
				}
				// Each addition rounds relative to the partial sum, which grows: errors grow up
				// to as fast as the number of products, whose mean magnitude is a quarter. The
				// largest of 45,000 cases was 3.1e-7 of it; a wrong position gives about 0.1.
				most := 1e-6 * float64(c.k)
				for i := range n {
					if math.Float32bits(got[i+1]) != math.Float32bits(other[i]) {
						t.Fatalf("result %d is %v, and %v with threads", i, got[i+1], other[i])
					}
					if !(math.Abs(float64(got[i+1]-want[i+1])) <= most) {
						t.Fatalf("result %d is %v, want %v within %v", i, got[i+1], want[i+1], most)
					}
				}
			})
		})
	}
}
