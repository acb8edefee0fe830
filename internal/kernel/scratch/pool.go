package scratch

import (
	"math/bits"
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
)

// Block bounds the packed activations that a worker holds, in elements: a quarter of a
// typical L2 cache.
const Block = 1 << 16

// scratchPool lends scratch buffers. It keeps a pool per size class. A large buffer therefore
// serves the large requests of the next layer, still in cache, and small requests do not make
// another one grow.
type scratchPool[T any] [bits.UintSize]sync.Pool

// Buffers by element type. Put returns what [Borrow] and [Borrow64] lend.
var (
	Float32s scratchPool[float32]
	Float64s scratchPool[float64]
)

// minScratch is the smallest buffer size, in elements.
const minScratch = 1 << 10

// Put returns a buffer.
func (r *scratchPool[T]) Put(s *[]T) { r.bucket(cap(*s)).Put(s) }

// bucket returns the pool for sizes in (2^(i-1), 2^i].
func (r *scratchPool[T]) bucket(n int) *sync.Pool { return &r[bits.Len(uint(max(n, minScratch)-1))] }

// get returns a buffer of n values with undefined content.
func (r *scratchPool[T]) get(n int) (*[]T, []T) {
	s, _ := r.bucket(n).Get().(*[]T)
	if s == nil {
		s = new([]T)
	}
	if cap(*s) < n {
		size := RoundUp(n, minScratch)
		if n <= Block {
			size = max(minScratch, 1<<bits.Len(uint(n-1)))
		}
		*s = hugepages.Make[T](size)
	}
	return s, (*s)[:n]
}

// Borrow lends n float32 values with undefined content.
func Borrow(n int) (*[]float32, []float32) { return Float32s.get(n) }

// Borrow64 lends n float64 values with undefined content.
func Borrow64(n int) (*[]float64, []float64) { return Float64s.get(n) }
