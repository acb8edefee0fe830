package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/libm"
	"github.com/opmeter/opmeter/internal/vecmath"
)

// TestCurves compares whole slices with single values, which plain Go computes.
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
				{"exp", vecmath.ExpTo, vecmath.Exp},
				{"silu", vecmath.SiluTo, vecmath.Silu},
				{"tanh", vecmath.TanhTo, vecmath.Tanh},
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
						t.Fatalf("%s wrote behind the end", f.name)
					}
				}
			}
			// Sums are in another order.
			src, dst := make([]float32, 1001), make([]float32, 1001)
			var want float64
			for i := range src {
				src[i] = float32(r.NormFloat64())
				want += math.Exp(float64(src[i]) - 2)
			}
			if got := vecmath.ExpSumTo(dst, src, 2); math.Abs(float64(got)-want) > 1e-6*want {
				t.Errorf("the sum is %v, want %v", got, want)
			}
		})
	}
}

// TestSingles holds what stays in float32 against float64, and each place of a slice against the first.
func TestSingles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	odd := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-42, -1e-45, 3e38, -3e38, 103.97, -103.97, 104, -104, 105, -105, 87.4, -87.4, 0.921875, -0.921875, 0.9218749, 4, 3.9999, -4, 3.83}
	for _, s := range simd.Available()[1:] {
		t.Run(s.String(), func(t *testing.T) {
			defer simd.Use(s)()
			for _, f := range []struct {
				name string
				to   func(dst, src []float32)
				one  func(float64) float64
			}{
				{"sigmoid", vecmath.SigmoidTo, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
				{"erf", vecmath.ErfTo, math.Erf},
			} {
				worst := 0.0
				for range 5000 {
					src := make([]float32, r.IntN(70))
					for i := range src {
						if src[i] = float32(r.NormFloat64() * []float64{1e-3, 1, 3, 30}[r.IntN(4)]); r.IntN(8) == 0 {
							src[i] = odd[r.IntN(len(odd))]
						}
					}
					dst := make([]float32, len(src)+1)
					dst[len(src)] = 7
					f.to(dst[:len(src)], src)
					for i, x := range src {
						want := f.one(float64(x))
						if want != want {
							if dst[i] == dst[i] {
								t.Fatalf("%s(%v) = %v", f.name, x, dst[i])
							}
							continue
						}
						w := math.Abs(float64(float32(want)))
						unit := float64(math.Nextafter32(float32(w), 10)) - w
						d := math.Abs(float64(dst[i])-want) / unit
						if worst = max(worst, d); d > 2.5 {
							t.Fatalf("%s(%v) = %v, want %v, %v units in the last place", f.name, x, dst[i], want, d)
						}
						if math.Signbit(float64(dst[i])) != math.Signbit(want) {
							t.Fatalf("%s(%v) = %v", f.name, x, dst[i])
						}
						one := make([]float32, 1)
						if f.to(one, src[i:i+1]); one[0] != dst[i] {
							t.Fatalf("%s(%v) = %v at %d, %v alone", f.name, x, dst[i], i, one[0])
						}
					}
					if dst[len(src)] != 7 {
						t.Fatalf("%s wrote behind the end", f.name)
					}
				}
				t.Logf("%s: %.2f units", f.name, worst)
			}
		})
	}
}

// TestSinglesOfSets: what stays in float32 has the same bits in every set with loops in vectors.
func TestSinglesOfSets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	src := make([]float32, 1<<16+5)
	for i := range src {
		if src[i] = float32(r.NormFloat64() * []float64{1e-3, 1, 3, 40}[r.IntN(4)]); r.IntN(20) == 0 {
			src[i] = math.Float32frombits(r.Uint32())
		}
	}
	for name, to := range map[string]func(dst, src []float32){"sigmoid": vecmath.SigmoidTo, "erf": vecmath.ErfTo} {
		var first []float32
		for _, s := range simd.Available()[1:] {
			func() {
				defer simd.Use(s)()
				if simd.CurveKernels() == nil {
					return
				}
				got := make([]float32, len(src))
				to(got, src)
				if first == nil {
					first = got
				}
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(first[i]) && v == v {
						t.Fatalf("%s(%v) is %v with %v, elsewhere %v", name, src[i], v, s, first[i])
					}
				}
			}()
		}
	}
}
