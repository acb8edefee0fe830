package simd

// Softmaxes are the parts of the softmax of codes of 8 bits.
type Softmaxes struct {
	Set        Set
	largest    func(src *byte, n int, flip uint32) uint64
	sumBelow   func(src *byte, n int, top, flip uint32, planes *[3][256]uint8) uint64
	table      func(dst *byte, src *int32, n int, by, half, down, lo, hi int32)
	tableBelow func(dst, src *byte, n int, top, flip uint32, table *byte)
}

// SoftmaxKernels of the current set; nil where plain Go is all there is.
func SoftmaxKernels() *Softmaxes { return softmaxLoops.pick() }

// Sum returns the largest code of a row, signed or not, as one without a sign (more by 128 where they have one), and the sum of numbers of three
// bytes for how far the codes are below it; planes have the lowest bytes of the numbers first.
func (f *Softmaxes) Sum(row []uint8, signed bool, planes *[3][256]uint8) (top uint32, sum int64) {
	top = uint32(f.largest(&row[0], len(row), flip(signed)))
	return top, int64(f.sumBelow(&row[0], len(row), top, flip(signed), planes))
}

// Write writes the row's results: for a code d below the top (by·exps[d] + 2^30) / 2^31, divided by 2^down, ties up, plus lo, at most hi, of which the
// lower 8 bits count. Products are less than 2^62; down is at least 1 and at most 30.
func (f *Softmaxes) Write(dst, row []uint8, signed bool, top uint32, exps *[256]int32, by int32, down int, lo, hi int32, room *[256]uint8) {
	f.table(&room[0], &exps[0], len(exps), by, 1<<(down-1), int32(down), lo, hi)
	_ = dst[len(row)-1]
	f.tableBelow(&dst[0], &row[0], len(row), top, flip(signed), &room[0])
}

func flip(signed bool) uint32 {
	if signed {
		return 0x80
	}
	return 0
}
