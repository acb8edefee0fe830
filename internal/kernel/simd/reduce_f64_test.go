package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// number returns a random value of a type. Floats are small integers, so that any order of
// operations is exact.
func number[T float64 | int32 | uint32 | int64 | uint64](r *rand.Rand) T {
	if any(T(0)) == any(0.0) {
		return T(r.IntN(41)) - 20
	}
	return T(r.Uint64())
}

// TestProducts compares sums of products with those of plain Go.
func TestProducts(t *testing.T) {
	everySet(t, func(t *testing.T) {
		testProducts[float64](t)
		testProducts[int32](t)
		testProducts[uint32](t)
		testProducts[int64](t)
		testProducts[uint64](t)
	})
}

func testProducts[T float64 | int32 | uint32 | int64 | uint64](t *testing.T) {
	f, r := FoldKernels(), rand.New(rand.NewPCG(8, 1))
	for range 300 {
		k, n, stepX, more := 1+r.IntN(20), r.IntN(150), 1+r.IntN(3), r.IntN(3)
		step := n + more
		x, lines, got := make([]T, k*stepX), make([]T, k*step+n), make([]T, n+1)
		for _, v := range [][]T{x, lines, got} {
			for i := range v {
				v[i] = number[T](r)
			}
		}
		want := slices.Clone(got)
		var dot T
		for i := range k {
			for j := range n {
				want[j] += x[i*stepX] * lines[i*step+j]
			}
		}
		for i, v := range lines[:n] {
			dot += v * got[i]
		}
		if sum, ok := Dot(f, lines[:n], got); ok && sum != dot {
			t.Fatalf("%T: product of %d is %v, want %v", dot, n, sum, dot)
		}
		if AddProducts(f, got[:n], x, stepX, lines, step, k) && !slices.Equal(got, want) {
			t.Fatalf("%T: %d sums of %d products are %v, want %v", dot, n, k, got, want)
		}
	}
}

// TestDoubleFolds compares float64 reductions with those of plain Go. The inputs are small
// integers and powers of two, which are exact in any order.
func TestDoubleFolds(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f, r := FoldKernels(), rand.New(rand.NewPCG(8, 2))
		if !f.HasDoubles() {
			return
		}
		for range 300 {
			for k := range Fold(foldKinds) {
				lines, n := 1+r.IntN(6), r.IntN(100)
				step := n + r.IntN(3)
				src, got := make([]float64, lines*step+n), make([]float64, n+1)
				for i := range src {
					if src[i] = number[float64](r); k == FoldProduct {
						src[i] = []float64{1, -1, 2, 0.5}[r.IntN(4)]
					}
				}
				f.DoubleLines(k, got[:n], src, step, lines)
				row := k.Start()
				for i := range n {
					row = k.OneDouble(row, src[i])
					want := k.Start()
					for l := range lines {
						want = k.OneDouble(want, src[l*step+i])
					}
					if got[i] != want {
						t.Fatalf("fold %d of column %d of %d, %d lines, is %v, want %v", k, i, n, lines, got[i], want)
					}
				}
				if got := f.DoubleRow(k, src[:n]); got != row {
					t.Fatalf("fold %d of a row of %d is %v, want %v", k, n, got, row)
				}
				if got[n] != 0 {
					t.Fatal("written past the end")
				}
			}
		}
		if got := f.DoubleRow(FoldSum, []float64{1, math.NaN(), 2}); !math.IsNaN(got) {
			t.Fatalf("the sum of a NaN is %v", got)
		}
	})
}
