package mvp

import "errors"

// Depthwise counts DEPTHWISE_CONV_2D. The kernel with one program per output pixel is preferred
// for small inputs; the kernel over runs of outputs handles the rest.
func Depthwise(w Window) (*Counts, error) {
	pixelFits := w.DepthMultiplier == 1 && w.DilationX == 1 && w.DilationY == 1 && w.W*w.OC/2 <= maxStride &&
		w.H <= maxSize && w.W <= maxSize && pairsOf(w.OC) <= maxSize
	if pixelFits && w.W*w.H <= 4*w.FW*w.FH*w.OC {
		return depthwisePixel(w), nil
	}
	c, err := depthwise(w)
	// The library does not try another kernel for a program that the hardware refuses.
	if le := (*LimitError)(nil); !pixelFits || !errors.As(err, &le) || le.hardware {
		return c, err
	}
	return depthwisePixel(w), nil
}

// pairsOf returns the number of accelerator elements that hold n channels: pairs if n is even,
// single ones otherwise.
func pairsOf(n int) int {
	if n%2 == 0 {
		return n / 2
	}
	return n
}

func depthwisePixel(w Window) *Counts {
	c := &Counts{Kernel: KernelDepthwisePixel}
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

// inside returns the number of filter positions of output o inside the input.
func inside(o, stride, pad, filter, in int) int {
	origin := o*stride - pad
	return max(min(filter, in-origin)-max(0, -origin), 0)
}

// fewestProducts is the average number of multiply-accumulates that a program needs to be worth
// its start-up cost.
const fewestProducts = 120

// depthwise counts the kernel over runs of outputs. The output is split where the filter leaves
// the input, and each part is planned separately.
func depthwise(w Window) (*Counts, error) {
	if w.Batch != 1 {
		return nil, limit("its batch is %d, and the dimensions of an array are used up by one image", w.Batch)
	}
	pair := 1 // outputs in an element
	if w.DepthMultiplier%2 == 0 {
		pair = 2
	}
	if err := fits(
		size("channels of the input", w.C), size("rows of the output", w.OH), size("columns of the output", w.OW),
		size("rows of the filter", w.FH), size("columns of the filter", w.FW),
	); err != nil {
		return nil, err
	}
	if row := stride("rows of the output", w.OW*w.OC/pair); w.OH > 1 && fits(row) != nil {
		return nil, fits(row)
	}
	spanX, spanY := (w.FW-1)*w.DilationX+1, (w.FH-1)*w.DilationY+1 // of the filter on the input
	if spanX != w.FW || spanY != w.FH {
		// Edges are cut by whole filter positions, which is correct only without padding.
		if w.PadX != 0 || w.PadY != 0 || (w.OW-1)*w.StrideX+spanX > w.W || (w.OH-1)*w.StrideY+spanY > w.H {
			return nil, limit("its filter is dilated beyond the edge of the input, where programs would have to leave out parts of it")
		}
	}
	columns, ok := segments(w.W, spanX, w.StrideX, w.PadX, w.OW)
	if !ok {
		return nil, errOutside()
	}
	c := &Counts{Kernel: KernelDepthwise}
	for _, x := range columns {
		if spanX != w.FW {
			x.t = w.FW
		}
		for at := 0; at < w.OH; {
			y, ok := rowSegment(w, spanY, at)
			if !ok {
				return nil, errOutside()
			}
			p, err := planRun(w, pair, x, y)
			if err != nil {
				return nil, err
			}
			c.addRun(p)
			at += p.rows * p.groups
		}
	}
	if products := int64(w.FH) * int64(w.FW) * int64(w.OH) * int64(w.OW) * int64(w.OC); products/c.Programs < fewestProducts {
		return nil, limit("a program would have %d products on average, fewer than the %d that its start is worth", products/c.Programs, fewestProducts)
	}
	if w.Clip {
		c.clamp(int64(w.OH) * int64(w.OW) * int64(w.OC))
	}
	return c, nil
}

// rowSegment returns the segment of rows that begins at row at; rows left over by an earlier
// program begin their own segment.
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

// walk is one loop of a program over an operand: a number of steps with a stride in elements.
type walk struct{ steps, stride int }

// moves reports whether the walk uses one of the operand's dimensions.
func (w walk) moves() bool { return w.steps > 1 && w.stride > 0 }

// walks are all loops over one operand.
type walks []*walk

// crowded reports whether there are more walks than an operand has dimensions.
func (ws walks) crowded() bool {
	n := 0
	for _, w := range ws {
		if w.moves() {
			n++
		}
	}
	return n > maxDims
}

// fit returns the error of the first walk that exceeds a dimension's limits.
func (ws walks) fit(operand string) error {
	for _, w := range ws {
		if !w.moves() {
			continue
		}
		err := fits(stride("steps through the "+operand, w.stride), size("steps through the "+operand, w.steps))
		if le := (*LimitError)(nil); errors.As(err, &le) {
			le.hardware = true
			return le
		}
	}
	return nil
}

// joined merges two nested walks into one dimension. After the inner walk, gap further inner
// steps lead to the next outer step. ok is false if that is not an integer of steps, or is
// negative.
func joined(outer, inner walk) (w walk, gap int, ok bool) {
	if inner.stride == 0 || outer.stride%inner.stride != 0 {
		return inner, 0, false
	}
	gap = outer.stride/inner.stride - inner.steps
	return walk{(inner.steps + gap) * outer.steps, inner.stride}, gap, gap >= 0
}

// run is the plan of the programs for one part of the output.
type run struct {
	programs int // one, or one for each channel
	channels int // outputs of a pixel, whatever the number of programs
	// Loops over the outputs: groups of rows, rows of a group, columns.
	groups, rows, columns int
	taps                  int // products of an output
	// Gaps between joined walks, and the steps of a store whose stride is too long for one step.
	rowGap, filterGap, storeGap int
	storeSteps                  int
}

// runPlanner holds the walks over both operands of a part of the output.
type runPlanner struct {
	run
	x, y segment
	// The input is traversed by outputs and, for each of them, by the filter.
	channel, row, column, group, filterRow, filterColumn walk
	// The output is traversed by stores.
	outChannel, outRow, outColumn, outGroup walk
}

func (p *runPlanner) input() walks {
	return walks{&p.channel, &p.row, &p.column, &p.group, &p.filterRow, &p.filterColumn}
}

func (p *runPlanner) output() walks {
	return walks{&p.outChannel, &p.outRow, &p.outColumn, &p.outGroup}
}

// planRun maps the walks of one part of the output to the three dimensions of each operand. The
// part is a segment of columns and as many rows of the segment y as fit a program. The order is
// that of the kernel: rows join columns, groups of rows join filter rows, stored rows join stored
// columns, and channels become separate programs.
func planRun(w Window, pair int, x, y segment) (*run, error) {
	multiple := w.DepthMultiplier / pair
	p := &runPlanner{
		run: run{programs: 1, channels: w.C * multiple, groups: 1, rows: y.n, columns: x.n, taps: y.t * x.t},
		x:   x, y: y,
		channel: walk{w.C, 1}, row: walk{y.n, w.C * w.W * w.StrideY}, column: walk{x.n, w.C * w.StrideX},
		filterRow: walk{y.t, w.C * w.W * w.DilationY}, filterColumn: walk{x.t, w.C * w.DilationX},
		outChannel: walk{w.C * multiple, 1}, outRow: walk{y.n, w.OW * w.OC / pair}, outColumn: walk{x.n, w.OC / pair},
	}
	for _, step := range []func() error{
		func() error { return p.joinRows(w.StrideY) }, p.joinGroups, p.joinStores, p.shortenStores, p.splitChannels,
		func() error { return p.input().fit("input") }, func() error { return p.output().fit("output") },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &p.run, nil
}

// joinRows uses one dimension for rows and columns. If that needs too many steps, rows are
// traversed in groups of as many as the filter covers.
func (p *runPlanner) joinRows(strideY int) error {
	if !p.input().crowded() && p.row.stride <= maxStride || !p.row.moves() || !p.column.moves() {
		return nil
	}
	all, _, ok := joined(p.row, p.column)
	if !ok {
		return limit("rows of outputs are not an integer of columns apart on the input")
	}
	if all.steps > maxSize {
		rows := ceilDiv(p.y.t, strideY)
		if p.y.n < rows {
			return limit("%d rows of outputs need %d steps, and are fewer than the %d of a group", p.y.n, all.steps, rows)
		}
		p.rows, p.groups = rows, p.y.n/rows
		p.group, p.outGroup = walk{p.groups, rows * p.row.stride}, walk{p.groups, rows * p.outRow.stride}
		p.row.steps, p.outRow.steps = rows, rows
	}
	p.column, p.rowGap, _ = joined(p.row, p.column)
	p.row.steps = 1
	return fits(size("columns in a group of rows", p.column.steps))
}

// joinGroups uses one dimension for groups of rows and filter rows.
func (p *runPlanner) joinGroups() error {
	if !p.input().crowded() && p.group.stride <= maxStride || !p.group.moves() || !p.filterRow.moves() {
		return nil
	}
	both, gap, ok := joined(p.group, p.filterRow)
	if !ok {
		return limit("groups of rows are not an integer of filter rows apart on the input")
	}
	p.filterRow, p.group.steps, p.filterGap = both, 1, gap
	return nil
}

// joinStores uses one dimension for rows and columns of the output.
func (p *runPlanner) joinStores() error {
	if (p.output().crowded() || p.outRow.stride > maxStride) && p.outRow.moves() && p.outColumn.moves() {
		both, gap, ok := joined(p.outRow, p.outColumn)
		if !ok {
			return limit("rows of the output are not an integer of columns apart")
		}
		p.outColumn, p.outRow.steps, p.storeGap = both, 1, gap
	}
	if p.output().crowded() {
		return limit("its output takes more than %d dimensions", maxDims)
	}
	return nil
}

// shortenStores splits a step between groups that is too long: into one for each row of a group,
// then into halves.
func (p *runPlanner) shortenStores() error {
	if !p.outGroup.moves() || p.outGroup.stride <= maxStride {
		return nil
	}
	steps := p.rows
	stride := p.outGroup.stride / p.rows
	for stride > maxStride {
		if stride%2 != 0 {
			return limit("groups of rows of the output are %d elements apart, which cannot be halved until a stride reaches", stride)
		}
		stride, steps = stride/2, steps*2
	}
	p.outGroup = walk{p.outGroup.steps * steps, stride}
	p.storeSteps = steps - 1
	return nil
}

// splitChannels creates a program for each channel if the input still needs too many dimensions.
func (p *runPlanner) splitChannels() error {
	if !p.input().crowded() {
		return nil
	}
	if !p.channel.moves() {
		return limit("its input takes more than %d dimensions in a single channel", maxDims)
	}
	if p.x.n == 1 && (p.rows*p.groups == 1 || p.y.t == 1 || p.x.t == 1) {
		return limit("its input takes more than %d dimensions, and a column is too little for a program of each channel", maxDims)
	}
	p.programs, p.channel.steps = p.channel.steps, 1
	if p.input().crowded() {
		return limit("its input takes more than %d dimensions, channels left out", maxDims)
	}
	return nil
}

// addRun adds the counts of a plan.
func (c *Counts) addRun(p *run) {
	channels, taps := int64(p.channels), int64(p.taps)
	rows := channels * int64(p.rows)
	outputs := rows * int64(p.columns) * int64(p.groups)
	c.Programs += int64(p.programs)
	c.segments++
	c.idle = p.storeSteps > 1 || max(p.rowGap, p.storeGap, p.filterGap) > 1
	c.Stores += outputs
	c.pixels += int64(p.rows) * int64(p.groups) * int64(p.columns)
	c.Instructions += channels + outputs*(2*taps+1+int64(max(1, p.storeSteps)))
	c.Stalls += outputs * (taps + 1)
	if p.storeSteps > 1 {
		c.NoOps += outputs * int64(p.storeSteps-1)
	}
	// One step across a gap is free if the operand has no other one at the loop's end; each
	// further one takes a no-op instruction.
	for _, g := range []struct {
		gap   int
		times int64
	}{{p.rowGap, rows}, {p.storeGap, rows}, {p.filterGap, outputs}} {
		if g.gap > 1 {
			c.NoOps += g.times * int64(g.gap-1)
			c.Instructions += g.times * int64(g.gap-1)
		}
	}
	if p.filterGap > 1 {
		c.Stalls -= outputs // such a no-op separates the last multiply-accumulate from its use
	}
}
