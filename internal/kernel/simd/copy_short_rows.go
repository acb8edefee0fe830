package simd

// Spreads holds kernels that write short rows of float32 side by side.
type Spreads struct {
	Set         Set
	lines, ones func(dst, src *float32, rows, n, step int)
}

// SpreadRow is the maximum length of a row. At most this number of elements after the last row is
// overwritten.
const SpreadRow = 32

// SpreadKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func SpreadKernels() *Spreads { return spreadKernels.pick() }

// Lines copies rows of n values, at most [SpreadRow], that are step apart in src.
func (s *Spreads) Lines(dst, src []float32, rows, n, step int) {
	if spreadable(dst, rows, n) {
		_ = src[(rows-1)*step+n-1]
		s.lines(&dst[0], &src[0], rows, n, step)
	}
}

// Ones fills rows of n values, at most [SpreadRow], each with one value of src. These are step
// apart.
func (s *Spreads) Ones(dst, src []float32, rows, n, step int) {
	if spreadable(dst, rows, n) {
		_ = src[(rows-1)*step]
		s.ones(&dst[0], &src[0], rows, n, step)
	}
}

// spreadable reports whether the rows are not empty and not too long. It checks that dst has
// space for full registers.
func spreadable(dst []float32, rows, n int) bool {
	if rows <= 0 || n <= 0 || n > SpreadRow {
		return false
	}
	_ = dst[(rows-1)*n+SpreadRow-1]
	return true
}
