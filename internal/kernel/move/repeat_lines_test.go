package move

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// TestSpread copies lines of a few words that fill the destination contiguously, and checks the
// memory around it.
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

// TestRows copies lines of words with gaps on both sides, and checks the memory between them.
func TestRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	src := make([]uint8, 1<<22)
	for i := range src {
		src[i] = uint8(r.Uint32())
	}
	type shape struct{ width, outer, m, n, dm, sm int }
	shapes := []shape{{4, 2, 64, 16, 48, 16}, {4, 64, 3, 16, 16, 1024}, {16, 3, 5, 4, 4, 9}, {8, 1, 7, 5, 5, 0}, {4, 1, 4, 255, 256, 255}, {4, 1, 4, 257, 258, 257}, {2, 2, 4, 16, 17, 20}, {4, 1, 4001, 16, 20, 16}, {4, 3, 2001, 64, 64, 70}, {4, 2000, 5, 64, 64, 70}}
	for range 300 {
		n := 1 + r.IntN(40)
		if r.IntN(4) == 0 {
			n = 1 + r.IntN(300)
		}
		shapes = append(shapes, shape{[]int{2, 4, 8, 16}[r.IntN(4)], 1 + r.IntN(3), 1 + r.IntN(40), n, n + r.IntN(2)*r.IntN(20), n + r.IntN(2)*r.IntN(20)})
	}
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for _, s := range shapes {
			to, at := r.IntN(3), r.IntN(5)
			all := s.outer * s.m * s.dm
			got := make([]uint8, (to+all+9)*s.width)
			want := make([]uint8, len(got))
			p := New([]int{s.outer, s.m, s.n}, []int{s.m * s.dm, s.dm, 1}, []int{7, s.sm, 1}, to, at)
			p.Run(pool, Slice{Bytes: got, Width: s.width}, Slice{Bytes: src[:len(src)/16*16], Width: s.width})
			for o := range s.outer {
				for m := range s.m {
					copy(want[(to+(o*s.m+m)*s.dm)*s.width:][:s.n*s.width], src[(at+o*7+m*s.sm)*s.width:])
				}
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%d threads, %+v: byte %d of element %d is %d, want %d", threads, s, i%s.width, i/s.width-to, got[i], want[i])
				}
			}
		}
	}
}
