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

// Library is a generation of the vendor's kernels.
type Library string

// Generations: the first scales inputs while it multiplies; the second, since release 0.8.0, does
// so beforehand in a separate program.
const (
	First  Library = "first"
	Second Library = "second"
)

// Conv counts CONV_2D.
func Conv(w Window, lib Library) (*Counts, error) {
	if w.DilationX != 1 || w.DilationY != 1 {
		return nil, errDilated()
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
	if lib == Second {
		k := 1
		if w.C%2 == 0 {
			k = 2
		}
		if err := fits(stride("rows of the input", w.W*w.C/k), size("rows of the input", w.H), size("columns of the input", w.W), size("channels of the input", w.C/k)); err != nil {
			return err
		}
		c.Programs++
		c.reads = true
		c.Instructions += int64(w.H) * int64(w.W) * int64(w.C/k)
	}
	xs, okX := segments(w.W, w.FW, w.StrideX, w.PadX, w.OW)
	ys, okY := segments(w.H, w.FH, w.StrideY, w.PadY, w.OH)
	if !okX || !okY {
		return errOutside()
	}
	if err := fits(size("channels of the output", w.OC)); err != nil {
		return err
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

// convProgram counts one program: a segment of columns, a segment of rows, one pass over it.
func (c *Counts) convProgram(w Window, lib Library, x, y segment, p pass) error {
	line := w.OW * w.OC
	e := 0
	if p.step*line > maxStride {
		if err := fits(stride("rows of the output", line)); err != nil {
			return err
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
	if err := fits(
		stride("rows of the input", inRow/k), stride("windows", next/k), stride("filters", filterRow/k*w.FH), size("elements in a row of a window", taps/k),
		size("columns of the output", x.n), size("rows of the output", p.rows*(e+1)), size("rows of the input", rows),
	); err != nil {
		return err
	}
	// Row increments that neither the loop nor the last instructions of an output can absorb.
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
	c.idle = r > 0
	c.strideNoOps += n * int64(e)
	c.Stalls += n
	tail := int64(2 + e + r)
	if k == 2 {
		tail++
		c.DoubleIterations += it
		c.doubleStores += n
	} else {
		c.SingleIterations += it
		c.singleStores += n
	}
	c.Instructions += int64(w.OC) + n*tail
	if lib == Second {
		c.Instructions += it
	} else {
		// The input is scaled in the inner loop, and its immediate use costs a stall.
		c.Instructions += 2 * it
		c.Stalls += it
	}
	return nil
}

// convLine counts a one-dimensional convolution that is too wide for the accelerator's strides.
// It is executed in chunks, and the columns that need padding are left to the processor.
func convLine(w Window, lib Library) (*Counts, error) {
	inMax, outMax := maxStride/w.C, maxStride/w.OC
	if inMax < w.FW || outMax < 1 {
		return nil, limit("a window of %d elements, or a pixel of %d channels, is more than the %d elements of a part of a line", w.FW*w.C, w.OC, maxStride)
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
	c.DoubleIterations += o.DoubleIterations
	c.SingleIterations += o.SingleIterations
	c.Stores += o.Stores
	c.NoOps += o.NoOps
	c.ClampIterations += o.ClampIterations
	c.reads, c.idle = c.reads || o.reads, o.idle
	c.doubleStores += o.doubleStores
	c.singleStores += o.singleStores
	c.strideNoOps += o.strideNoOps
	c.pairs += o.pairs
	c.pixels += o.pixels
}

// samePadding sets the padding before the input by TFLite's SAME rule.
func (w *Window) samePadding() {
	w.same = true
	w.PadY = max((w.OH-1)*w.StrideY+(w.FH-1)*w.DilationY+1-w.H, 0) / 2
	w.PadX = max((w.OW-1)*w.StrideX+(w.FW-1)*w.DilationX+1-w.W, 0) / 2
}
