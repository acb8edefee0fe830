package mvp

// AveragePool counts AVERAGE_POOL_2D. The kernel with one program per output pixel handles large
// windows with few outputs, the kernel with programs per channel pair the rest.
func AveragePool(w Window) (*Counts, error) {
	k := w.C / pairsOf(w.C)
	optFits := w.W*w.C/k <= maxStride && w.OW*w.C/k <= maxStride && w.H <= maxSize && w.W <= maxSize && w.C/k <= maxSize
	if optFits && w.OW*w.OH <= (9*w.FW*w.FH*w.C+5)/10 {
		return averagePoolPixel(w), nil
	}
	c, err := pool(w, KernelAveragePool)
	if err != nil && optFits {
		return averagePoolPixel(w), nil
	}
	return c, err
}

func averagePoolPixel(w Window) *Counts {
	c := depthwisePixel(w) // the same loops, with one instruction per tap
	taps := (c.Stalls - c.Stores)
	c.Kernel = KernelAveragePoolPixel
	c.Instructions = taps + 2*c.Stores
	c.Stalls = c.Stores
	if w.Clip {
		c.Instructions += c.Stores
	}
	return c
}

// maxAveraged is the maximum number of window elements that can be averaged.
const maxAveraged = 512

// MaxPool counts MAX_POOL_2D.
func MaxPool(w Window) (*Counts, error) { return pool(w, KernelMaxPool) }

// pool counts the kernels with one program per channel pair, segment and pass.
func pool(w Window, kernel Kernel) (*Counts, error) {
	k := w.C / pairsOf(w.C)
	inRow := w.W * w.C
	if err := fits(stride("rows of the output", w.OW*w.C/k), stride("rows of the input", inRow/k), stride("windows", w.StrideX*w.C/k)); err != nil {
		return nil, err
	}
	xs, okX := segments(w.W, w.FW, w.StrideX, w.PadX, w.OW)
	ys, okY := segments(w.H, w.FH, w.StrideY, w.PadY, w.OH)
	if !okX || !okY {
		return nil, errOutside()
	}
	c := &Counts{Kernel: kernel, pixels: int64(w.Batch) * int64(w.OH) * int64(w.OW)}
	pairs := int64(w.Batch) * int64(w.C/k)
	for _, x := range xs {
		columns := x.n
		for _, y := range ys {
			// Too far apart to walk down a column: averages are done in passes over the rows.
			switch down := stride("rows of a column", w.StrideY*inRow/k); {
			case x.n > 1:
			case kernel == KernelAveragePool && (fits(down) != nil || w.OW*w.C > maxStride):
				columns = 2
			case y.n > 1 && fits(down) != nil:
				return nil, fits(down)
			}
			if kernel == KernelAveragePool && x.t*y.t > maxAveraged {
				return nil, limit("a window has %d elements, sums are exact for at most %d", x.t*y.t, maxAveraged)
			}
			for _, p := range passes(y, w.StrideY, columns) {
				e := 0
				if p.step*w.OW*w.C > maxStride {
					e = p.step - 1
				}
				rows := (y.t + p.extra) * p.rows
				if columns == 1 {
					rows = y.t
				}
				if err := fits(size("columns of the output", x.n), size("rows of the output", p.rows*(e+1)), size("rows of the input", rows), size("columns of a window", x.t)); err != nil {
					return nil, err
				}
				r := p.extra - 2
				if r > 1 {
					r--
				}
				r = max(r, 0)
				n := pairs * int64(x.n) * int64(p.rows)
				c.Programs += pairs
				c.Stores += n
				c.NoOps += n * int64(e+r)
				c.idle = r > 0
				c.Instructions += n * int64(x.t*y.t+2+e+r)
				if kernel == KernelAveragePool {
					c.Stalls += n
				}
				if w.Clip {
					c.Instructions += n
				}
			}
		}
	}
	return c, nil
}
