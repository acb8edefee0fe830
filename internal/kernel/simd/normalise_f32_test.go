package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestRows compares kernels over rows of all lengths with their definitions.
func TestRows(t *testing.T) {
	for _, s := range simd.Available()[1:] {
		t.Run(s.String(), func(t *testing.T) {
			defer simd.Use(s)()
			r := simd.RowKernels()
			if r == nil {
				t.Skip("no SIMD kernels")
			}
			rnd := rand.New(rand.NewPCG(11, 12))
			near := func(what string, n int, got, want, tolerance float64) {
				t.Helper()
				if d := math.Abs(got - want); !(d <= tolerance*math.Abs(want)+1.5e-45*2) && got != want && (got == got || want == want) {
					t.Fatalf("%s of %d is %v, want %v", what, n, got, want)
				}
			}
			for n := range 100 {
				compareLayerRows(t, rnd, r, n, near)
				src, sums, dst := make([]float32, n), make([]float32, n), make([]float32, n+1)
				dst[n] = 7
				var sum, squares, magnitude float64
				mean := rnd.NormFloat64()
				for i := range src {
					src[i], sums[i] = float32(rnd.NormFloat64()*100), float32(rnd.ExpFloat64()*50)
					sum += float64(src[i])
					magnitude += math.Abs(float64(src[i]))
					squares += (float64(src[i]) - mean) * (float64(src[i]) - mean)
				}
				if d := math.Abs(r.Sum(src) - sum); d > 1e-14*magnitude {
					t.Fatalf("the sum of %d is off by %v", n, d)
				}
				near("squares", n, r.Squares(src, mean), squares, 1e-13)
				if n > 0 {
					src[rnd.IntN(n)] = []float32{0, float32(math.Inf(1)), float32(math.NaN()), -1e-42, 3e38}[rnd.IntN(5)]
				}
				r.Normalise(dst[:n], src, mean, 0.37)
				for i, x := range src {
					near("a normalised one", n, float64(dst[i]), float64(float32((float64(x)-mean)*0.37)), 0)
				}
				copy(dst, sums)
				r.AddSquares(dst[:n], src)
				for i, x := range src {
					near("a square added", n, float64(dst[i]), float64(float32(float64(sums[i])+float64(x)*float64(x))), 2e-7)
				}
				r.ThreeQuarters(dst[:n], src, sums, 1.5, 0.25)
				for i, x := range src {
					near("a quotient", n, float64(dst[i]), float64(x)/math.Pow(1.5+0.25*float64(sums[i]), 0.75), 3.6e-7)
				}
				r.Roots(dst[:n], src)
				for i, x := range src {
					near("a root", n, float64(dst[i]), float64(float32(math.Sqrt(float64(x)))), 0)
				}
				if dst[n] != 7 {
					t.Fatal("something was written past the end")
				}
			}
		})
	}
}

// TestOrderedSums requires the bits of sums in order.
func TestOrderedSums(t *testing.T) {
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		k := simd.RowKernels()
		if k == nil {
			undo()
			continue
		}
		r := rand.New(rand.NewPCG(uint64(set), 8))
		for range 300 {
			rows, n := r.IntN(30), r.IntN(50)
			src, sums := make([]float32, rows*n), make([]float32, rows)
			for i := range src {
				src[i] = r.Float32()*2 - 1
				if r.IntN(40) == 0 {
					src[i] *= 1e8
				}
			}
			k.OrderedSums(sums, src, n)
			for i, got := range sums {
				want := float32(0)
				for _, v := range src[i*n:][:n] {
					want += v
				}
				if got != want {
					t.Fatalf("%v: row %d of %d, %d elements each, is %v, want %v", set, i, rows, n, got, want)
				}
			}
		}
		undo()
	}
}

// compareLayerRows compares three rows of n values and checks that memory next to them is
// unchanged.
func compareLayerRows(t *testing.T, rnd *rand.Rand, r *simd.Rows, n int, near func(what string, n int, got, want, tolerance float64)) {
	t.Helper()
	const rows, eps = 3, 1e-5
	src, dst, gamma, beta := make([]float32, rows*n), make([]float32, rows*n+1), make([]float32, n), make([]float32, n)
	for i := range src {
		src[i] = float32(rnd.NormFloat64()*10 + 3)
	}
	for i := range gamma {
		gamma[i], beta[i] = float32(rnd.NormFloat64()), float32(rnd.NormFloat64())
	}
	dst[rows*n] = 7
	if !r.LayerRows(dst[:rows*n], src, gamma, beta, eps) {
		return
	}
	for i := range rows {
		row := src[i*n:][:n]
		var mean, variance float64
		for _, x := range row {
			mean += float64(x) / float64(n)
		}
		for _, x := range row {
			variance += (float64(x) - mean) * (float64(x) - mean) / float64(n)
		}
		for j, x := range row {
			normal := (float64(x) - mean) / math.Sqrt(variance+eps)
			// The product and the sum are rounded once each, after the normalised value.
			if got, want := float64(dst[i*n+j]), normal*float64(gamma[j])+float64(beta[j]); math.Abs(got-want) > 2e-7*(math.Abs(normal*float64(gamma[j]))+math.Abs(float64(beta[j]))) {
				near("a value of a row", n, got, want, 0)
			}
		}
	}
	if dst[rows*n] != 7 {
		t.Fatalf("memory next to rows of %d is overwritten", n)
	}
}
