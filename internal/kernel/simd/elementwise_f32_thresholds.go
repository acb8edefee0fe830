package simd

// Softsign writes src/(1+|src|). As the following methods, it returns the number of values
// written; the caller computes the rest. e may be nil.
func (e *Elements) Softsign(dst, src []float32) int {
	if e == nil {
		return 0
	}
	return apply(dst, src, wholeRegisters(len(dst)), e.softsign)
}

// Signum writes 1 for values above zero, -1 for values below zero, and copies the others.
func (e *Elements) Signum(dst, src []float32) int {
	if e == nil {
		return 0
	}
	return apply(dst, src, wholeRegisters(len(dst)), e.signum)
}

// Above copies values above a limit, and writes zero for the others.
func (e *Elements) Above(dst, src []float32, limit float32) int {
	n := wholeRegisters(len(dst))
	if e == nil || e.above == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.above(&dst[0], &src[0], n, limit)
	return n
}

// Shrink writes src+bias for values below -limit, src-bias for values above limit, and zero for
// the others.
func (e *Elements) Shrink(dst, src []float32, limit, bias float32) int {
	n := wholeRegisters(len(dst))
	if e == nil || e.shrink == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.shrink(&dst[0], &src[0], n, limit, bias)
	return n
}
