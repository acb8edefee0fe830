package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPlaces compares the index of the largest value with a sequential search. It covers equal
// values, infinities, NaN as the first element and later, and rows that do not fill registers.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 15))
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1))}
	for _, set := range Available() {
		undo := Use(set)
		f := ArgMaxKernels()
		for range 2000 {
			if f == nil {
				break
			}
			n, rows := 1+r.IntN(150), 1+r.IntN(4)
			floats, bytes := make([]float32, n*rows), make([]uint8, n*rows)
			for i := range floats {
				floats[i], bytes[i] = float32(r.IntN(9)-4), uint8(r.IntN(256))
				if r.IntN(6) == 0 {
					floats[i] = special[r.IntN(len(special))]
				}
			}
			got := make([]int, rows)
			check := func(what string, greater func(a, b int) bool) {
				for i := range rows {
					want := 0
					for k := 1; k < n; k++ {
						if greater(i*n+k, i*n+want) {
							want = k
						}
					}
					if got[i] != want {
						t.Fatalf("%v: %s, row %d of %d: %d, want %d", set, what, i, n, got[i], want)
					}
				}
			}
			f.Floats(got, floats, n)
			check("floats", func(a, b int) bool { return floats[a] > floats[b] })
			f.Bytes(got, bytes, n, false)
			check("unsigned values", func(a, b int) bool { return bytes[a] > bytes[b] })
			f.Bytes(got, bytes, n, true)
			check("signed values", func(a, b int) bool { return int8(bytes[a]) > int8(bytes[b]) })
		}
		undo()
	}
}

// TestPlacesOfColumns compares with a search line by line: equal values, infinities, NaN.
func TestPlacesOfColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 16))
	everySet(t, func(t *testing.T) {
		f := ArgMaxKernels()
		for range 1000 {
			n, lines, least, last := 1+r.IntN(40), 1+r.IntN(9), r.IntN(2) == 0, r.IntN(2) == 0
			step := n + r.IntN(3)
			src, got := make([]float32, lines*step), make([]int64, n)
			for i := range src {
				if src[i] = float32(r.IntN(5) - 2); r.IntN(8) == 0 {
					src[i] = oddFloats[r.IntN(len(oddFloats))]
				}
			}
			if !f.Columns(got, src, step, lines, least, last) {
				t.Skip("no SIMD kernel")
			}
			for c, g := range got {
				best, want := src[c], 0
				for l := 1; l < lines && best == best; l++ {
					x := src[l*step+c]
					if better := x > best; better && !least || x < best && least || last && x == best || x != x {
						best, want = x, l
					}
				}
				if int(g) != want {
					t.Fatalf("column %d of %d lines, least %t, last %t: %d, want %d", c, lines, least, last, g, want)
				}
			}
		}
	})
}
