package conv

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"pgregory.net/rapid"
)

// TestSmallGroups compares convolutions with small groups over [N,H,W,C] with tiles, bit for bit,
// for each split of the work, and checks that nothing is written beside the output.
func TestSmallGroups(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			if simd.NewGroups(4, 4, 4) == nil {
				t.Skip("none in this set")
			}
			// A shape that surely uses this algorithm comes first: few random ones may all miss
			// it.
			s := Shape{N: 1, Groups: 8, C: 32, OC: 32, H: 9, W: 9, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1, OH: 9, OW: 9}
			if !compareGroupLanes(t, s, true, true, true, 2, 1) {
				t.Error("groups of four channels are not computed so")
			}
			rapid.Check(t, func(t *rapid.T) {
				draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
				s := Shape{
					N: draw(1, 2, "n"), Groups: draw(2, 20, "groups"), H: draw(1, 12, "h"), W: draw(1, 12, "w") * draw(1, 9, "wide"), KH: draw(1, 4, "kh"), KW: draw(1, 4, "kw"),
					StrideH: draw(1, 3, "stepH"), StrideW: draw(1, 3, "stepW"), DilH: draw(1, 3, "dilh"), DilW: draw(1, 3, "dilw"), PadT: draw(0, 4, "top"), PadL: draw(0, 4, "left"),
				}
				s.C, s.OC = s.Groups*draw(2, 9, "cg"), s.Groups*draw(1, 16, "og")
				s.OH, s.OW = draw(1, s.H+4, "oh"), draw(1, s.W+4, "ow")
				compareGroupLanes(t, s, draw(0, 1, "special") == 1, draw(0, 2, "bias") > 0, draw(0, 1, "clamp") == 1, draw(1, 4, "threads"), rapid.Uint64().Draw(t, "seed"))
			})
		})
	}
}

// compareGroupLanes compares one shape and reports whether it uses this algorithm.
func compareGroupLanes(t rapid.TB, s Shape, odd, biased, clamp bool, threads int, seed uint64) bool {
	pool := workers.New(threads, nil)
	defer pool.Close()
	state := seed | 1
	special := []float32{float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32}
	values := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			state = state*6364136223846793005 + 1442695040888963407
			v[i] = float32(int32(state>>33))/(1<<30) - 1
			if odd && state>>40%97 == 0 {
				v[i] = special[state>>50%uint64(len(special))]
			}
		}
		return v
	}
	x, w := values(s.N*s.C*s.H*s.W), values(s.OC*s.C/s.Groups*s.KH*s.KW)
	var bias []float32
	if biased {
		bias = values(s.OC)
	}
	c := NewNHWC(s, w, bias, activation.Clamp{On: clamp, Min: -3, Max: 5})
	if c.algorithm.name != "small groups" {
		return false
	}
	n := s.Outputs()
	got, want := values(n+2), values(n+2)
	before, after := got[0], got[n+1]
	c.Run(pool, x, got[1:n+1])
	c.dense = algorithmNamed(t, "output channels as columns")
	c.SetWeights(w, bias)
	c.Run(pool, x, want[1:n+1])
	if math.Float32bits(got[0]) != math.Float32bits(before) || math.Float32bits(got[n+1]) != math.Float32bits(after) {
		t.Fatal("values beside the results are written to")
	}
	for i := 1; i <= n; i++ {
		if g, w := got[i], want[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Fatalf("result %d is %v, want %v", i-1, g, w)
		}
	}
	return true
}
