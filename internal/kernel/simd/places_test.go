package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Places of the largest values are those of comparing one after the other: equal ones, infinities, what is no number, at the beginning
// and behind it, rows beside whole registers.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 15))
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1))}
	for _, set := range Available() {
		undo := Use(set)
		f := PlaceKernels()
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
			check("codes without a sign", func(a, b int) bool { return bytes[a] > bytes[b] })
			f.Bytes(got, bytes, n, true)
			check("codes with a sign", func(a, b int) bool { return int8(bytes[a]) > int8(bytes[b]) })
		}
		undo()
	}
}
