package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestFuseLater runs convolutions twice. The second run starts with the search for the parameters
// of [simd.Fused]. Both runs give equal results, and later ones do not search again.
func TestFuseLater(t *testing.T) {
	quantise.FuseFirst = false
	defer func() { quantise.FuseFirst = true }()
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(3, 1))
		for n := range sets.Rounds(60) {
			k := 1 + 2*r.IntN(2)
			s := Shape{N: 1, C: 1 + r.IntN(40), H: 3 + r.IntN(9), W: 3 + r.IntN(9), KH: k, KW: k, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: k / 2, PadL: k / 2, OC: 1 + r.IntN(80)}
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
			q := quantise.Requant{Zero: -128, Min: -128, Max: 127}
			for range s.OC {
				q.Mul = append(q.Mul, fixed.Multiplier{M: 1<<30 + r.Int32N(1<<30), Shift: -7 - r.IntN(5)})
				q.Bias = append(q.Bias, r.Int32N(20000)-10000)
			}
			build := func() *Int8[int8] {
				if depthwise {
					return NewDepthwiseInt8[int8](s, w, 3, q)
				}
				return NewInt8[int8](s, w, 0, 3, q)
			}
			size := s.OH * s.OW * s.OC
			want := make([]int8, size)
			plain(func() { build().Run(nil, x, want) })
			c, stages := build(), []quantise.Fusing(nil)
			for run := range 3 {
				got := make([]int8, size)
				if c.Run(nil, x, got); !slices.Equal(got, want) {
					t.Fatalf("%s, %+v: run %d differs", c.Name(), s, run)
				}
				stages = append(stages, c.q.Fusing)
			}
			if never := []quantise.Fusing{quantise.FuseNever, quantise.FuseNever, quantise.FuseNever}; !slices.Equal(stages, []quantise.Fusing{quantise.FuseLater, quantise.FuseDone, quantise.FuseDone}) && (n < 2 && simd.IntKernels().Fuses() || !slices.Equal(stages, never)) {
				t.Errorf("%s, %+v: the search goes on as %v", c.Name(), s, stages)
			}
		}
	})
}
