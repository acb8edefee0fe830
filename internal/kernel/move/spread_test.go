package move

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/workers"
)

// TestSpread copies lines of a few words that fill the destination side by side, and looks at what lies around it.
func TestSpread(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	src := make([]uint8, 1<<22)
	for i := range src {
		src[i] = uint8(r.Uint32())
	}
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for range 400 {
			width := []int{4, 8, 16}[r.IntN(3)]
			outer, m, n := 1+r.IntN(3), 1+r.IntN(12), 1+r.IntN(40)
			if r.IntN(8) == 0 {
				m = 1500
			}
			step, along, to, at := r.IntN(2*n), 1, 1+r.IntN(3), r.IntN(5)
			if r.IntN(3) == 0 {
				along = 0
			}
			all := outer * m * n
			got := make([]uint8, (to+all+9)*width)
			New([]int{outer, m, n}, []int{m * n, n, 1}, []int{7, step, along}, to, at).Run(pool, Slice{Bytes: got, Width: width}, Slice{Bytes: src[:len(src)/16*16], Width: width})
			for i := range got {
				e := i/width - to
				want := uint8(0)
				if e >= 0 && e < all {
					want = src[(at+e/(m*n)*7+e/n%m*step+e%n*along)*width+i%width]
				}
				if got[i] != want {
					t.Fatalf("%d threads, %d·%d lines of %d elements of %d bytes, %d apart, steps of %d: byte %d of element %d is %d, want %d",
						threads, outer, m, n, width, step, along, i%width, e, got[i], want)
				}
			}
		}
	}
}
