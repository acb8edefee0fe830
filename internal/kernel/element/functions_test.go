package element

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFunctions checks that functions are bit-exact with their definitions, for any length, also
// in place.
func TestFunctions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 1))
	wide := func(f func(float64) float64) func(float32) float32 {
		return func(x float32) float32 { return float32(f(float64(x))) }
	}
	special := []float32{0, float32(math.Copysign(0, -1)), 0.5, -0.5, 1.5, 2.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1e-45, 1 << 23, 8388609, -1, 6}
	for _, f := range []struct {
		name  string
		loop  func(dst, src []float32)
		means func(float32) float32
	}{
		{"ceil", Ceil, wide(math.Ceil)},
		{"floor", Floor, wide(math.Floor)},
		{"to even", RoundEven, wide(math.RoundToEven)},
		{"roots", Sqrt, wide(math.Sqrt)},
		{"reciprocals", Reciprocal, func(x float32) float32 { return 1 / x }},
		{"magnitudes", Abs, wide(math.Abs)},
		{"signs", Sign, func(x float32) float32 {
			if x == 0 || x != x {
				return x
			}
			return float32(math.Copysign(1, float64(x)))
		}},
		{"limit", func(dst, src []float32) { Limit(dst, src, -1, 6) }, func(x float32) float32 {
			if x != x {
				return x
			}
			return min(max(x, -1), 6)
		}},
	} {
		for n := range 80 {
			src, dst := make([]float32, n), make([]float32, n)
			for i := range src {
				if src[i] = float32(r.NormFloat64() * 5); r.IntN(3) == 0 {
					src[i] = special[r.IntN(len(special))]
				}
			}
			f.loop(dst, src)
			same := append([]float32(nil), src...)
			f.loop(same, same)
			for i, x := range src {
				want := f.means(x)
				for _, got := range []float32{dst[i], same[i]} {
					if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
						t.Fatalf("%s of %g, number %d of %d: %g, not %g", f.name, x, i, n, got, want)
					}
				}
			}
		}
	}
}
