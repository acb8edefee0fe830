package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// Tests run once what they compare: with the parameters of [simd.Fused], which normally only
// later runs use.
func init() { fuseFirst = true }

// TestFuseLater runs convolutions twice. The second run starts with the search for the parameters
// of [simd.Fused]. Both runs give equal results, and later ones do not search again.
func TestFuseLater(t *testing.T) {
	fuseFirst = false
	defer func() { fuseFirst = true }()
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(3, 1))
		for n := range sets.Rounds(60) {
			k := 1 + 2*r.IntN(2)
			s := ConvShape{N: 1, C: 1 + r.IntN(40), H: 3 + r.IntN(9), W: 3 + r.IntN(9), KH: k, KW: k, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: k / 2, PadL: k / 2, OC: 1 + r.IntN(80)}
			depthwise := n%2 > 0
			if n < 2 { // shapes that surely have such parameters
				s.C, s.OC, s.H, s.W = 32, 64, 9, 9
			}
			w := make([]int16, s.OC*k*k*s.C)
			if s.OH, s.OW = s.H, s.W; depthwise {
				s.OC, w = s.C, w[:k*k*s.C]
			}
			for i := range w {
				w[i] = int16(r.IntN(255) - 127)
			}
			x := make([]int8, s.H*s.W*s.C)
			for i := range x {
				x[i] = int8(r.IntN(256) - 128)
			}
			q := Requant{Zero: -128, Min: -128, Max: 127}
			for range s.OC {
				q.Mul = append(q.Mul, fixed.Multiplier{M: 1<<30 + r.Int32N(1<<30), Shift: -7 - r.IntN(5)})
				q.Bias = append(q.Bias, r.Int32N(20000)-10000)
			}
			build := func() *ConvQ[int8] {
				if depthwise {
					return NewDepthwiseQ[int8](s, w, 3, q)
				}
				return NewConvQ[int8](s, w, 0, 3, q)
			}
			size := s.OH * s.OW * s.OC
			want := make([]int8, size)
			plain(func() { build().Run(nil, x, want) })
			c, stages := build(), []fusing(nil)
			for run := range 3 {
				got := make([]int8, size)
				if c.Run(nil, x, got); !slices.Equal(got, want) {
					t.Fatalf("%s, %+v: run %d differs", c.Name(), s, run)
				}
				stages = append(stages, c.q.fusing)
			}
			if never := []fusing{fuseNever, fuseNever, fuseNever}; !slices.Equal(stages, []fusing{fuseLater, fuseDone, fuseDone}) && (n < 2 && simd.IntKernels().Fuses() || !slices.Equal(stages, never)) {
				t.Errorf("%s, %+v: the search goes on as %v", c.Name(), s, stages)
			}
		}
	})
}
