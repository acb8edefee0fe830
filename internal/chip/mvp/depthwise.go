package mvp

// Depthwise counts DEPTHWISE_CONV_2D. The kernel that makes one program per
// output pixel is preferred for small inputs; the general one takes the rest.
func Depthwise(w Window) (*Counts, error) {
	optFits := w.DepthMultiplier == 1 && w.DilationX == 1 && w.DilationY == 1 && w.W*w.OC/2 <= maxStride &&
		w.H <= maxSize && w.W <= maxSize && pairsOf(w.OC) <= maxSize
	if optFits && w.W*w.H <= 4*w.FW*w.FH*w.OC {
		return depthwiseOpt(w), nil
	}
	c, err := depthwise(w)
	if err != nil && optFits {
		return depthwiseOpt(w), nil
	}
	return c, err
}

// pairsOf is the number of accelerator elements that hold n channels: pairs when
// n is even, single ones otherwise.
func pairsOf(n int) int {
	if n%2 == 0 {
		return n / 2
	}
	return n
}

func depthwiseOpt(w Window) *Counts {
	c := &Counts{Kernel: KernelDepthwiseOpt}
	pairs := int64(w.Batch) * int64(pairsOf(w.OC))
	var rows, columns int64
	for y := range w.OH {
		rows += int64(inside(y, w.StrideY, w.PadY, w.FH, w.H))
	}
	for x := range w.OW {
		columns += int64(inside(x, w.StrideX, w.PadX, w.FW, w.W))
	}
	taps := rows * columns
	pixels := int64(w.OH) * int64(w.OW)
	c.Programs = int64(w.Batch) * pixels
	c.pixels = c.Programs
	c.Stores = pairs * pixels
	c.Instructions = pairs*2*taps + 2*c.Stores
	c.Stalls = pairs*taps + c.Stores
	if w.Clip {
		c.Instructions += c.Stores
	}
	return c
}

// inside is the number of filter positions of output o that fall inside the
// input.
func inside(o, stride, pad, filter, in int) int {
	origin := o*stride - pad
	return max(min(filter, in-origin)-max(0, -origin), 0)
}

// dim is one dimension of an array: a loop that moves it on.
type dim struct{ size, stride int }

func (d dim) active() bool { return d.size > 1 && d.stride > 0 }

// merge lets the loop of inner do the steps of outer: jump is the number of
// extra increments of inner at its end.
func merge(outer, inner *dim) (jump int, ok bool) {
	if inner.stride == 0 || outer.stride%inner.stride != 0 {
		return 0, false
	}
	jump = outer.stride/inner.stride - inner.size
	if jump < 0 {
		return 0, false
	}
	inner.size = (inner.size + jump) * outer.size
	outer.size = 1
	return jump, true
}

func activeOf(ds ...*dim) (n int) {
	for _, d := range ds {
		if d.active() {
			n++
		}
	}
	return n
}

// depthwise counts the general kernel.
func depthwise(w Window) (*Counts, error) {
	if w.Batch != 1 {
		return nil, limitExceeded()
	}
	k := 1
	if w.DepthMultiplier%2 == 0 {
		k = 2
	}
	for i, v := range []int{w.C, w.OH, w.OW, w.FH, w.FW} {
		if v > maxSize {
			// The kernel's numbers of dimensions count the batch and others between.
			return nil, limit("input_shape[%d] (%d) > %d", []int{1, 3, 4, 6, 7}[i], v, maxStride)
		}
	}
	if row := w.OW * w.OC / k; w.OH > 1 && row > maxStride {
		return nil, limit("output_stride[3] (%d) > %d", row, maxStride)
	}
	filterDilX, filterDilY := (w.FW-1)*w.DilationX+1, (w.FH-1)*w.DilationY+1
	if filterDilX != w.FW || filterDilY != w.FH {
		// Edges are cut by whole filter positions, which holds without padding only.
		if w.PadX != 0 || w.PadY != 0 || (w.OW-1)*w.StrideX+filterDilX > w.W || (w.OH-1)*w.StrideY+filterDilY > w.H {
			return nil, limit("Dilation not supported")
		}
	}
	xs, okX := segments(w.W, filterDilX, w.StrideX, w.PadX, w.OW)
	if !okX {
		return nil, limitExceeded()
	}
	c := &Counts{Kernel: KernelDepthwise}
	for _, x := range xs {
		if filterDilX != w.FW {
			x.t = w.FW
		}
		for at := 0; at < w.OH; {
			y, ok := rowSegment(w, filterDilY, at)
			if !ok {
				return nil, limitExceeded()
			}
			n, err := c.depthwisePart(w, k, x, y)
			if err != nil {
				return nil, err
			}
			at += n
		}
	}
	if macs := int64(w.FH) * int64(w.FW) * int64(w.OH) * int64(w.OW) * int64(w.OC); macs/c.Programs < 120 {
		return nil, limitExceeded()
	}
	if w.Clip {
		c.clamp(int64(w.OH) * int64(w.OW) * int64(w.OC))
	}
	return c, nil
}

// rowSegment is the segment of rows that begins at row at; rows that an earlier
// program left over begin one of their own.
func rowSegment(w Window, filter, at int) (segment, bool) {
	list, ok := segments(w.H, filter, w.StrideY, w.PadY-at*w.StrideY, w.OH-at)
	if !ok || len(list) == 0 {
		return segment{}, false
	}
	s := list[0]
	s.at = at
	if filter != w.FH {
		s.t = w.FH
	}
	return s, true
}

// depthwisePart counts the programs of one segment of columns and rows, and
// returns how many rows they do.
func (c *Counts) depthwisePart(w Window, k int, x, y segment) (rows int, err error) {
	ch := dim{w.C, 1}
	oy := dim{y.n, w.C * w.W * w.StrideY}
	ox := dim{x.n, w.C * w.StrideX}
	fy := dim{y.t, w.C * w.W * w.DilationY}
	fx := dim{x.t, w.C * w.DilationX}
	var grp dim // groups of rows
	mult := w.DepthMultiplier / k
	outM := dim{w.C * mult, 1}
	outY := dim{y.n, w.OW * w.OC / k}
	outX := dim{x.n, w.OC / k}
	var outG dim

	rows = y.n
	offsets, groups := y.n, 1 // loops over rows
	jumpX, jumpF, jumpOut := 0, 0, 0
	crowded := func() bool { return activeOf(&ch, &oy, &ox, &grp, &fy, &fx) > 3 }
	if (crowded() || oy.stride > maxStride) && oy.active() && ox.active() {
		o, i := oy, ox
		if _, ok := merge(&o, &i); !ok {
			return 0, limit("Assertion failed: stride_ratio.rem == 0")
		}
		if i.size > maxSize {
			size := ceilDiv(y.t, w.StrideY)
			if y.n < size {
				return 0, limit("Assertion failed: num_groups.quot > 0")
			}
			groups = y.n / size
			rows, offsets = groups*size, size
			grp, outG = dim{groups, size * oy.stride}, dim{groups, size * outY.stride}
			oy.size, outY.size = size, size
		}
		jumpX, _ = merge(&oy, &ox)
		if ox.size > maxSize {
			return 0, limit("Assertion failed: in_dims.sizes[kDimOutX] <= SLI_MVP_MAX_VECTOR_COUNT")
		}
	}
	if (crowded() || grp.stride > maxStride) && grp.active() && fy.active() {
		var ok bool
		if jumpF, ok = merge(&grp, &fy); !ok {
			return 0, limit("Assertion failed: stride_ratio.rem == 0")
		}
	}
	if n := activeOf(&outM, &outY, &outX, &outG); (n > 3 || outY.stride > maxStride) && outY.active() && outX.active() {
		var ok bool
		if jumpOut, ok = merge(&outY, &outX); !ok {
			return 0, limit("Assertion failed: extra_incr >= 0")
		}
	}
	if activeOf(&outM, &outY, &outX, &outG) > 3 {
		return 0, limit("Assertion failed: out_dims.numActiveDims() <= SLI_MVP_MAX_DIM")
	}
	extraStore := 0
	if outG.active() && outG.stride > maxStride {
		factor := offsets
		outG.stride /= offsets
		outG.size *= offsets
		for outG.stride > maxStride {
			if outG.stride%2 != 0 {
				return 0, limit("Assertion failed: (out_dims.strides[kDimOutYGroup] %% 2) == 0")
			}
			outG.stride, outG.size, factor = outG.stride/2, outG.size*2, factor*2
		}
		extraStore = factor - 1
	}
	programs, perProgram := 1, w.C
	if crowded() {
		if !ch.active() {
			return 0, limit("Assertion failed: in_dims.isActive(kDimInChannel)")
		}
		if x.n == 1 && (rows == 1 || y.t == 1 || x.t == 1) {
			return 0, limit("Assertion failed: !in_channel_outside_program")
		}
		programs, perProgram = w.C, 1
		ch.size = 1
	}
	if crowded() {
		return 0, limit("Assertion failed: in_dims.numActiveDims() <= SLI_MVP_MAX_DIM")
	}
	for _, d := range []*dim{&ch, &oy, &ox, &grp, &fy, &fx, &outM, &outY, &outX, &outG} {
		if d.active() && (d.stride > maxStride || d.size > maxSize) {
			return 0, limitExceeded()
		}
	}
	heads := int64(programs) * int64(perProgram) * int64(mult)
	n := heads * int64(offsets) * int64(x.n) * int64(groups)
	taps := int64(y.t) * int64(x.t)
	c.Programs += int64(programs)
	c.segments++
	c.Stores += n
	c.pixels += int64(rows) * int64(x.n)
	c.Instructions += heads + n*(2*taps+1+int64(max(1, extraStore)))
	c.Stalls += n * (taps + 1)
	if extraStore > 1 {
		c.NoOps += n * int64(extraStore-1)
	}
	// One increment is free where the array has no other one at the loop's end.
	ends := heads * int64(offsets)
	for _, j := range []struct {
		jump  int
		times int64
	}{{jumpX, ends}, {jumpOut, ends}, {jumpF, n}} {
		if j.jump > 1 {
			c.NoOps += j.times * int64(j.jump-1)
			c.Instructions += j.times * int64(j.jump-1)
		}
	}
	if jumpF > 1 {
		c.Stalls -= n // a no-op stands between the last product and its use
	}
	return rows, nil
}
