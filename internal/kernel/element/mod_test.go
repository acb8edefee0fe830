package element

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestRemainder compares with math.Mod, which is exact.
func TestRemainder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 1))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 3, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-45, math.MaxFloat32}
	one := func() float32 {
		switch r.IntN(4) {
		case 0:
			return special[r.IntN(len(special))]
		case 1:
			return math.Float32frombits(r.Uint32())
		case 2:
			return float32(r.IntN(1000) - 500)
		}
		return float32(r.NormFloat64())
	}
	for range 200000 {
		x, y := one(), one()
		got, want := remainder(x, y), math.Mod(float64(x), float64(y))
		if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			t.Fatalf("%v by %v leaves %v, want %v", x, y, got, want)
		}
	}
}

// testDivisions compares kernels with plain Go, bit for bit, over values of all magnitudes.
func testDivisions[T tensor.Number](t *testing.T, r *rand.Rand, k simd.Quotient, one func() T, plain func(dst, a, b []T)) {
	t.Helper()
	f := simd.DivisionKernels()
	if !simd.HasDivisions[T](f, k) {
		return
	}
	for range 400 {
		n := r.IntN(150)
		a, b, got, want := make([]T, n), make([]T, n), make([]T, n+1), make([]T, n)
		got[n] = 7
		for i := range a {
			a[i], b[i] = one(), one()
		}
		plain(want, a, b)
		simd.Divide(f, k, got[:n], a, b, plain)
		for i, w := range want {
			g := got[i]
			if (g != w || 1/float64(g) != 1/float64(w)) && (g == g || w == w) {
				t.Fatalf("%T: %v of %v and %v, element %d of %d, is %v, want %v", a[i], k, a[i], b[i], i, n, g, w)
			}
		}
		if got[n] != 7 {
			t.Fatalf("%T: written behind the end", got[n])
		}
	}
}

func testIntDivisions[T tensor.Integer](t *testing.T, r *rand.Rand) {
	t.Helper()
	low, high := tensor.Bounds[T]()
	ends := []T{0, 1, 2, 3, 7, low, low + 1, high, high - 1, T(0) - 1}
	rare := 1
	one := func() T {
		switch r.IntN(4 * rare) {
		case 0:
			return ends[r.IntN(len(ends))]
		case 1:
			return T(r.Uint64())
		}
		return T(r.Uint64() >> (12 + r.IntN(50)))
	}
	// all kinds mixed, and mostly those that SIMD kernels support
	for _, rare = range []int{1, 100} {
		testDivisions(t, r, simd.TruncatedQuotient, one, intDivVec[T])
		testDivisions(t, r, simd.TruncatedRemainder, one, intModTruncVec[T])
		testDivisions(t, r, simd.FlooredRemainder, one, intModFloorVec[T])
	}
}

// TestDivisions compares SIMD divisions with plain Go.
func TestDivisions(t *testing.T) {
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(5, 5))
		testIntDivisions[int8](t, r)
		testIntDivisions[uint8](t, r)
		testIntDivisions[int16](t, r)
		testIntDivisions[uint16](t, r)
		testIntDivisions[int32](t, r)
		testIntDivisions[uint32](t, r)
		testIntDivisions[int64](t, r)
		testIntDivisions[uint64](t, r)
		special := []float64{0, math.Copysign(0, -1), 1, -1, 3, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, math.MaxFloat64, 1 << 52, 1<<53 - 1}
		rare := 1
		one := func() float64 {
			switch r.IntN(4 * rare) {
			case 0:
				return special[r.IntN(len(special))]
			case 1:
				return math.Float64frombits(r.Uint64())
			case 2:
				return float64(r.IntN(1000) - 500)
			}
			return r.NormFloat64() * math.Ldexp(1, r.IntN(60))
		}
		for _, rare = range []int{1, 100} {
			testDivisions(t, r, simd.TruncatedRemainder, one, modTruncVec[float64])
			testDivisions(t, r, simd.TruncatedRemainder, func() float32 { return float32(one()) }, modTruncVec[float32])
		}
		undo()
	}
}
