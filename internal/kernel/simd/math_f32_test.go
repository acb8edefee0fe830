package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
)

// TestSingles compares functions in float32 arithmetic with float64, and each index of a slice
// with the first one.
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
				most float64 // in units in the last place
				near float64 // or this absolute error
			}{
				{"sigmoid", vecmath.SigmoidTo, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2.5, 0},
				{"erf", vecmath.ErfTo, math.Erf, 2.5, 0},
				{"tanh", vecmath.TanhTo, math.Tanh, 2.5, 0},
				// Subnormal results of the sigmoid have few digits.
				{"silu", vecmath.SiluTo, func(x float64) float64 { return math.Max(x, -200) / (1 + math.Exp(-x)) }, 3, 1e-38},
				// Far below zero, the rounding of the exponent counts; finally the result is
				// zero.
				{"hardswish of libm", func(dst, src []float32) { simd.CurveKernels().LibmHardSwish(dst, src) }, func(x float64) float64 {
					v := float32(x)
					return float64(float32(v*min(max(v+3, 0), 6)) / 6)
				}, 0, 0},
				{"hardswish", func(dst, src []float32) { simd.CurveKernels().HardSwish(dst, src) }, func(x float64) float64 {
					return x * math.Min(math.Max(float64(float32(1)/6)*x+0.5, 0), 1)
				}, 2.5, 1e-6},
				{"gelu", vecmath.GeluTo, func(x float64) float64 { return 0.5 * math.Max(x, -200) * math.Erfc(-x/math.Sqrt2) }, 3, 1e-7},
				{"gelu by tanh", vecmath.GeluTanhTo, func(x float64) float64 {
					return math.Max(x, -200) / (1 + math.Exp(-2*0.7978845608028654*x*(1+0.044715*x*x)))
				}, 3, 1e-7},
				{"exponential", vecmath.ExpTo, math.Exp, 2, 1e-45},
				{"logarithm", vecmath.LogTo, math.Log, 3, 0},
				{"softplus", vecmath.SoftplusTo, func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 4, 1e-37},
				{"mish", vecmath.MishTo, func(x float64) float64 {
					n := math.Exp(x) * (math.Exp(x) + 2)
					if x > 40 || x != x {
						return x
					}
					return math.Max(x, -200) * n / (n + 2)
				}, 5, 2e-36},
				{"sine", vecmath.SinTo, math.Sin, 1, 0},
				{"cosine", vecmath.CosTo, math.Cos, 1, 0},
			} {
				if f.name == "hardswish" && simd.CurveKernels() == nil {
					continue // this instruction set has no such function; callers use plain Go
				}
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
						unit := float64(math.Nextafter32(float32(w), float32(math.Inf(1)))) - w
						d := math.Abs(float64(dst[i])-want) / unit
						if float64(dst[i]) == want || dst[i] == float32(want) && math.IsInf(float64(dst[i]), 0) || math.Abs(float64(dst[i])-want) <= f.near {
							d = 0
						}
						if worst = max(worst, d); d > f.most {
							t.Fatalf("%s(%v) = %v, want %v, %v units in the last place", f.name, x, dst[i], want, d)
						}
						if math.Signbit(float64(dst[i])) != math.Signbit(want) && math.Abs(want) > f.near {
							t.Fatalf("%s(%v) = %v", f.name, x, dst[i])
						}
						one := make([]float32, 1)
						if f.to(one, src[i:i+1]); one[0] != dst[i] {
							t.Fatalf("%s(%v) = %v at %d, %v alone", f.name, x, dst[i], i, one[0])
						}
					}
					if dst[len(src)] != 7 {
						t.Fatalf("%s wrote past the end", f.name)
					}
				}
				t.Logf("%s: %.2f units", f.name, worst)
			}
		})
	}
}

// TestSinglesOfSets checks that functions in float32 arithmetic have equal bits in every
// instruction set with SIMD kernels.
func TestSinglesOfSets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	src := make([]float32, 1<<16+5)
	for i := range src {
		if src[i] = float32(r.NormFloat64() * []float64{1e-3, 1, 3, 40}[r.IntN(4)]); r.IntN(20) == 0 {
			src[i] = math.Float32frombits(r.Uint32())
		}
	}
	for name, to := range map[string]func(dst, src []float32){
		"sigmoid": vecmath.SigmoidTo, "erf": vecmath.ErfTo, "tanh": vecmath.TanhTo, "silu": vecmath.SiluTo, "gelu": vecmath.GeluTo, "gelu by tanh": vecmath.GeluTanhTo,
		"exponential": vecmath.ExpTo, "logarithm": vecmath.LogTo, "softplus": vecmath.SoftplusTo, "mish": vecmath.MishTo, "sine": vecmath.SinTo, "cosine": vecmath.CosTo,
	} {
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

// TestSoftmaxRows compares rows of all lengths, with values near to and far from each other, with
// float64.
func TestSoftmaxRows(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 8))
	for _, s := range simd.Available() {
		t.Run(s.String(), func(t *testing.T) {
			defer simd.Use(s)()
			for n := simd.MinSoftmaxRow; n <= simd.MaxSoftmaxRow; n += 1 + n/300*17 {
				rows := 1 + r.IntN(5)
				src, spread := make([]float32, rows*n), math.Exp(r.NormFloat64()*3)
				for i := range src {
					src[i] = float32(r.NormFloat64() * spread)
					if r.IntN(10) == 0 && i%n > 0 {
						src[i] = float32(math.Inf(-1))
					}
				}
				nan := r.IntN(rows) // all values of this row are NaN
				src[nan*n+r.IntN(n)] = float32([]float64{math.NaN(), math.Inf(1)}[r.IntN(2)])
				dst := make([]float32, rows*n+1)
				dst[rows*n] = 7
				in := src
				if r.IntN(2) == 0 {
					in = dst[:rows*n]
					copy(in, src)
				}
				if !simd.CurveKernels().SoftmaxRows(dst[:rows*n], in, n) {
					t.Skip("no kernel")
				}
				for i := range rows {
					top, sum := float32(math.Inf(-1)), 0.0
					for _, x := range src[i*n:][:n] {
						top = max(top, x)
					}
					for _, x := range src[i*n:][:n] {
						sum += math.Exp(float64(x) - float64(top))
					}
					for k, got := range dst[i*n:][:n] {
						y := float64(src[i*n+k]) - float64(top)
						want := math.Exp(y) / sum
						if i == nan && got == got {
							t.Fatalf("row %d of %d is %v at %d", i, n, got, k)
						}
						// As for ExpSum, results below the least normal number are zero. The
						// rounding of 16 sums of 16 sums of 16 terms, and that of the quotient,
						// add six units.
						if i == nan || got == 0 && want < 1.1756e-38 || math.Abs(float64(got)-want) <= (8.5-y/2)*1.2e-7*want {
							continue
						}
						t.Fatalf("e^%v of %d values is %v, want %v", y, n, got, want)
					}
				}
				if dst[rows*n] != 7 {
					t.Fatalf("past the end of rows of %d is %v", n, dst[rows*n])
				}
			}
		})
	}
}

// TestExpSum compares the exponentials of rows minus their largest value, and their sums, with
// float64.
func TestExpSum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range simd.Available() {
		t.Run(s.String(), func(t *testing.T) {
			defer simd.Use(s)()
			for n := range 150 {
				src, top := make([]float32, n), float32(math.Inf(-1))
				for i := range src {
					src[i] = float32(r.NormFloat64() * 20)
					if r.IntN(10) == 0 {
						src[i] = float32(math.Inf(-1))
					}
					top = max(top, src[i])
				}
				if math.IsInf(float64(top), -1) {
					continue
				}
				dst := make([]float32, n+1)
				dst[n] = 7
				got, want := vecmath.ExpSumTo(dst[:n], src, top), 0.0
				for i, x := range src {
					y := float64(x) - float64(top)
					e := math.Exp(y)
					want += e
					// SIMD kernels write zero below a limit slightly above the least normal
					// number.
					if dst[i] == 0 && y < -87.32 {
						continue
					}
					// The rounding of y counts in proportion to y.
					if d := math.Abs(float64(dst[i]) - e); d > (2.5-y/2)*1.2e-7*e && d > 1e-44 {
						t.Fatalf("e^%v is %v, want %v", y, dst[i], e)
					}
				}
				if math.Abs(float64(got)-want) > 5e-7*want || dst[n] != 7 {
					t.Fatalf("the sum of %d is %v, want %v, past the end is %v", n, got, want, dst[n])
				}
			}
		})
	}
}
