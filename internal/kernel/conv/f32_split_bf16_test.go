package conv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"pgregory.net/rapid"
)

// TestConvSplitBF16 compares split bfloat16 convolutions with float32: windows read in place and
// from padded copies, several images, values that tiles do not support. Results are equal for
// each split of the work, and nothing is written beside them.
func TestConvSplitBF16(t *testing.T) {
	if simd.PartKernels() == nil {
		t.Skip("no tiles of bfloat16")
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		s := Shape{
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
		c := NewNCHW(s, w, bias, activation.Clamp{On: draw(0, 1, "clamp") == 1, Min: -3, Max: 5})
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
		n := s.Outputs()
		got, want, other := values(n+2), make([]float32, n), make([]float32, n)
		before, after := got[0], got[n+1]
		c.winograd4, c.splitBF16, c.dense = nil, nil, algorithmNamed(t, "gathered panels")
		c.SetWeights(w, bias)
		c.Run(pool, x, want)
		if c.splitBF16 = simd.PartKernels(); !c.fitsSplitBF16() {
			t.Fatal("no parts")
		}
		c.dense = algorithmNamed(t, "split bfloat16")
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
