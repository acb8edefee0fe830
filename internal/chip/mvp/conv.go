package mvp

// Window is the geometry of a convolution or pooling layer.
type Window struct {
	H, W, C              int // input
	FH, FW               int // filter
	OH, OW, OC           int // output
	StrideY, StrideX     int
	DilationY, DilationX int
	PadY, PadX           int // before the input
	Batch                int
	Clip                 bool // the activation's range is smaller than int8
	same                 bool // TFLite's SAME padding
	DepthMultiplier      int  // depthwise only
}

// Library is a generation of the kernel library.
type Library string

// Generations: before release 0.8.0 and since.
const (
	Baseline Library = "baseline"
	SpeedOpt Library = "speed_opt"
)

// Conv counts CONV_2D.
func Conv(w Window, lib Library) (*Counts, error) {
	if w.DilationX != 1 || w.DilationY != 1 {
		return nil, limit("Dilation not supported, Hardware limits exceeded")
	}
	wide := w.W*w.C > maxStride || w.OW*w.OC > maxStride
	if wide && w.H == 1 && w.FH == 1 && w.OH == 1 {
		return convLine(w, lib)
	}
	return conv(w, lib, true)
}

func conv(w Window, lib Library, clamp bool) (*Counts, error) {
	c := &Counts{Kernel: KernelConv}
	for range w.Batch {
		if err := c.conv(w, lib); err != nil {
			return nil, err
		}
	}
	if w.Clip && clamp {
		c.clamp(int64(w.Batch) * int64(w.OH) * int64(w.OW) * int64(w.OC))
	}
	return c, nil
}

func (c *Counts) conv(w Window, lib Library) error {
	if lib == SpeedOpt {
		k := 1
		if w.C%2 == 0 {
			k = 2
		}
		if w.W*w.C/k > maxStride || w.H > maxSize || w.W > maxSize || w.C/k > maxSize {
			return limitExceeded()
		}
		c.Programs++
		c.Instructions += int64(w.H) * int64(w.W) * int64(w.C/k)
	}
	xs, okX := segments(w.W, w.FW, w.StrideX, w.PadX, w.OW)
	ys, okY := segments(w.H, w.FH, w.StrideY, w.PadY, w.OH)
	if !okX || !okY || w.OC > maxSize {
		return limitExceeded()
	}
	for _, x := range xs {
		for _, y := range ys {
			for _, p := range passes(y, w.StrideY, x.n) {
				if err := c.convProgram(w, lib, x, y, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// convProgram counts one program: a segment of columns, a segment of rows, one
// pass over it.
func (c *Counts) convProgram(w Window, lib Library, x, y segment, p pass) error {
	line := w.OW * w.OC
	e := 0
	if p.step*line > maxStride {
		if line > maxStride {
			return limit("Output vector stride (%d) exceeded (max=%d), Hardware limits exceeded", line, maxStride)
		}
		e = p.step - 1
	}
	inRow, taps := w.W*w.C, x.t*w.C
	next, rows := w.StrideX*w.C, (y.t+p.extra)*p.rows
	if x.n == 1 {
		next, rows = w.StrideY*inRow, y.t
	}
	first := ((y.at+p.offset)*w.StrideY-w.PadY+y.start)*inRow + (x.at*w.StrideX-w.PadX+x.start)*w.C
	filterRow, filterFirst := w.FW*w.C, (y.start*w.FW+x.start)*w.C
	k := 2
	for _, v := range []int{first, taps, inRow, next, filterFirst, filterRow} {
		if v%2 != 0 {
			k = 1
		}
	}
	if inRow/k > maxStride || next/k > maxStride || taps/k > maxSize || filterRow/k*w.FH > maxStride ||
		x.n > maxSize || p.rows*(e+1) > maxSize || rows > maxSize {
		return limitExceeded()
	}
	// Row increments that neither the loop nor the last instructions of an output
	// can take along.
	r := p.extra - 2
	if k == 2 {
		r = p.extra - 3
	}
	if r > 1 {
		r--
	}
	r = max(r, 0)

	n := int64(w.OC) * int64(x.n) * int64(p.rows)
	it := n * int64(y.t) * int64(taps/k)
	c.Programs++
	c.Stores += n
	c.NoOps += n * int64(e+r)
	c.strideNoOps += n * int64(e)
	c.Stalls += n
	tail := int64(2 + e + r)
	if k == 2 {
		tail++
		c.ParallelIterations += it
		c.parallelStores += n
	} else {
		c.RealIterations += it
		c.realStores += n
	}
	c.Instructions += int64(w.OC) + n*tail
	if lib == SpeedOpt {
		c.Instructions += it
	} else {
		// The input is scaled in the inner loop, and its use right after costs a stall.
		c.Instructions += 2 * it
		c.Stalls += it
	}
	return nil
}

// convLine counts a one-dimensional convolution that is too wide for the
// accelerator's strides: it is done in chunks, and the columns that need padding
// are left to the processor.
func convLine(w Window, lib Library) (*Counts, error) {
	inMax, outMax := maxStride/w.C, maxStride/w.OC
	if inMax < w.FW || outMax < 1 {
		return nil, limitExceeded()
	}
	c := &Counts{Kernel: KernelConv}
	in, out := w.W, w.OW
	if w.same {
		along := max((w.OW-1)*w.StrideX+w.FW-w.W, 0)
		left := along / 2
		for ; left > 0; left -= w.StrideX {
			out--
		}
		for right := along - along/2; right > 0; right -= w.StrideX {
			out--
		}
		in += left
	}
	for in >= w.FW && out > 0 {
		part := w
		part.PadX, part.PadY, part.same = 0, 0, false
		if inMax <= outMax {
			part.OW = (min(in, inMax)-w.FW)/w.StrideX + 1
		} else {
			part.OW = min(out, outMax)
		}
		part.OW = min(part.OW, out)
		part.W = (part.OW-1)*w.StrideX + w.FW
		got, err := conv(part, lib, false)
		if err != nil {
			return nil, err
		}
		c.add(got)
		in -= part.OW * w.StrideX
		out -= part.OW
	}
	if w.Clip {
		c.clamp(int64(w.OW) * int64(w.OC))
	}
	return c, nil
}

// add sums the counts of two parts of a layer.
func (c *Counts) add(o *Counts) {
	c.Programs += o.Programs
	c.Instructions += o.Instructions
	c.Stalls += o.Stalls
	c.ParallelIterations += o.ParallelIterations
	c.RealIterations += o.RealIterations
	c.Stores += o.Stores
	c.NoOps += o.NoOps
	c.ClampIterations += o.ClampIterations
	c.parallelStores += o.parallelStores
	c.realStores += o.realStores
	c.strideNoOps += o.strideNoOps
	c.pairs += o.pairs
	c.pixels += o.pixels
}

// samePadding sets the padding before the input as TFLite's SAME does.
func (w *Window) samePadding() {
	w.same = true
	w.PadY = max((w.OH-1)*w.StrideY+(w.FH-1)*w.DilationY+1-w.H, 0) / 2
	w.PadX = max((w.OW-1)*w.StrideX+(w.FW-1)*w.DilationX+1-w.W, 0) / 2
}
