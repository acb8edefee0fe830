package simd

// Picks choose between elements of two tensors.
type Picks struct {
	Set   Set
	loops [9]func(dst, x, y, cond *byte, n, stepX, stepY int) // by width
}

// PickKernels of the current set; nil where plain Go is all there is.
func PickKernels() *Picks { return pickLoops.pick() }

// Pick sets each element of dst, width bytes, to the one of x where cond is not zero and to that of y elsewhere. Steps say how far x and y
// advance an element: 1, or 0 for one that stands for all. It returns false where there is no loop for the width.
func (p *Picks) Pick(dst, x, y, cond []byte, width, stepX, stepY int) bool {
	if p == nil || width >= len(p.loops) || p.loops[width] == nil {
		return false
	}
	n := len(dst) / width
	if n == 0 {
		return true
	}
	_, _, _ = x[(1+(n-1)*stepX)*width-1], y[(1+(n-1)*stepY)*width-1], cond[n-1]
	p.loops[width](&dst[0], &x[0], &y[0], &cond[0], n, 64*stepX, 64*stepY)
	return true
}
