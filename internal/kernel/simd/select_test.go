package simd

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestPicks compares with an element-wise selection, for each element size, with and without
// steps.
func TestPicks(t *testing.T) {
	everySet(t, func(t *testing.T) {
		p, r := SelectKernels(), rand.New(rand.NewPCG(2, 1))
		for range 1000 {
			n, width, steps := r.IntN(150), []int{1, 2, 4, 8}[r.IntN(4)], [2]int{r.IntN(2), r.IntN(2)}
			random := func(n int) []byte {
				v := make([]byte, n)
				for i := range v {
					v[i] = uint8(r.Uint32())
				}
				return v
			}
			from, cond, got := [2][]byte{}, random(n), random(n*width+1)
			for k := range from {
				from[k] = random(max(1, n*steps[k]) * width)
			}
			want := bytes.Clone(got)
			for i := range cond {
				if cond[i] &= 3; cond[i] == 0 {
					copy(want[i*width:][:width], from[1][i*steps[1]*width:])
				} else {
					copy(want[i*width:][:width], from[0][i*steps[0]*width:])
				}
			}
			if !p.Run(got[:n*width], from[0], from[1], cond, width, steps[0], steps[1]) {
				t.Skip("plain Go")
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%d elements of %d bytes, steps %v: %v, want %v", n, width, steps, got, want)
			}
		}
	})
}
