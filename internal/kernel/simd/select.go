package simd

// Select holds kernels that select between the elements of two tensors.
type Select struct {
	Set     Set
	kernels [9]func(dst, x, y, cond *byte, n, stepX, stepY int) // by element size in bytes
}

// SelectKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func SelectKernels() *Select { return selectKernels.pick() }

// Run sets each element of dst, width bytes wide, to the element of x if cond is nonzero, else
// to that of y. stepX and stepY are 1, or 0 for an operand with a single element. Pick returns
// false if no kernel is available for the width.
func (p *Select) Run(dst, x, y, cond []byte, width, stepX, stepY int) bool {
	if p == nil || width >= len(p.kernels) || p.kernels[width] == nil {
		return false
	}
	n := len(dst) / width
	if n == 0 {
		return true
	}
	_, _, _ = x[(1+(n-1)*stepX)*width-1], y[(1+(n-1)*stepY)*width-1], cond[n-1]
	p.kernels[width](&dst[0], &x[0], &y[0], &cond[0], n, 64*stepX, 64*stepY)
	return true
}
