package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
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
		g := GemmParams{M: 1 + r.IntN(200), N: 1 + r.IntN(300), K: 1 + r.IntN(200)}
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
		gemmSplitBF16(pool, k, f, &g, a, pb.panels(), got)
		tile := new(simd.Tile)
		gemmBlock(f, &g, tile, a, pb.panels(), plain, g.LDA, 1, g.LDC, 0, g.M, 0, roundUp(g.N, f.Cols)/f.Cols)
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

// TestConvSplitBF16 compares split bfloat16 convolutions with float32: windows read in place and
// from padded copies, several images, values that tiles do not support. Results are equal for
// each split of the work, and nothing is written beside them.
func TestConvSplitBF16(t *testing.T) {
	if simd.PartKernels() == nil {
		t.Skip("no tiles of bfloat16")
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		s := ConvShape{
			N: draw(1, 2, "n"), C: draw(1, 90, "channels"), OC: draw(25, 200, "outputs"), H: draw(1, 20, "h"), W: draw(1, 20, "w"),
			KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, Groups: 1,
		}
		s.OH, s.OW = s.H, s.W
		if draw(0, 1, "window") == 1 {
			s.KH, s.KW, s.PadT, s.PadL = draw(1, 5, "kh"), draw(1, 5, "kw"), draw(0, 3, "top"), draw(0, 3, "left")
			s.StrideH, s.StrideW, s.DilH, s.DilW = draw(1, 3, "down"), draw(1, 3, "right"), draw(1, 2, "gap down"), draw(1, 2, "gap right")
			s.OH, s.OW = draw(1, s.H, "oh"), draw(1, s.W, "ow")
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		values := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			return v
		}
		x, w, bias := values(s.N*s.C*s.H*s.W), values(s.OC*s.C*s.KH*s.KW), values(s.OC)
		if draw(0, 3, "bias") == 0 {
			bias = nil
		}
		c := NewConvNCHW(s, w, bias, activation.Clamp{On: draw(0, 1, "clamp") == 1, Min: -3, Max: 5})
		if c.planes == nil || len(c.tapGemms) > 0 {
			return
		}
		// Error bounds by magnitude: of the channels and positions that hold values that tiles do
		// not support.
		large := float32(1)
		if draw(0, 3, "unusual") == 0 {
			large = 1e20
			x[r.IntN(len(x))], w[r.IntN(len(w))] = large, 1e-30
		}
		pool := workers.New(draw(2, 4, "threads"), nil)
		defer pool.Close()
		n := s.outputs()
		got, want, other := values(n+2), make([]float32, n), make([]float32, n)
		before, after := got[0], got[n+1]
		c.winograd4, c.splitBF16 = nil, nil
		c.SetWeights(w, bias)
		c.Run(pool, x, want)
		if c.splitBF16 = simd.PartKernels(); !c.fitsSplitBF16() {
			t.Fatal("no parts")
		}
		c.SetWeights(w, bias)
		c.Run(nil, x, got[1:n+1])
		c.Run(pool, x, other)
		if got[0] != before || got[n+1] != after {
			t.Fatal("values beside the results are written to")
		}
		for i := range n {
			if math.Float32bits(got[i+1]) != math.Float32bits(other[i]) {
				t.Fatalf("result %d is %v, and %v with threads", i, got[i+1], other[i])
			}
			most := 2e-5 * math.Sqrt(float64(c.k))
			if large > 1 && math.Abs(float64(want[i])) > 1e10 {
				most = 1e-5 * float64(large)
			}
			if !(math.Abs(float64(got[i+1]-want[i])) <= most) {
				t.Fatalf("%+v: result %d is %v, want %v within %v", s, i, got[i+1], want[i], most)
			}
		}
	})
}
