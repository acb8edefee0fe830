package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// log is math.Log, corrected for subnormal numbers: math.Log on amd64 treats them as larger
// numbers.
func log(x float64) float64 {
	if x > 0 && x < 0x1p-1022 {
		return math.Log(x*0x1p60) - 60*math.Ln2
	}
	return math.Log(x)
}

// TestDoubleCurves compares functions of float64 with those of package math.
func TestDoubleCurves(t *testing.T) {
	everySet(t, func(t *testing.T) {
		c, r := CurveKernels(), rand.New(rand.NewPCG(8, 7))
		if !c.HasDoubles() {
			return
		}
		special := []float64{
			0, math.Copysign(0, -1), 1, -1, 2, -2, 3, -3, 0.5, -0.5, math.Inf(1), math.Inf(-1), math.NaN(), 709.7, 710, -745, -746, 22, -22,
			1e300, -1e300, 1e-300, 5e-324, -5e-324, 1e-310, math.Sqrt2, math.Nextafter(1, 0), math.Nextafter(1, 2), 1 << 30, 1<<30 + 1, -1 << 40, 1<<53 + 1,
		}
		fill := func(x []float64) {
			for i := range x {
				x[i] = r.NormFloat64() * []float64{1e-5, 1, 20, 300, 1e9}[r.IntN(5)]
				if r.IntN(6) == 0 {
					x[i] = special[r.IntN(len(special))]
				}
			}
		}
		near := func(name string, x, got, want, units, slack float64) {
			t.Helper()
			if got == want && math.Signbit(got) == math.Signbit(want) || math.IsNaN(got) && math.IsNaN(want) {
				return
			}
			if !(math.Abs(got-want) <= max(math.Abs(want)*units*0x1p-52+math.Abs(x)*slack, 5e-324)) || math.IsInf(want, 0) {
				t.Fatalf("%s of %v is %v, want %v", name, x, got, want)
			}
		}
		bases, exponents := []float64{3, 10, 1.5, 7, 1 + 0x1p-20, 2, 2, 0.1, 5e-324}, []float64{33, 15, 20, -1, 2, -1074, 1023, -300, 0.5}
		powers := make([]float64, len(bases))
		c.PowDoubles(powers, bases, exponents)
		for i, want := range []float64{5559060566555523, 1e15, 3486784401. / (1 << 20), 1. / 7, 1 + 0x1p-19 + 0x1p-40, 5e-324, 0x1p1023, 9.999999999999834e299, 0x1p-537} {
			near("power", bases[i], powers[i], want, 1, 0)
		}
		for range 400 {
			n := r.IntN(60)
			a, b, got := make([]float64, n), make([]float64, n), make([]float64, n+1)
			fill(a)
			fill(b)
			for _, f := range []struct {
				name   string
				kernel func(dst, src []float64) int
				of     func(float64) float64
				units  float64
				slack  float64 // relative to x: remainders of package math are less accurate
			}{
				{"sigmoid", func(dst, src []float64) int { c.SigmoidDoubles(dst, src); return n }, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3, 0},
				{"tanh", func(dst, src []float64) int { c.TanhDoubles(dst, src); return n }, math.Tanh, 5, 0},
				{"logarithm", func(dst, src []float64) int { c.LogDoubles(dst, src); return n }, log, 2, 0},
				{"sine", c.SinDoubles, math.Sin, 2, 0x1p-82},
				{"cosine", c.CosDoubles, math.Cos, 2, 0x1p-82},
			} {
				done := f.kernel(got[:n], a)
				if done < n {
					far := false
					for _, x := range a[done:min(done+8, n)] {
						far = far || math.Abs(x) > 1<<30
					}
					if !far {
						t.Fatalf("%s stopped at %d of %d", f.name, done, n)
					}
				}
				for i, x := range a[:done] {
					near(f.name, x, got[i], f.of(x), f.units, f.slack)
				}
			}
			c.PowDoubles(got[:n], a, b)
			for i, x := range a {
				// math.Pow rounds the logarithm to float64, so it is the less accurate one. For
				// subnormal numbers it has the error that log corrects.
				if size := math.Abs(x); size > 0 && size < 0x1p-1022 {
					continue
				}
				near("power", x, got[i], math.Pow(x, b[i]), 8+math.Abs(b[i])*(1+math.Abs(math.Log(math.Abs(x)))), 0)
			}
			if got[n] != 0 {
				t.Fatal("written past the end")
			}
		}
	})
}
