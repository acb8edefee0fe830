package simd

// Places find the largest values of rows.
type Places struct {
	Set    Set
	floats func(dst *int, src *float32, n, rows int)
	bytes  func(dst *int, src *byte, n, rows int, flip uint32)
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
