package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestFewChannels compares int8 convolutions with few channels with plain Go, in both layouts and
// orders. The first shapes use bands on all instruction sets with 4-way kernels.
func TestFewChannels(t *testing.T) {
	fixed := []Shape{
		{N: 1, C: 3, OC: 64, OH: 14, OW: 40, H: 28, W: 80, KH: 7, KW: 7, StrideH: 2, StrideW: 2, PadT: 3, PadL: 3},
		{N: 2, C: 3, OC: 32, OH: 9, OW: 33, H: 17, W: 66, KH: 3, KW: 3, StrideH: 2, StrideW: 2, PadT: 0, PadL: 1},
		{N: 1, C: 1, OC: 20, OH: 9, OW: 5, H: 13, W: 9, KH: 5, KW: 5, StrideH: 1, StrideW: 1},
	}
	r := rand.New(rand.NewPCG(17, 18))
	bands := map[simd.Set]int{}
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for i := range sets.Rounds(100) {
			s := Shape{
				N: 1 + r.IntN(2), C: 1 + r.IntN(6), OC: 16 + r.IntN(60), OH: 1 + r.IntN(12), OW: 1 + r.IntN(60), KH: 1 + r.IntN(7), KW: 1 + r.IntN(7),
				StrideH: 1 + r.IntN(2), StrideW: 1 + r.IntN(3), PadT: r.IntN(5), PadL: r.IntN(5),
			}
			// Windows may cover only padding and skip parts of the image.
			s.H, s.W = max(1, (s.OH-1)*s.StrideH+s.KH-s.PadT-r.IntN(4)), max(1, (s.OW-1)*s.StrideW+s.KW-s.PadL-r.IntN(4)+r.IntN(3))
			if i < len(fixed) {
				s = fixed[i]
			}
			s.DilH, s.DilW, s.Groups = 1, 1, 1
			sets.In(t, func(set simd.Set) {
				if s.bandSize(simd.IntKernels(), true) > 0 {
					bands[set]++
				}
			})
			testIntConv(t, r, pool, s)
		}
	}
	sets.In(t, func(set simd.Set) {
		if simd.IntKernels().Quads() && simd.ElementKernels().HasRescaleColumns() && bands[set] < 2*len(fixed) {
			t.Fatalf("%d convolutions have bands", bands[set])
		}
	})
}
