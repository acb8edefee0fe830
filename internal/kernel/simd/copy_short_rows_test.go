package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpreads compares rows of all lengths with element-wise copies.
func TestSpreads(t *testing.T) {
	everySet(t, func(t *testing.T) {
		s, r := ShortRowKernels(), rand.New(rand.NewPCG(1, 2))
		if s == nil {
			t.Skip("plain Go")
		}
		for range 1000 {
			rows, n, step, ones := 1+r.IntN(9), 1+r.IntN(MaxShortRow), r.IntN(40), r.IntN(2) == 0
			have := (rows-1)*step + n
			if ones {
				have = (rows-1)*step + 1
			}
			src := make([]float32, have)
			for i := range src {
				src[i] = r.Float32()
			}
			got, want := make([]float32, (rows-1)*n+MaxShortRow), make([]float32, rows*n)
			for i := range want {
				if want[i] = src[i/n*step]; !ones {
					want[i] = src[i/n*step+i%n]
				}
			}
			if ones {
				s.Fill(got, src, rows, n, step)
			} else {
				s.Copy(got, src, rows, n, step)
			}
			if !slices.Equal(got[:len(want)], want) {
				t.Fatalf("%d rows of %d, %d apart, of one value each: %v: %v, want %v", rows, n, step, ones, got, want)
			}
		}
	})
}
