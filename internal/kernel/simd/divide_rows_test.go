package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestShares compares with divisions: all fractions by several numbers, and arbitrary numbers by
// each other.
func TestShares(t *testing.T) {
	everySet(t, func(t *testing.T) {
		c := CurveKernels()
		if c == nil || c.shares == nil {
			if c.Shares(nil, nil, nil, 3) {
				t.Error("the kernel is missing")
			}
			t.Skip("no kernel in this instruction set")
		}
		r := rand.New(rand.NewPCG(21, 22))
		compare := func(x, by []float32, n int) {
			t.Helper()
			got := make([]float32, len(x)+1)
			if !c.Shares(got, x, by, n) {
				t.Fatalf("no row is divided by %v", by)
			}
			for i, v := range x {
				if want := v / by[i/n]; math.Float32bits(want) != math.Float32bits(got[i]) && (want == want || got[i] == got[i]) {
					t.Fatalf("%v by %v is %v, want %v", v, by[i/n], got[i], want)
				}
			}
			if got[len(x)] != 0 {
				t.Fatal("written past the end")
			}
		}
		all := make([]float32, 1<<23)
		for i := range all {
			all[i] = math.Float32frombits(126<<23 | uint32(i))
		}
		numbers := []float32{1, math.Float32frombits(0x3fffffff), 3, math.Float32frombits(0x3f800001)}
		for range 3 {
			numbers = append(numbers, math.Float32frombits(127<<23|r.Uint32()>>9))
		}
		if testing.Short() {
			numbers = numbers[:2]
		}
		for _, by := range numbers {
			compare(all, []float32{by}, len(all))
		}
		for range 3000 {
			n, rows := 1+r.IntN(70), 1+r.IntN(4)
			x, by := make([]float32, n*rows), make([]float32, rows)
			for i := range x {
				switch r.IntN(12) {
				case 0:
					x[i] = math.Float32frombits(r.Uint32()) // any value: infinite, NaN, subnormal
				case 1:
					x[i] = float32(math.Copysign(0, float64(r.IntN(2))-0.5))
				default:
					x[i] = math.Float32frombits(uint32(127-60+r.IntN(120))<<23 | r.Uint32()>>9)
				}
			}
			for i := range by {
				by[i] = math.Float32frombits(uint32(127-60+r.IntN(120))<<23 | r.Uint32()>>9)
			}
			compare(x, by, n)
		}
		for _, by := range []float32{0, -1, 1e-20, 1e20, float32(math.Inf(1)), float32(math.NaN())} {
			if c.Shares(make([]float32, 2), make([]float32, 2), []float32{1, by}, 1) {
				t.Errorf("divided by %v", by)
			}
		}
	})
}
