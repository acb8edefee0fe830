package kernel

import (
	"math/bits"
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
)

// rooms lends working memory. Rooms of different sizes are kept apart, so that one that was large stays what is large in the next
// layer as well: the caches know it, and no small use of it makes another one grow.
type rooms[T any] [bits.UintSize]sync.Pool

var (
	scratch   rooms[float32]
	scratch64 rooms[float64]
)

// leastRoom is the size of the smallest rooms.
const leastRoom = 1 << 10

// Put takes a room back.
func (r *rooms[T]) Put(s *[]T) { r.of(cap(*s)).Put(s) }

// of has the rooms of more than half of 2^i values and at most those.
func (r *rooms[T]) of(n int) *sync.Pool { return &r[bits.Len(uint(max(n, leastRoom)-1))] }

// lend gives room for n values, which stand there as they may.
func (r *rooms[T]) lend(n int) (*[]T, []T) {
	s, _ := r.of(n).Get().(*[]T)
	if s == nil {
		s = new([]T)
	}
	if cap(*s) < n {
		size := roundUp(n, leastRoom)
		if n <= packBlock {
			size = max(leastRoom, 1<<bits.Len(uint(n-1)))
		}
		*s = hugepages.Make[T](size)
	}
	return s, (*s)[:n]
}

func borrow(n int) (*[]float32, []float32) { return scratch.lend(n) }

func borrow64(n int) (*[]float64, []float64) { return scratch64.lend(n) }
