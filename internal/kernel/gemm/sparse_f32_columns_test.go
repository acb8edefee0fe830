package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// listAlways lists the weights of a matrix even where that gains nothing.
func listAlways(s strided) *columnLists {
	m := &columnLists{f: simd.ColumnKernels(), k: s.k, n: s.n, order: make([]uint8, s.n)}
	m.list(&s, m.measure(&s))
	return m
}

// TestColumnLists checks that a row times listed weights is bit-exact with dense weights: for odd
// shapes, columns of all lengths, and values of the row that are not finite.
func TestColumnLists(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		if simd.ColumnKernels() == nil {
			t.Skip("no kernels")
		}
		pool := workers.New(3, nil)
		t.Cleanup(pool.Close)
		r := rand.New(rand.NewPCG(1, 2))
		shapes := [][2]int{{1, 1}, {7, 15}, {64, 16}, {33, 129}, {300, 1000}, {1000, 300}, {513, 128}}
		for range sets.Rounds(60) {
			shapes = append(shapes, [2]int{1 + r.IntN(400), 1 + r.IntN(400)})
		}
		for i, s := range shapes {
			for _, share := range []float64{0, 0.3, 0.9, 1} {
				testColumnLists(t, pool, r, s[0], s[1], share, i%2 == 0)
			}
		}
	})
}

func testColumnLists(t *testing.T, pool *workers.Pool, r *rand.Rand, k, n int, zeros float64, trans bool) {
	t.Helper()
	w := sparseRandom(r, k*n, zeros)
	vec, elem := strideOf(k, n, 0, trans)
	if n > 2 { // an empty and a full column
		for i := range k {
			w[i*elem], w[vec+i*elem] = 0, float32(i+1)
		}
	}
	w[r.IntN(k*n)] = float32(math.Copysign(0, -1))
	bias := sparseRandom(r, n, 0)
	dense := PackB(k, n, w, 0, trans)
	dense.sparse = nil
	lists := &PackedB{k: k, n: n, f: dense.f, columns: listAlways(strided{w, k, n, vec, elem})}
	for _, odd := range []float64{1, math.Inf(-1), math.NaN()} {
		for _, exact := range []bool{false, true} {
			x := sparseRandom(r, k, 0)
			x[r.IntN(k)] *= float32(odd)
			g := Params{M: 1, N: n, K: k, Exact: exact, BiasN: bias, Act: activation.Clamp{On: exact, Min: -3, Max: 9}}
			if odd == 1 && !exact {
				g.Accumulate, g.BiasN, g.BiasM = true, nil, []float32{2}
			}
			want := sparseRandom(r, n, 0)
			got := slices.Clone(want)
			MultiplyPacked(pool, g, x, lists, got)
			MultiplyPacked(nil, g, x, dense, want)
			sets.Agree(t, fmt.Sprintf("%d steps, %d columns, zeros %v, trans %v, odd %v", k, n, zeros, trans, odd), got, want)
		}
	}
}

func sparseRandom(r *rand.Rand, n int, zeros float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		if v[i] = float32(r.NormFloat64()); r.Float64() < zeros {
			v[i] = 0
		}
	}
	return v
}

// TestColumnListsChoice checks the limits that hold whatever the measured cost is.
func TestColumnListsChoice(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, tt := range []struct {
			name  string
			k, n  int
			zeros float64
		}{
			{"too many weights", 600, 600, 0.5},
			{"few columns of short lists", 8, 40, 0.9},
			{"more steps than a list can name", 1 << 16, 4, 0.99},
		} {
			for _, far := range []bool{false, true} {
				w := sparseRandom(r, tt.k*tt.n, tt.zeros)
				if m := newColumnLists(strided{w, tt.k, tt.n, tt.k, 1}, far); m != nil {
					t.Errorf("%s, far %v: weights are listed", tt.name, far)
				}
			}
		}
		w := sparseRandom(r, 1024*512, 0.99)
		if m := newColumnLists(strided{w, 1024, 512, 1024, 1}, false); m != nil {
			if bytes := 6 * len(m.values); bytes > 4*len(w)/10 {
				t.Errorf("99 %% zeros take %d bytes of %d", bytes, 4*len(w))
			}
		}
		plain(func() {
			if PackForRows(1, false, 1024, 512, w, 0, true).columns != nil {
				t.Error("plain Go lists weights")
			}
		})
	})
}
