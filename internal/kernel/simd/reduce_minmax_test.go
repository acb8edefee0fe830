package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

type extremeNumber interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// TestExtremes compares maxima and minima of rows and columns with those of plain Go.
func TestExtremes(t *testing.T) {
	everySet(t, func(t *testing.T) {
		testExtremes[int8](t)
		testExtremes[uint8](t)
		testExtremes[int16](t)
		testExtremes[uint16](t)
		testExtremes[int32](t)
		testExtremes[uint32](t)
		testExtremes[int64](t)
		testExtremes[uint64](t)
		testExtremes[float32](t)
		testExtremes[float64](t)
	})
}

func testExtremes[T extremeNumber](t *testing.T) {
	f, r := ExtremeKernels(), rand.New(rand.NewPCG(8, 3))
	if !HasExtremes[T](f) {
		return
	}
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}
	for i := range 400 {
		lines, n, least := 1+r.IntN(9), 1+r.IntN([]int{20, 300}[i%2]), r.IntN(2) == 0
		step := n + r.IntN(3)
		src, got := make([]T, lines*step+n), make([]T, max(n, lines)+1)
		for k := range src {
			if src[k] = T(r.Uint64()); T(1)/2 != 0 {
				src[k] = T(r.NormFloat64())
				if r.IntN(20) == 0 {
					src[k] = T(special[r.IntN(len(special))])
				}
			}
		}
		check := func(what string, got T, count int, at func(i int) T) {
			want := at(0)
			for k := range count {
				x := at(k)
				if x != x || want == want && (least && x < want || !least && x > want) {
					want = x
				}
			}
			if got != want && (got == got || want == want) {
				t.Fatalf("%T: %s of %d lines of %d (least %t) is %v, want %v", got, what, lines, n, least, got, want)
			}
		}
		ExtremeLines(f, least, got[:n], src, step, lines)
		for k := range n {
			check("column", got[k], lines, func(l int) T { return src[l*step+k] })
		}
		if got[n] != 0 {
			t.Fatal("written past the end")
		}
		clear(got)
		ExtremeRows(f, least, got[:lines], src, n)
		for l := range lines {
			check("row", got[l], n, func(k int) T { return src[l*n+k] })
		}
		if got[lines] != 0 {
			t.Fatal("written past the end")
		}
	}
}
