package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestCurves compares complete slices with single values, which plain Go computes, for bit-exact
// functions. TestSingles covers the others.
func TestCurves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	odd := []float32{
		0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-42, -1e-45, 3e38, -3e38,
		700, -700, 701, -701, 10, -10, 88.72, 88.8, -103.9, -104, 16.619, 16.62, -9, -9.000001, 350, -350, 9.9999, 1e-8,
	}
	for _, s := range simd.Available()[1:] {
		t.Run(s.String(), func(t *testing.T) {
			defer simd.Use(s)()
			for _, f := range []struct {
				name string
				to   func(dst, src []float32)
				one  func(float32) float32
			}{
				{"libm exp", libm.ExpTo, libm.Exp},
				{"libm sigmoid", libm.SigmoidTo, libm.Sigmoid},
				{"libm exp of", func(dst, src []float32) { libm.ExpOf(dst, src, 3, 0.5) }, func(x float32) float32 { return libm.Exp(float32(x-3) * 0.5) }},
			} {
				for range 3000 {
					src := make([]float32, r.IntN(70))
					for i := range src {
						if src[i] = float32(r.NormFloat64() * []float64{1, 30, 300}[r.IntN(3)]); r.IntN(8) == 0 {
							src[i] = odd[r.IntN(len(odd))]
						}
					}
					dst := make([]float32, len(src)+1)
					dst[len(src)] = 7
					f.to(dst[:len(src)], src)
					for i, x := range src {
						if want := f.one(x); math.Float32bits(dst[i]) != math.Float32bits(want) && (dst[i] == dst[i] || want == want) {
							t.Fatalf("%s(%v) = %v, want %v", f.name, x, dst[i], want)
						}
					}
					if dst[len(src)] != 7 {
						t.Fatalf("%s wrote past the end", f.name)
					}
				}
			}
		})
	}
}
