package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestBitmask checks that a row times bitmask weights is bit-exact with dense weights, also if a
// zero meets NaN.
func TestBitmask(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		if simd.ExpandKernels() == nil {
			t.Skip("no kernels")
		}
		testExpanded(t)
	})
}

func testExpanded(t *testing.T) {
	tests := []struct {
		name  string
		k, n  int
		zeros float64
		trans bool
	}{
		{"most of them", 700, 410, 0.67, true},
		{"most", 513, 600, 0.97, false},
		{"blocks", 640, 512, 0.7, true},
		{"a bit more", 330, 1000, 0.68, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pool := workers.New(3, nil)
			t.Cleanup(pool.Close)
			r := rand.New(rand.NewPCG(1, 2))
			fill := func(n int, zeros float64) []float32 {
				v := make([]float32, n)
				for i := range v {
					if v[i] = float32(r.NormFloat64()); r.Float64() < zeros {
						v[i] = 0
					}
				}
				return v
			}
			w, bias := fill(tt.k*tt.n, tt.zeros), fill(tt.n, 0)
			w[5] = float32(math.Copysign(0, -1))
			for _, odd := range []float32{1, float32(math.Inf(1)), float32(math.NaN())} {
				for _, exact := range []bool{false, true} {
					x := fill(tt.k, 0)
					x[3] *= odd
					g := Params{M: 1, N: tt.n, K: tt.k, Exact: exact, BiasN: bias, Accumulate: odd == 1, Act: activation.Clamp{On: exact, Min: -3, Max: 9}}
					if !useBitmask(tt.k, tt.n, w) {
						t.Fatal("zeros are kept")
					}
					p := packBitmask(tt.k, tt.n, w, 0, tt.trans)
					want := fill(tt.n, 0)
					got := slices.Clone(want)
					MultiplyPacked(pool, g, x, p, got)
					all := PackB(tt.k, tt.n, w, 0, tt.trans)
					all.sparse = nil
					MultiplyPacked(nil, g, x, all, want)
					for i := range want {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
							t.Fatalf("times %v, exact %v: element %d is %v, want %v", odd, exact, i, got[i], want[i])
						}
					}
				}
			}
		})
	}
	if p := PackForRows(1, true, 600, 600, make([]float32, 600*600), 0, true); p.bitmask == nil && p.columns == nil {
		t.Error("zeros alone are kept")
	}
}
