package simd

// Softmaxes holds the kernels of softmax over 8-bit quantised values.
type Softmaxes struct {
	Set        Set
	largest    func(src *byte, n int, flip uint32) uint64
	sumBelow   func(src *byte, n int, top, flip uint32, planes *[3][256]uint8) uint64
	table      func(dst *byte, src *int32, n int, by, half, down, lo, hi int32)
	tableBelow func(dst, src *byte, n int, top, flip uint32, table *byte)
}

// SoftmaxKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func SoftmaxKernels() *Softmaxes { return softmaxKernels.pick() }

// Sum returns the largest value of a row and the sum of a table of 24-bit values. The largest
// value is unsigned: for signed rows it is increased by 128. The table is indexed by the
// difference between the largest value and a value. Its planes hold the bytes of the entries, the
// lowest ones first.
func (f *Softmaxes) Sum(row []uint8, signed bool, planes *[3][256]uint8) (top uint32, sum int64) {
	top = uint32(f.largest(&row[0], len(row), signFlip(signed)))
	return top, int64(f.sumBelow(&row[0], len(row), top, signFlip(signed), planes))
}

// Write writes the results of a row. A value that is d below the top becomes (by·exps[d] + 2^30)
// / 2^31, divided by 2^down, ties up, plus lo, at most hi. The lower 8 bits count. Products are
// less than 2^62; down is from 1 to 30.
func (f *Softmaxes) Write(dst, row []uint8, signed bool, top uint32, exps *[256]int32, by int32, down int, lo, hi int32, buf *[256]uint8) {
	f.table(&buf[0], &exps[0], len(exps), by, 1<<(down-1), int32(down), lo, hi)
	_ = dst[len(row)-1]
	f.tableBelow(&dst[0], &row[0], len(row), top, signFlip(signed), &buf[0])
}

func signFlip(signed bool) uint32 {
	if signed {
		return 0x80
	}
	return 0
}
