package kernel

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
	"pgregory.net/rapid"
)

// TestDirect holds convolutions that read frames where they lie, of groups in one line, against those that gather panels: the same sums in the same order,
// for each cut of the work, and nothing is written beside the results.
func TestDirect(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			if !simd.FloatKernels().HasPlaced() {
				t.Skip("none in this set")
			}
			direct, flat := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
				s := ConvShape{
					N: draw(1, 2, "n"), Groups: draw(1, 2, "groups"), H: draw(1, 40, "h"), W: draw(1, 130, "w") * draw(1, 4, "wide"), KH: draw(1, 5, "kh"), KW: draw(1, 5, "kw"),
					DilH: draw(1, 3, "dilh"), DilW: draw(1, 3, "dilw"), StrideH: 1, StrideW: 1, PadT: draw(-3, 6, "top"), PadL: draw(-3, 6, "left"),
				}
				if s.Groups > 1 {
					s.StrideH, s.StrideW = draw(1, 3, "stepH"), draw(1, 3, "stepW")
				}
				s.C, s.OC = s.Groups*draw(2, 40, "cg"), s.Groups*draw(1, 150, "og")
				s.OH = draw(1, s.H+8, "oh")
				s.OW = draw(1, s.W+8, "ow")
				pool := workers.New(draw(1, 4, "threads"), nil)
				defer pool.Close()
				state := rapid.Uint64().Draw(t, "seed") | 1
				values := func(n int) []float32 {
					v := make([]float32, n)
					for i := range v {
						state = state*6364136223846793005 + 1442695040888963407
						v[i] = float32(int32(state>>33))/(1<<30) - 1
					}
					return v
				}
				x, w, bias := values(s.N*s.C*s.H*s.W), values(s.OC*s.C/s.Groups*s.KH*s.KW), values(s.OC)
				c := NewConvNCHW(s, w, bias, activation.Clamp{On: draw(0, 1, "clamp") == 1, Min: -3, Max: 5})
				if c.direct == nil && c.flat == nil || c.sparse != nil || c.tiled != nil {
					return
				}
				if c.flat != nil {
					flat++
				} else {
					direct++
				}
				n := s.outputs()
				got, want := values(n+2), values(n+2)
				before, after := got[0], got[n+1]
				c.Run(pool, x, got[1:n+1])
				c.direct, c.flat = nil, nil
				c.Run(pool, x, want[1:n+1])
				if got[0] != before || got[n+1] != after {
					t.Fatal("values beside the results are written to")
				}
				for i := 1; i <= n; i++ {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("result %d is %v, want %v", i-1, got[i], want[i])
					}
				}
			})
			if direct == 0 || flat == 0 {
				t.Errorf("%d shapes were computed so, %d groups", direct, flat)
			}
		})
	}
}
