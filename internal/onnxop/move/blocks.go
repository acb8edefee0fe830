package move

import (
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Blocks selects blocks of Len elements: the output is, for each of Rows rows,
// the blocks numbered At of that row of the source.
type Blocks struct {
	Rows   int
	SrcRow int   // elements between rows of the source
	At     []int // numbers of blocks within a row, all in range
	Len    int
}

// Gather copies the blocks from src to dst, both of one element width of at
// least a byte, or strings.
func (b *Blocks) Gather(pool *workers.Pool, dst, src *tensor.Tensor) {
	switch dst.Type.Bits() {
	case 0:
		gather(b, pool, dst.Strings, src.Strings)
	case 8:
		gather(b, pool, tensor.Of[uint8](dst), tensor.Of[uint8](src))
	case 16:
		gather(b, pool, tensor.Of[uint16](dst), tensor.Of[uint16](src))
	case 32:
		gather(b, pool, tensor.Of[uint32](dst), tensor.Of[uint32](src))
	case 64:
		gather(b, pool, tensor.Of[uint64](dst), tensor.Of[uint64](src))
	case 128:
		gather(b, pool, tensor.Of[complex128](dst), tensor.Of[complex128](src))
	default:
		panic("move: " + dst.Type.String() + " elements must be unpacked first")
	}
}

func gather[T any](b *Blocks, pool *workers.Pool, dst, src []T) {
	total := b.Rows * len(b.At)
	if total == 0 || b.Len == 0 {
		return
	}
	if total*b.Len < 2*parallelFrom {
		gatherSpan(b, dst, src, 0, total)
		return
	}
	pool.For(total, max(1, parallelFrom/b.Len), func(lo, hi int) { gatherSpan(b, dst, src, lo, hi) })
}

// gatherSpan copies blocks lo to hi of the output.
func gatherSpan[T any](b *Blocks, dst, src []T, lo, hi int) {
	for lo < hi {
		row, first := lo/len(b.At), lo%len(b.At)
		n := min(hi-lo, len(b.At)-first)
		at, s := b.At[first:first+n], src[row*b.SrcRow:]
		if b.Len == 1 {
			d := dst[lo : lo+n]
			for i, a := range at {
				d[i] = s[a]
			}
		} else {
			for i, a := range at {
				copy(dst[(lo+i)*b.Len:(lo+i+1)*b.Len], s[a*b.Len:])
			}
		}
		lo += n
	}
}
