package conv

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"pgregory.net/rapid"
)

// TestDirect compares direct convolutions, grouped ones included, with those that gather panels:
// equal sums in equal order, for each split of the work, and no writes beside the output.
func TestDirect(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			if !simd.FloatKernels().HasIndirect() {
				t.Skip("none in this set")
			}
			// Shapes that use each algorithm come first: few random ones may all use the same.
			width := 2 * simd.FloatKernels().Cols
			s := Shape{
				N: 1, Groups: 1, C: 8, OC: 24, H: 12, W: width, KH: 5, KW: 5, DilH: 1, DilW: 1, StrideH: 1, StrideW: 1, PadT: 2, PadL: 2, OH: 12, OW: width,
			}
			if direct, _ := compareDirect(t, s, false, 2, 1); !direct {
				t.Error("windows of 5x5 do not read lines where they lie")
			}
			s.Groups, s.C, s.OC = 2, 16, 48
			if _, flat := compareDirect(t, s, true, 2, 1); !flat {
				t.Error("groups do not read lines where they lie")
			}
			rapid.Check(t, func(t *rapid.T) {
				draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
				s := Shape{
					N: draw(1, 2, "n"), Groups: draw(1, 2, "groups"), H: draw(1, 40, "h"), W: draw(1, 130, "w") * draw(1, 4, "wide"), KH: draw(1, 5, "kh"), KW: draw(1, 5, "kw"),
					DilH: draw(1, 3, "dilh"), DilW: draw(1, 3, "dilw"), StrideH: 1, StrideW: 1, PadT: draw(-3, 6, "top"), PadL: draw(-3, 6, "left"),
				}
				if s.Groups > 1 {
					s.StrideH, s.StrideW = draw(1, 3, "stepH"), draw(1, 3, "stepW")
				}
				s.C, s.OC = s.Groups*draw(2, 40, "cg"), s.Groups*draw(1, 150, "og")
				s.OH = draw(1, s.H+8, "oh")
				s.OW = draw(1, s.W+8, "ow")
				compareDirect(t, s, draw(0, 1, "clamp") == 1, draw(1, 4, "threads"), rapid.Uint64().Draw(t, "seed"))
			})
		})
	}
}

// compareDirect compares one shape and reports which algorithm it uses.
func compareDirect(t rapid.TB, s Shape, clamp bool, threads int, seed uint64) (direct, flat bool) {
	pool := workers.New(threads, nil)
	defer pool.Close()
	state := seed | 1
	values := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			state = state*6364136223846793005 + 1442695040888963407
			v[i] = float32(int32(state>>33))/(1<<30) - 1
		}
		return v
	}
	x, w, bias := values(s.N*s.C*s.H*s.W), values(s.OC*s.C/s.Groups*s.KH*s.KW), values(s.OC)
	c := NewNCHW(s, w, bias, activation.Clamp{On: clamp, Min: -3, Max: 5})
	direct, flat = c.algorithm.name == "direct", c.algorithm.name == "grouped direct"
	if !direct && !flat {
		return false, false
	}
	n := s.Outputs()
	got, want := values(n+2), values(n+2)
	before, after := got[0], got[n+1]
	c.Run(pool, x, got[1:n+1])
	c.algorithm = algorithmNamed(t, "gathered panels")
	c.Run(pool, x, want[1:n+1])
	if got[0] != before || got[n+1] != after {
		t.Fatal("values beside the results are written to")
	}
	for i := 1; i <= n; i++ {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("result %d is %v, want %v", i-1, got[i], want[i])
		}
	}
	return direct, flat
}
