package simd

// Softsign writes src/(1+|src|); it returns for how many values it did so, as the following do: the caller does the rest. e may be nil.
func (e *Elements) Softsign(dst, src []float32) int {
	n := whole(len(dst))
	if e == nil || e.softsign == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.softsign(&dst[0], &src[0], n)
	return n
}

// Signum writes 1 for what is above zero, -1 for what is below it, and others as they are.
func (e *Elements) Signum(dst, src []float32) int {
	n := whole(len(dst))
	if e == nil || e.signum == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.signum(&dst[0], &src[0], n)
	return n
}

// Above writes what is above a limit, and zero for the rest.
func (e *Elements) Above(dst, src []float32, limit float32) int {
	n := whole(len(dst))
	if e == nil || e.above == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.above(&dst[0], &src[0], n, limit)
	return n
}

// Shrink writes src+bias of what is below -limit, src-bias of what else is above limit, and zero for the rest.
func (e *Elements) Shrink(dst, src []float32, limit, bias float32) int {
	n := whole(len(dst))
	if e == nil || e.shrink == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.shrink(&dst[0], &src[0], n, limit, bias)
	return n
}
