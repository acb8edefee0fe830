package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

// TestRowGroups compares 1×1 convolutions whose weights exceed the L2 cache, and pass in groups of
// output channels, with the same convolutions of a part of the channels, which do not.
func TestRowGroups(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			r := rand.New(rand.NewPCG(5, 6))
			for _, size := range []int{2, 7, 8} {
				s := Shape{N: 1, C: 700, OC: 393, H: size, W: size, OH: size, OW: size, KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, Groups: 1}
				x, w, bias := kernels.Random(r, s.C*size*size), kernels.Random(r, s.OC*s.C), kernels.Random(r, s.OC)
				act := activation.Clamp{On: true, Min: 0, Max: 3}
				whole := NewNCHW(s, w, bias, act)
				if whole.usesPlanes() && set != simd.AMX && whole.rowGroup(0, s.OC) == s.OC {
					t.Errorf("%d×%d: all channels are one group", size, size)
				}
				want := make([]float32, s.OC*size*size)
				part := s
				for o := 0; o < s.OC; o += part.OC {
					part.OC = min(100, s.OC-o)
					NewNCHW(part, w[o*s.C:][:part.OC*s.C], bias[o:][:part.OC], act).Run(nil, x, want[o*size*size:])
				}
				for _, threads := range []int{1, 3} {
					pool := workers.New(threads, nil)
					y := kernels.Random(r, len(want))
					whole.Run(pool, x, y)
					pool.Close()
					// Few positions, and AMX, multiply parts of another size in another way.
					if size > 2 && set != simd.AMX && !slices.Equal(y, want) {
						t.Errorf("%d×%d, %d threads: other results than of parts", size, size, threads)
					}
					kernels.Near(t, y, want)
				}
			}
		})
	}
}
