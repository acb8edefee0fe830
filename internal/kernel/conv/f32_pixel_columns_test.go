package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestPixelColumns checks that convolutions with few output channels are bit-exact with plain Go
// for any window, padding, stride and row length.
func TestPixelColumns(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			shapes := []Shape{
				{N: 1, C: 8, OC: 1, OH: 40, OW: 50, KH: 5, KW: 5, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 2, PadL: 2},
				{N: 2, C: 1, OC: 1, OH: 1, OW: 300, KH: 1, KW: 64, StrideH: 1, StrideW: 2, DilH: 1, DilW: 1},
				{N: 1, C: 16, OC: 1, OH: 70, OW: 33, KH: 3, KW: 5, StrideH: 2, StrideW: 3, DilH: 2, DilW: 1, PadT: 1},
				{N: 1, C: 3, OC: 1, OH: 30, OW: 200, KH: 7, KW: 7, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 3, PadL: 3},
				{N: 3, C: 5, OC: 3, OH: 9, OW: 90, KH: 5, KW: 5, StrideH: 1, StrideW: 2, DilH: 1, DilW: 2, PadL: 4},
			}
			fixed := len(shapes)
			for range sets.Rounds(60) {
				shapes = append(shapes, Shape{
					N: 1 + r.IntN(2), C: 1 + r.IntN(40), OC: 1 + r.IntN(1+r.IntN(12)), OH: 1 + r.IntN(30), OW: 1 + r.IntN(90), KH: 1 + r.IntN(5), KW: 1 + r.IntN(9),
					StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3), DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), PadT: r.IntN(4), PadL: r.IntN(5),
				})
			}
			for i, s := range shapes {
				s.Groups = 1
				s.H = max(1, (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1-s.PadT-r.IntN(4))
				s.W = max(1, (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1-s.PadL-r.IntN(6))
				k := s.C * s.KH * s.KW
				x, w, bias := kernels.Values(r, true, s.N*s.H*s.W*s.C), kernels.Values(r, true, s.OC*k), kernels.Values(r, true, s.OC)
				if r.IntN(3) == 0 {
					bias = nil
				}
				act := activation.Clamp{On: r.IntN(2) == 0, Min: -1, Max: 4}
				want, got := make([]float32, s.Outputs()), make([]float32, s.Outputs())
				plain(func() { NewNHWC(s, w, bias, act).Run(pool, x, want) })
				c := NewNHWC(s, w, bias, act)
				if i < fixed && c.pixelColumns == nil && simd.FloatKernels().HasIndirect() {
					t.Errorf("%+v has channels for columns", s)
				}
				c.Run(pool, x, got)
				sets.Agree(t, s, got, want)
				c.SetWeights(w, bias)
				c.Run(pool, x, got)
				sets.Agree(t, s, got, want)
			}
		}
	})
}
