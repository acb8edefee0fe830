package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestSplitBF16 compares split bfloat16 GEMM with float64 sums for usual values, and else with
// float32 GEMM: 16- and 32-bit weights, more steps than a pass, each split of the work, and no
// writes beside the output.
func TestSplitBF16(t *testing.T) {
	k := simd.PartKernels()
	if k == nil {
		t.Skip("no tiles of bfloat16")
	}
	f, r := simd.FloatKernels(), rand.New(rand.NewPCG(21, 22))
	for i := range sets.Rounds(150) {
		g := Params{M: 1 + r.IntN(200), N: 1 + r.IntN(300), K: 1 + r.IntN(200)}
		if i%10 == 0 {
			g.K = 900 + r.IntN(1500)
		}
		g.LDA, g.LDC, g.Accumulate = g.K+r.IntN(4), g.N+r.IntN(4), r.IntN(2) == 0
		g.Act = activation.Clamp{On: r.IntN(3) == 0, Min: -3, Max: 5}
		draw := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			return v
		}
		if r.IntN(2) == 0 {
			g.BiasN = draw(g.N)
		}
		if r.IntN(2) == 0 {
			g.BiasM = draw(g.M)
		}
		a, b := draw(g.M*g.LDA), draw(g.K*g.N)
		narrow := r.IntN(3)
		for i := range b {
			switch narrow {
			case 0:
				b[i] = math.Float32frombits(math.Float32bits(b[i]) &^ 0xffff)
			case 1:
				b[i] = float32(math.Round(float64(b[i])*256) / 256)
			}
		}
		odd := map[int]bool{} // rows of values that tiles do not support
		unusual := r.IntN(3) == 0
		if unusual {
			for range 1 + r.IntN(3) {
				row, v := r.IntN(g.M), []float32{float32(math.Inf(1)), float32(math.NaN()), 1e30, -3e38}[r.IntN(4)]
				odd[row] = true
				a[row*g.LDA+r.IntN(g.K)] = v
			}
			row := r.IntN(g.M) // all values are small
			for k := range g.K {
				a[row*g.LDA+k] *= 1e-30
			}
			if r.IntN(2) == 0 {
				b[r.IntN(len(b))] = 1e20
			}
		}
		c := draw((g.M-1)*g.LDC + g.N)
		got, want, plain := append([]float32{}, c...), make([]float64, len(c)), append([]float32{}, c...)
		pb := PackB(g.K, g.N, b, 0, false)
		pool := workers.New(1+r.IntN(3), nil)
		SplitBF16(pool, k, f, &g, a, pb.panels(), got)
		tile := new(simd.Tile)
		gemmBlock(f, &g, tile, a, pb.panels(), plain, g.LDA, 1, g.LDC, 0, g.M, 0, scratch.RoundUp(g.N, f.Cols)/f.Cols)
		pool.Close()
		for i := range c {
			row, col := i/g.LDC, i%g.LDC
			if col >= g.N {
				if got[i] != c[i] {
					t.Fatal("a value beside the results is written to")
				}
				continue
			}
			sum, size := 0.0, 0.0
			add := func(v float64) { sum, size = sum+v, size+math.Abs(v) }
			for k := range g.K {
				add(float64(a[row*g.LDA+k]) * float64(b[k*g.N+col]))
			}
			if g.Accumulate {
				add(float64(c[i]))
			}
			if g.BiasM != nil {
				add(float64(g.BiasM[row]))
			}
			if g.BiasN != nil {
				add(float64(g.BiasN[col]))
			}
			want[i] = sum
			if g.Act.On {
				want[i] = min(max(sum, float64(g.Act.Min)), float64(g.Act.Max))
			}
			// About 80 consecutive additions lose 2^-25 of the partial sum each.
			if v := float64(got[i]); odd[row] {
				if v != float64(plain[i]) && (v == v || plain[i] == plain[i]) && !(math.Abs(v-float64(plain[i])) <= 1e-4*size) {
					t.Fatalf("%+v: result %d of row %d is %v, want %v", g, col, row, v, plain[i])
				}
			} else if !(math.Abs(v-want[i]) <= 4e-6*size) {
				t.Fatalf("%+v: result %d of row %d is %v, want %v (%v by float32)", g, col, row, v, want[i], plain[i])
			}
		}
	}
}
