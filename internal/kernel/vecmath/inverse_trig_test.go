package vecmath

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestDoubles compares functions that are computed in float64 with package math, on every
// instruction set: half a ulp is the rounding to float32, the rest the error of the polynomials.
func TestDoubles(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, math.Nextafter32(1, 0), math.Nextafter32(1, 2), inf, -inf, nan, 1e-45, -1e-45, 1e-38, math.MaxFloat32, -math.MaxFloat32, 88.7, 89.5, -89.5, 1 << 29, 1 << 31}
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			for name, f := range map[string]struct {
				to  func(dst, src []float32)
				one func(float64) float64
			}{
				"tan": {TanTo, math.Tan}, "asin": {AsinTo, math.Asin}, "acos": {AcosTo, math.Acos}, "atan": {AtanTo, math.Atan}, "sinh": {SinhTo, math.Sinh},
				"cosh": {CoshTo, math.Cosh}, "asinh": {AsinhTo, math.Asinh}, "acosh": {AcoshTo, math.Acosh}, "atanh": {AtanhTo, math.Atanh},
			} {
				r := rand.New(rand.NewPCG(1, 9))
				for n := range 400 {
					src, dst := make([]float32, n%70), make([]float32, n%70)
					for i := range src {
						switch r.IntN(4) {
						case 0:
							src[i] = special[r.IntN(len(special))]
						case 1:
							src[i] = math.Float32frombits(r.Uint32())
						case 2:
							src[i] = float32(r.NormFloat64() * 10)
						default:
							src[i] = float32(2*r.Float64() - 1)
						}
					}
					f.to(dst, src)
					for i, x := range src {
						if e := ulps(dst[i], f.one(float64(x))); e > 0.55 {
							t.Fatalf("%s of %v is %v, %.2f units in the last place off %v", name, x, dst[i], e, f.one(float64(x)))
						}
						if f.one(float64(x)) == 0 && math.Signbit(float64(dst[i])) != math.Signbit(f.one(float64(x))) {
							t.Fatalf("%s of %v is %v", name, x, dst[i])
						}
					}
				}
			}
		})
	}
}

// TestPowTo compares powers with package math, on every instruction set.
func TestPowTo(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1.5, -1.5, 7, 1 << 24, -(1 << 24), 1<<24 - 1, inf, -inf, nan, 1e-45, -1e-45, 1e38, -1e38}
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			r := rand.New(rand.NewPCG(4, 9))
			for n := range 1000 {
				a, b, dst := make([]float32, n%70), make([]float32, n%70), make([]float32, n%70)
				for i := range a {
					a[i], b[i] = float32(math.Exp(r.NormFloat64()*10)), float32(r.NormFloat64()*4)
					if r.IntN(2) == 0 {
						a[i] = special[r.IntN(len(special))]
					}
					if r.IntN(2) == 0 {
						b[i] = special[r.IntN(len(special))]
					}
				}
				PowTo(dst, a, b)
				for i := range a {
					want := math.Pow(float64(a[i]), float64(b[i]))
					if e := ulps(dst[i], want); e > 0.6 || want == 0 && math.Signbit(float64(dst[i])) != math.Signbit(want) {
						t.Fatalf("%v to the power of %v is %v, %.2f units in the last place off %v", a[i], b[i], dst[i], e, want)
					}
				}
			}
		})
	}
}
