package mvp

// AveragePool counts AVERAGE_POOL_2D. A kernel with one program per output pixel
// serves large windows with few outputs, one with programs per channel pair the
// rest.
func AveragePool(w Window) (*Counts, error) {
	k := w.C / pairsOf(w.C)
	optFits := w.W*w.C/k <= maxStride && w.OW*w.C/k <= maxStride && w.H <= maxSize && w.W <= maxSize && w.C/k <= maxSize
	if optFits && w.OW*w.OH <= (9*w.FW*w.FH*w.C+5)/10 {
		return averagePoolOpt(w), nil
	}
	c, err := pool(w, KernelAveragePool)
	if err != nil && optFits {
		return averagePoolOpt(w), nil
	}
	return c, err
}

func averagePoolOpt(w Window) *Counts {
	c := depthwiseOpt(w) // the same loops, with one instruction per tap
	taps := (c.Stalls - c.Stores)
	c.Kernel = KernelAveragePoolOpt
	c.Instructions = taps + 2*c.Stores
	c.Stalls = c.Stores
	if w.Clip {
		c.Instructions += c.Stores
	}
	return c
}

// MaxPool counts MAX_POOL_2D.
func MaxPool(w Window) (*Counts, error) { return pool(w, KernelMaxPool) }

// pool counts the kernels with one program per channel pair, segment and pass.
func pool(w Window, kernel Kernel) (*Counts, error) {
	k := w.C / pairsOf(w.C)
	if line := w.OW * w.C; line > maxStride {
		return nil, limit("Output vector stride (%d) exceeded (max=%d), Hardware limits exceeded", line, maxStride)
	}
	inRow := w.W * w.C
	xs, okX := segments(w.W, w.FW, w.StrideX, w.PadX, w.OW)
	ys, okY := segments(w.H, w.FH, w.StrideY, w.PadY, w.OH)
	if !okX || !okY || inRow/k > maxStride || w.StrideX*w.C/k > maxStride {
		return nil, limitExceeded()
	}
	c := &Counts{Kernel: kernel, pixels: int64(w.Batch) * int64(w.OH) * int64(w.OW)}
	pairs := int64(w.Batch) * int64(w.C/k)
	for _, x := range xs {
		columns := x.n
		if x.n == 1 && w.StrideY*inRow/k > maxStride {
			columns = 2 // too far apart to walk down a column: rows are done in passes
		}
		for _, y := range ys {
			if kernel == KernelAveragePool && x.t*y.t > 512 {
				return nil, limitExceeded()
			}
			for _, p := range passes(y, w.StrideY, columns) {
				e := 0
				if p.step*w.OW*w.C > maxStride {
					// Since release 0.8 maximum pooling refuses what average pooling walks.
					if kernel == KernelMaxPool {
						return nil, limitExceeded()
					}
					e = p.step - 1
				}
				rows := (y.t + p.extra) * p.rows
				if columns == 1 {
					rows = y.t
				}
				if x.n > maxSize || p.rows*(e+1) > maxSize || rows > maxSize || x.t > maxSize {
					return nil, limitExceeded()
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
