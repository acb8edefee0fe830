package simd

// Spreads write short rows of floats side by side.
type Spreads struct {
	Set         Set
	lines, ones func(dst, src *float32, rows, n, step int)
}

// SpreadRow is the most elements of a row, and how many behind the last row are overwritten at most.
const SpreadRow = 32

// SpreadKernels of the current set; nil where plain Go is all there is.
func SpreadKernels() *Spreads { return spreadLoops.pick() }

// Lines copies rows of n floats, up to [SpreadRow], that lie step apart in src.
func (s *Spreads) Lines(dst, src []float32, rows, n, step int) {
	if spreadable(dst, rows, n) {
		_ = src[(rows-1)*step+n-1]
		s.lines(&dst[0], &src[0], rows, n, step)
	}
}

// Ones fills rows of n floats, up to [SpreadRow], each with one of src, which lie step apart.
func (s *Spreads) Ones(dst, src []float32, rows, n, step int) {
	if spreadable(dst, rows, n) {
		_ = src[(rows-1)*step]
		s.ones(&dst[0], &src[0], rows, n, step)
	}
}

// spreadable tells whether there is anything to do, and checks that dst has room for whole registers.
func spreadable(dst []float32, rows, n int) bool {
	if rows <= 0 || n <= 0 || n > SpreadRow {
		return false
	}
	_ = dst[(rows-1)*n+SpreadRow-1]
	return true
}
