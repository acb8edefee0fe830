package simd

import "unsafe"

// blockCopies is the kernel of [CopyBlocks].
type blockCopies struct {
	Set    Set
	blocks func(dst, src *byte, at *int, n, bytes, unit int)
}

// Sizes in bytes of the blocks that [CopyBlocks] copies: larger ones are copied as fast one by one.
const (
	minCopiedBlock = 32
	maxCopiedBlock = 512
)

// CopyBlocks copies blocks of n elements to adjacent places of dst: those with the indices at,
// which begin unit elements apart in src. All indices must be in range. It returns false, and does
// nothing, if no kernel fits the size of the blocks.
func CopyBlocks[T any](dst, src []T, at []int, n, unit int) bool {
	size := int(unsafe.Sizeof(*new(T)))
	f := blockKernels.pick()
	if f == nil || len(at) == 0 || n*size < minCopiedBlock || n*size > maxCopiedBlock {
		return false
	}
	_, _ = dst[len(at)*n-1], src[0]
	f.blocks(dataPointer[byte](dst), dataPointer[byte](src), &at[0], len(at), n*size, unit*size)
	return true
}

// ShortRows holds kernels that write short rows of float32 side by side.
type ShortRows struct {
	Set         Set
	lines, ones func(dst, src *float32, rows, n, step int)
}

// MaxShortRow is the maximum length of a row. At most this number of elements after the last row is
// overwritten.
const MaxShortRow = 32

// ShortRowKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func ShortRowKernels() *ShortRows { return shortRowKernels.pick() }

// Copy copies rows of n values, at most [MaxShortRow], that are step apart in src.
func (s *ShortRows) Copy(dst, src []float32, rows, n, step int) {
	if spreadable(dst, rows, n) {
		_ = src[(rows-1)*step+n-1]
		s.lines(&dst[0], &src[0], rows, n, step)
	}
}

// Fill fills rows of n values, at most [MaxShortRow], each with one value of src. These are step
// apart.
func (s *ShortRows) Fill(dst, src []float32, rows, n, step int) {
	if spreadable(dst, rows, n) {
		_ = src[(rows-1)*step]
		s.ones(&dst[0], &src[0], rows, n, step)
	}
}

// spreadable reports whether the rows are not empty and not too long. It checks that dst has
// space for full registers.
func spreadable(dst []float32, rows, n int) bool {
	if rows <= 0 || n <= 0 || n > MaxShortRow {
		return false
	}
	_ = dst[(rows-1)*n+MaxShortRow-1]
	return true
}
