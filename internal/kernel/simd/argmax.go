package simd

// Places find the largest values of rows.
type Places struct {
	Set     Set
	floats  func(dst *int, src *float32, n, rows int)
	bytes   func(dst *int, src *byte, n, rows int, flip uint32)
	columns [2][2]func(dst *int64, src *float32, step, lines, n int) // of the largest, of the smallest; the last ones behind the first ones
}

// PlaceKernels of the current set; nil where plain Go is all there is.
func PlaceKernels() *Places { return placeLoops.pick() }

// Floats writes the place of the first of the largest values for each row of n, as comparing one after the other with the largest so far does:
// what is no number is passed over, but for the first element, which then stays the largest.
func (f *Places) Floats(dst []int, src []float32, n int) {
	if len(dst) > 0 && n > 0 {
		_ = src[len(dst)*n-1]
		f.floats(&dst[0], &src[0], n, len(dst))
	}
}

// Bytes is Floats for codes, signed or not.
func (f *Places) Bytes(dst []int, src []uint8, n int, signed bool) {
	if len(dst) > 0 && n > 0 {
		_ = src[len(dst)*n-1]
		f.bytes(&dst[0], &src[0], n, len(dst), flip(signed))
	}
}

// Columns writes for each of len(dst) columns, of lines step elements apart, in which line the largest value is, or the smallest: the first of equals,
// or the last. The first that is no number goes before all others. It returns false where there is no loop.
func (f *Places) Columns(dst []int64, src []float32, step, lines int, least, last bool) bool {
	if f == nil {
		return false
	}
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.columns[sign(least)][sign(last)](&dst[0], &src[0], 4*step, lines, n)
	}
	return true
}
