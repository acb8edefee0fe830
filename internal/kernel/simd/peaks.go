package simd

// Peak is what a thread of this processor can do with a set's instructions, when nothing
// but they has to be done.
type Peak struct {
	Set Set
	// Floats and Ints do n rounds of multiplying and adding, of float32 and of integers
	// as the set's products of 8-bit numbers do it; a round is FloatOps and IntOps
	// operations, a multiplication and an addition being two.
	Floats, Ints     func(n int)
	FloatOps, IntOps int
}

// PeakLoops of the current set; nil where there are none.
func PeakLoops() *Peak { return peaks.pick() }
