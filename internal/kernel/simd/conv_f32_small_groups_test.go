package simd

import (
	"testing"

	"pgregory.net/rapid"
)

// TestGroups compares the values that are written for the results of groups with their
// definition. Memory next to them must stay unchanged.
func TestGroups(t *testing.T) {
	everySet(t, func(t *testing.T) {
		if q := NewGroups(4, 4, 4); q == nil {
			t.Skip("no kernels in this instruction set")
		}
		rapid.Check(t, func(t *rapid.T) {
			draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
			groups, in, out := draw(1, 40, "groups"), draw(1, MaxGroup+1, "in"), draw(1, 20, "out")
			q := NewGroups(groups, in, out)
			if q == nil {
				return
			}
			if want := (groups*out + GroupLanes - 1) / GroupLanes; q.Blocks != want || q.Size() != in*GroupLanes {
				t.Fatalf("%d blocks of %d values, want %d of %d", q.Blocks, q.Size(), want, in*GroupLanes)
			}
			n, step := draw(0, 9, "n"), groups*in+draw(0, 3, "more")
			src := make([]float32, max(0, (n-1)*step)+groups*in)
			for i := range src {
				src[i] = float32(i + 1)
			}
			for b := range q.Blocks {
				dst := make([]float32, n*q.Size()+1)
				q.Put(dst[:n*q.Size()], src, step, b, n)
				for i, got := range dst[:n*q.Size()] {
					o := b*GroupLanes + i%GroupLanes
					if o >= groups*out {
						continue
					}
					if want := src[i/q.Size()*step+o/out*in+i/GroupLanes%in]; got != want {
						t.Fatalf("block %d: value %d is %v, want %v", b, i, got, want)
					}
				}
				if dst[n*q.Size()] != 0 {
					t.Fatal("a value next to the block is overwritten")
				}
			}
		})
	})
}
