package simd

// Peak holds kernels that measure the peak throughput of a thread with an instruction set: they
// execute only arithmetic instructions.
type Peak struct {
	Set Set
	// Each function runs n rounds of multiply-add. Floats uses fused float32 operations. Exact
	// rounds float32 products and sums separately. Ints uses the 8-bit dot products of the
	// instruction set. A round of Floats or Exact has FloatOps operations, a round of Ints has
	// IntOps; a multiply-add counts as two.
	Floats, Exact, Ints func(n int)
	FloatOps, IntOps    int
}

// PeakLoops returns the kernels of the current instruction set, or nil if they are not available.
func PeakLoops() *Peak { return peakKernels.pick() }
