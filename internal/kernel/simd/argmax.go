package simd

// ArgMax holds kernels that find the indices of the largest and the smallest values.
type ArgMax struct {
	Set    Set
	floats func(dst *int, src *float32, n, rows int)
	bytes  func(dst *int, src *byte, n, rows int, flip uint32)
	// For the largest and the smallest value; for the first and the last index.
	columns [2][2]func(dst *int64, src *float32, step, lines, n int)
}

// ArgMaxKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func ArgMaxKernels() *ArgMax { return argMaxKernels.pick() }

// Floats writes, for each row of n values, the index of the first of the largest values. It has
// the result of a sequential comparison with the largest value so far: NaN is skipped, but a NaN
// in the first element stays the largest.
func (f *ArgMax) Floats(dst []int, src []float32, n int) {
	if len(dst) > 0 && n > 0 {
		_ = src[len(dst)*n-1]
		f.floats(&dst[0], &src[0], n, len(dst))
	}
}

// Bytes is Floats for 8-bit values, signed or not.
func (f *ArgMax) Bytes(dst []int, src []uint8, n int, signed bool) {
	if len(dst) > 0 && n > 0 {
		_ = src[len(dst)*n-1]
		f.bytes(&dst[0], &src[0], n, len(dst), signFlip(signed))
	}
}

// Columns writes, for each of len(dst) columns, the index of the line with the largest value or,
// if least is set, the smallest value. Lines are step elements apart. Of equal values it takes
// the first or, if last is set, the last. The first NaN has precedence over all numbers. It
// returns false if no kernel is available.
func (f *ArgMax) Columns(dst []int64, src []float32, step, lines int, least, last bool) bool {
	if f == nil {
		return false
	}
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.columns[boolIndex(least)][boolIndex(last)](&dst[0], &src[0], 4*step, lines, n)
	}
	return true
}
