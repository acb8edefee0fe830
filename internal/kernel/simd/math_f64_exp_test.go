package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExpDoubles compares exponentials of float64 with those of package math.
func TestExpDoubles(t *testing.T) {
	everySet(t, func(t *testing.T) {
		c, r := CurveKernels(), rand.New(rand.NewPCG(8, 6))
		if !c.HasDoubles() {
			return
		}
		special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 709.7, 710, -745, -746, 1e300, -1e300, 1e-300, 5e-324}
		for range 400 {
			n, shift := r.IntN(60), 0.0
			if r.IntN(2) == 0 {
				shift = r.NormFloat64()
			}
			src, got := make([]float64, n), make([]float64, n+1)
			for i := range src {
				src[i] = r.NormFloat64() * []float64{1e-3, 1, 20, 300}[r.IntN(4)]
				if r.IntN(10) == 0 {
					src[i] = special[r.IntN(len(special))]
				}
			}
			sum, total := c.ExpDoubles(got[:n], src, shift), 0.0
			for i, x := range src {
				want := math.Exp(x - shift)
				total += got[i]
				if got[i] != want && !(math.IsNaN(got[i]) && math.IsNaN(want)) && !(math.Abs(got[i]-want) <= max(want*0x1p-51, 5e-324)) {
					t.Fatalf("e^%v is %v, want %v", x-shift, got[i], want)
				}
			}
			if sum != total && !(math.IsNaN(sum) && math.IsNaN(total)) && !(math.Abs(sum-total) <= 1e-14*total) {
				t.Fatalf("the sum is %v, want %v", sum, total)
			}
			if got[n] != 0 {
				t.Fatal("written past the end")
			}
		}
	})
}
