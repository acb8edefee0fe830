package simd

// Peak is what a thread of this processor can do with a set's instructions, when nothing
// but they has to be done.
type Peak struct {
	Set Set
	// Floats, Exact and Ints do n rounds of multiplying and adding: of float32 in one go, of float32
	// with products and sums rounded apart, and of integers as the set's products of 8-bit numbers do
	// it. A round is FloatOps operations, for both of float32, and IntOps, a multiplication and an addition being two.
	Floats, Exact, Ints func(n int)
	FloatOps, IntOps    int
}

// PeakLoops of the current set; nil where there are none.
func PeakLoops() *Peak { return peaks.pick() }
