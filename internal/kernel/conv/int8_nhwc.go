package conv

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// int8NHWC is a SIMD int8 convolution over [N,H,W,C]. It also accepts [N,C,H,W] input: most
// inputs have to be copied anyway, and the copy transposes to channels-last.
type int8NHWC struct {
	plan      *nhwcPlan
	panels    []gemm.IntPanels   // one per group
	groups    *int8Groups        // tiles of groups; replaces panels if it has weights
	planes    bool               // the input is [N,C,H,W]
	compacted bool               // 1×1 with stride: the input positions are copied without gaps
	band      int                // values per band column, see bandSize; 0 for none
	sparse    []*gemm.SparseInt8 // replaces panels if skipping zeros is faster in all groups
	// initial accumulators of 4-way kernels for the last zero point; empty before the first run
	// with these weights
	start []int32
	zero  int32 // that zero point, unsigned
	// TFLite requantisation for that zero point; empty before the first run that requantises
	codes gemm.FusedRequant
}

// newInt8NHWC plans a convolution; nil without SIMD.
func newInt8NHWC(s *Shape, cg, og int, planes bool) *int8NHWC {
	f := simd.IntKernels()
	if f == nil || s.Outputs() == 0 || cg == 0 {
		return nil
	}
	// Sums need no K blocks: panels of 8-bit weights are short.
	c := &int8NHWC{plan: s.planNHWC(cg, og, f.Cols, cg*s.KH*s.KW), panels: make([]gemm.IntPanels, s.Groups), planes: planes, band: s.bandSize(f, planes)}
	if c.band > 0 {
		c.planBands(s, f)
	}
	q := &c.plan.passes[0]
	for g := range c.panels {
		c.panels[g] = gemm.IntPanels{F: f, Segs: len(c.plan.passes) * q.Segs, Seg: q.K}
	}
	c.groups = newInt8Groups(s, c.plan, cg, og)
	c.planCompaction(s)
	return c
}

// planCompaction selects contiguous copies for 1×1 windows with a stride, if tiles with many rows
// gain more from longer rows than copying costs.
func (c *int8NHWC) planCompaction(s *Shape) {
	l, w := c.plan, &c.panels[0]
	if c.planes || c.groups != nil || l.frame || l.turned || s.KH > 1 || s.KW > 1 || s.StrideH == 1 && s.StrideW == 1 || !w.F.Tiled((w.Seg+3)/4, 1) {
		return
	}
	c.compacted = true
	l.h, l.w = l.n, l.count
	l.stepA, l.lineA, l.imageA = s.C, l.count*s.C, l.n*l.count*s.C
}

// int8NHWCArgs holds the arguments of a work item of int8NHWC.
type int8NHWCArgs struct {
	c       *int8NHWC
	s       *Shape
	og      int
	x       []uint8
	bytes   int // per value, as tiles read it
	inPlace bool
	flip    bool // sparse panels flip the sign bit of their source
	across  bool // they are made from planes
	signed  bool
	zero    int32
	edge    uint8
	cut     intCut
	sink    epilogue
	codes   gemm.FusedRequant // if tiles requantise
	wide    int               // see joinedRowStride, for the current work item
}

// run convolves x.
func (c *int8NHWC) run(p *workers.Pool, s *Shape, og int, x []uint8, signed bool, zero int32, sink epilogue) {
	l, w := c.plan, &c.panels[0]
	// A value has 4/each bytes.
	q := int8NHWCArgs{c: c, s: s, og: og, x: x, bytes: 4 / w.GroupSize(), signed: signed, zero: zero, sink: sink}
	if w.Sums != nil {
		z := w.F.QuadInputZero(signed, zero)
		q.edge = uint8(z)
		c.begin(z)
	}
	if c.sparse != nil {
		q.edge, q.flip, q.signed = uint8(zero), signed != w.F.Signed, w.F.Signed
		q.across = c.planes && !l.frame && l.images == 1 && l.n == 1 && l.stepA == s.C && s.KH == 1 && s.KW == 1 && c.sparse[0].Kind != simd.SparseFours
	}
	// Tiles read the input in place if it needs no padding, transpose, sign change or values
	// after its end.
	q.inPlace = !l.frame && !c.planes && !c.compacted && q.bytes == 1 && q.signed == w.F.Signed && (w.Seg%4 == 0 || c.sparse != nil)
	q.cut = c.cut(p, s, sink.area > 0, !q.inPlace && !q.across)
	var workspace *[]float32
	if c.fusesRequant(&sink) {
		if sink.r == nil {
			q.codes = *c.fusedRequantOf(sink.q, og)
		} else {
			q.codes.Start, workspace = c.startsOf(sink.r, og)
		}
	}
	workers.Do(p, q.cut.jobs, 1, q, func(q int8NHWCArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			q.block(q.cut.at(i))
		}
	})
	if workspace != nil {
		scratch.Float32s.Put(workspace)
	}
}

// grouped reports whether group tiles compute the convolution.
func (c *int8NHWC) grouped() bool { return c.groups != nil && c.groups.weights != nil }

// begin computes the initial accumulators of 4-way kernels for a zero point.
func (c *int8NHWC) begin(zero int32) {
	if len(c.start) > 0 && c.zero == zero {
		return
	}
	c.codes.Start = c.codes.Start[:0]
	if c.grouped() {
		c.start, c.zero = scratch.Zeroed(c.start, len(c.groups.sums)), zero
		gemm.ZeroPointSums(c.start, c.groups.sums, zero)
		return
	}
	n := len(c.panels[0].Sums)
	c.start, c.zero = scratch.Zeroed(c.start, len(c.panels)*n), zero
	for g := range c.panels {
		gemm.ZeroPointSums(c.start[g*n:][:n], c.panels[g].Sums, zero)
	}
}

// intCut describes how the work is split: by rows; by positions if there is one row; or by panels
// if all positions stay in the cache, as each thread then needs a part of the weights. It also
// splits by panels if the output is many small planes, whose parts would share cache lines.
type intCut struct {
	jobs                  int
	l                     *nhwcPlan
	groups, panels        int // panels of a group; tile blocks for all groups together
	blocks, pieces, parts int // of rows, positions and panels
	rows                  int // positions computed together
	threads               int
}

// sumCost is the cost of starting and requantising a sum, in 8-bit multiplications.
const sumCost = 32

// cut splits the work into equal parts. planes says that the output is planes. With copies each
// part copies its input, so threads should not have several parts of the same positions.
func (c *int8NHWC) cut(p *workers.Pool, s *Shape, planes, copies bool) intCut {
	l, w, t := c.plan, &c.panels[0], p.Taking()
	q := intCut{l: l, groups: s.Groups, panels: l.panels, blocks: 1, pieces: 1, parts: 1, rows: w.F.CutRows(), threads: t}
	if c.grouped() {
		q.groups, q.panels = 1, len(c.groups.blocks) // all read the same rows
	}
	sums := l.images * l.n * l.count * q.groups * q.panels * w.F.Cols // including unused ones
	jobs := gemm.JobCount(p, sums*(w.Segs*w.Seg+sumCost), w.F.Rate()) / (l.images * q.groups)
	least := 4 * w.F.Rows // minimum positions of a work item
	if q.rows < w.F.Rows {
		least = 2 * q.rows
	}
	switch {
	case jobs <= 1:
	case l.n*l.count <= intCacheMax && q.panels >= t:
		if q.parts = min(jobs, 2*t, q.panels); copies {
			q.parts = min(q.parts, t)
		}
	case planes && l.n*l.count <= smallPlane && q.panels >= t && s.OC > s.C:
		q.parts = min(t, q.panels)
	case l.n >= t:
		q.blocks = min(jobs, l.n, max(t, l.n*l.count/least/t*t))
		k := s.KH
		if l.turned {
			k = s.KW
		}
		if copies && k > 1 { // rows that two blocks read are copied twice
			q.blocks = min(q.blocks, max(t, l.n/(2*k)/t*t))
		}
	default:
		if q.pieces = max(1, min(jobs, l.count/least)); q.pieces > t {
			q.pieces -= q.pieces % t // the same number for each thread
		}
		switch {
		case q.pieces < t && copies:
			q.parts = min(t, q.panels)
		case q.pieces < 2*t && !copies:
			q.parts = min(max(1, jobs/q.pieces/l.n), q.panels)
		}
	}
	q.jobs = l.images * q.groups * q.blocks * q.pieces * q.parts
	return q
}

// portion is [gemm.Tapered] if all work items are cut along this axis, else equal parts.
func (q *intCut) portion(i, of, all int) (begin, end int) {
	if of == q.jobs {
		return gemm.Tapered(i, of, q.threads, all)
	}
	return gemm.Portion(i, of, all)
}

// at returns image n and the part of work item i.
func (q *intCut) at(i int) (n int, part linePart) {
	l := q.l
	part.n0, part.n1 = q.portion(i%q.parts, q.parts, q.panels)
	i /= q.parts
	if part.p1 = l.count; q.pieces > 1 {
		p0, p1 := q.portion(i%q.pieces, q.pieces, (l.count+q.rows-1)/q.rows)
		part.p0, part.p1 = p0*q.rows, min(p1*q.rows, l.count)
	}
	i /= q.pieces
	part.l0, part.l1 = q.portion(i%q.blocks, q.blocks, l.n)
	i /= q.blocks
	part.g = i % q.groups
	return i / q.groups, part
}

// pixels writes n positions from position at of all images in the format that the convolution
// reads.
func (q *int8NHWCArgs) pixels(dst []uint8, at, n int) {
	c, area := q.s.C, q.s.H*q.s.W
	if !q.c.planes {
		q.convert(dst, q.x[at*c:][:n*c])
		return
	}
	for n > 0 {
		img, p := at/area, at%area
		here := min(n, area-p)
		q.transposed(dst[:q.bytes*here*c], q.x[img*area*c+p:], area, here)
		dst, at, n = dst[q.bytes*here*c:], at+here, n-here
	}
}

// transposed transposes n positions of planes, area apart, to channels-last.
func (q *int8NHWCArgs) transposed(dst, src []uint8, area, n int) {
	c := q.s.C
	if q.bytes == 1 && q.signed == q.c.panels[0].F.Signed {
		move.TransposeBytes(dst, c, src, area, n, c)
		return
	}
	sc, workspace := scratch.Borrow8(n * c)
	move.TransposeBytes(workspace, c, src, area, n, c)
	q.convert(dst, workspace)
	scratch.Float32s.Put(sc)
}

// convert converts values to the format that the convolution reads.
func (q *int8NHWCArgs) convert(dst, src []uint8) {
	f := q.c.panels[0].F
	if q.bytes == 1 {
		f.QuadInput(dst, src, q.signed)
		return
	}
	f.Widen(scratch.Int16sOf(dst), src, q.signed, int16(q.zero))
}

// inputRange returns the padded input of rows l0 to l1 at positions p0 to p1: rows y0 to y1,
// columns x0 to x1.
func (q *int8NHWCArgs) inputRange(l0, l1, p0, p1 int) (y0, y1, x0, x1 int) {
	s := q.s
	if q.c.compacted {
		return l0, l1, p0, p1
	}
	if q.c.plan.turned {
		l0, l1, p0, p1 = p0, p1, l0, l1
	}
	return l0 * s.StrideH, (l1-1)*s.StrideH + (s.KH-1)*s.DilH + 1, p0 * s.StrideW, (p1-1)*s.StrideW + (s.KW-1)*s.DilW + 1
}

// frame writes rows y0 to y1 and columns x0 to x1 of image n with padding; rows are l.w positions
// apart.
func (q *int8NHWCArgs) frame(dst []uint8, n, y0, y1, x0, x1 int) {
	l, s := q.c.plan, q.s
	step := q.bytes * s.C
	left, right := x0, x1
	if l.frame {
		left = min(max(x0, s.PadL), x1)
		right = max(min(x1, s.PadL+s.W), left)
	}
	copied := left < right && q.copyRows(dst[(left-x0)*step:], n, y0, y1, left, right)
	for y := y0; y < y1; y++ {
		line := dst[(y-y0)*l.w*step:][:(x1-x0)*step]
		if q.c.compacted {
			for x := x0; x < x1; x++ {
				q.pixels(line[(x-x0)*step:][:step], (n*s.H+y*s.StrideH)*s.W+x*s.StrideW, 1)
			}
			continue
		}
		iy := y - s.PadT
		if uint(iy) >= uint(s.H) || left == right {
			scratch.Fill(line, q.edge)
			continue
		}
		scratch.Fill(line[:(left-x0)*step], q.edge)
		if !copied {
			q.pixels(line[(left-x0)*step:(right-x0)*step], (n*s.H+iy)*s.W+left-s.PadL, right-left)
		}
		scratch.Fill(line[(right-x0)*step:], q.edge)
	}
}

// copyRows copies columns left to right of the rows in y0 to y1 that lie in image n in a single
// call; it returns false if that is not possible.
func (q *int8NHWCArgs) copyRows(dst []uint8, n, y0, y1, left, right int) bool {
	l, s, f := q.c.plan, q.s, q.c.panels[0].F
	if q.c.planes || q.c.compacted || q.bytes != 1 {
		return false
	}
	first, end := max(y0, s.PadT), min(y1, s.PadT+s.H)
	if first >= end {
		return true
	}
	src := q.x[((n*s.H+first-s.PadT)*s.W+left-s.PadL)*s.C:]
	return f.CopyBytes(dst[(first-y0)*l.w*s.C:], l.w*s.C, src, s.W*s.C, 1, (right-left)*s.C, end-first, q.signed != f.Signed)
}

// lineView is what tiles read: x holds an image from offset base.
type lineView struct {
	x    []uint8
	base int
}

// intCacheMax is the number of positions whose sums for a panel stay in the L1 cache. intCopyMax
// is the number of bytes of input copies that stay in the L2 cache beside the weights.
const (
	intCacheMax = 168
	intCopyMax  = 96 << 10
	// smallPlane is the plane size in bytes below which a few cache lines are a large part of it.
	smallPlane = 1024
)

// block computes a work item of image n: all panels for as many positions as stay in the cache.
func (q *int8NHWCArgs) block(n int, part linePart) {
	c, l, s := q.c, q.c.plan, q.s
	var t *simd.IntTile
	var codes *simd.CodeTile
	if q.codes.Start != nil {
		codes = q.sink.tile()
		t = &codes.IntTile
	} else {
		t = gemm.IntTiles.Get().(*simd.IntTile)
	}
	w := &c.panels[part.g]
	t.K, t.RowA, t.RowC = w.Pairs(), q.bytes*l.stepA, 4*w.F.Cols
	count := part.p1 - part.p0
	near, columns := max(intCacheMax, w.F.Rows), w.F.Cols
	switch {
	case c.sparse != nil:
		near = gemm.SparsePositions
	case c.grouped():
		near, columns = groupCacheMax, groupLine
	}
	piece := min(near, count)
	across := piece
	if q.wide = q.joinedRowStride(part); q.wide > 0 {
		across = q.wide
	}
	lines := max(1, near/across)
	workspace, fs := scratch.Borrow(lines * across * columns)
	// Rows whose copies fit, or positions if they share no input.
	held, width := lines, count
	if flat := l.n == 1 && s.KH == 1 && !l.turned && !c.compacted; flat {
		width = piece
	} else {
		line := s.StrideH * l.w * s.C
		if c.band > 0 {
			line += l.lineA
		}
		held = max(held, intCopyMax/(q.bytes*line))
	}
	for l0 := part.l0; l0 < part.l1; l0 += held {
		for p0 := part.p0; p0 < part.p1; p0 += width {
			l1, p1 := min(part.l1, l0+held), min(part.p1, p0+width)
			view, copies := q.view(n, l0, l1, p0, p1)
			for at := l0; at < l1; at += lines {
				for p := p0; p < p1; p += piece {
					here := linePart{part.g, at, min(l1, at+lines), p, min(p1, p+piece), part.n0, part.n1}
					switch {
					case c.sparse != nil:
						q.sparse(view, n*l.imageC, here)
					case c.grouped():
						q.groups(view, n*l.imageC, here, scratch.AsInt32(fs))
					default:
						q.tiles(t, codes, view, n*l.imageC, here, scratch.AsInt32(fs))
					}
				}
			}
			if copies != nil {
				scratch.Float32s.Put(copies)
			}
		}
	}
	scratch.Float32s.Put(workspace)
	if codes != nil {
		gemm.ReleaseCodeTile(codes)
	} else {
		gemm.ReleaseIntTile(t)
	}
}

// joinedRowStride returns the distance in positions between rows that tiles process as one long
// row, including the values between them; 0 if rows are processed separately. One long row is used
// if it takes fewer tiles, or as many with a small gap, because neighbouring tiles share loaded
// weights.
func (q *int8NHWCArgs) joinedRowStride(part linePart) int {
	l, w := q.c.plan, &q.c.panels[part.g]
	if q.c.sparse != nil || q.c.grouped() || w.Sparse4of8 != nil || w.Sums == nil || part.p0 > 0 || part.p1 < l.count || l.lineA%l.stepA != 0 || !w.F.Tiled(w.Pairs(), l.passes[0].Segs) {
		return 0
	}
	wide := l.lineA / l.stepA
	lines := min(part.l1-part.l0, w.F.Rows/wide)
	if lines <= 1 {
		return 0
	}
	switch together, apart := simd.TilesOfRows((lines-1)*wide+l.count), lines*simd.TilesOfRows(l.count); {
	case together < apart, together == apart && 4*l.count >= 3*wide:
		return wide
	}
	return 0
}

// view returns the input of rows l0 to l1 of image n at positions p0 to p1: the input itself, or
// a copy with its scratch buffer.
func (q *int8NHWCArgs) view(n, l0, l1, p0, p1 int) (lineView, *[]float32) {
	l, c := q.c.plan, q.s.C
	if q.inPlace || q.across {
		return lineView{x: q.x, base: -n * l.imageA}, nil
	}
	// Kernels read the bytes after the last values; their weights are zero.
	const more = 4
	if l.images == 1 && l.n == 1 && l.stepA == c && q.s.KW == 1 && q.s.KH == 1 && !l.frame && !q.c.compacted {
		// Positions of all images are consecutive.
		sc, x := scratch.Borrow8(q.bytes*(p1-p0)*c + more)
		q.pixels(x[:q.bytes*(p1-p0)*c], p0, p1-p0)
		return lineView{x, p0 * c}, sc
	}
	y0, y1, x0, x1 := q.inputRange(l0, l1, p0, p1)
	if band := q.c.band; band > 0 {
		sc, x := scratch.Borrow8(q.bytes * ((l1-l0-1)*l.lineA + (x1-x0)*band + bandSlack))
		q.bands(x, n, l0, l1, x0, x1)
		return lineView{x, l0*l.lineA + x0*band}, sc
	}
	sc, x := scratch.Borrow8(q.bytes*((y1-y0-1)*l.w+x1-x0)*c + more)
	q.frame(x, n, y0, y1, x0, x1)
	return lineView{x, (y0*l.w + x0) * c}, sc
}

// tiles computes a work item; buf is scratch for the sums of a panel, and the output of the image
// begins at position y. If codes is set, t is a part of it.
func (q *int8NHWCArgs) tiles(t *simd.IntTile, codes *simd.CodeTile, v lineView, y int, part linePart, buf []int32) {
	g, p0, p1 := part.g, part.p0, part.p1
	l, w := q.c.plan, &q.c.panels[g]
	f, cg, bytes := w.F, q.s.C/q.s.Groups, q.bytes
	// Whole rows are contiguous.
	together := p0 == 0 && p1 == l.count && l.lineC == l.count*l.stepC && (q.wide == 0 || q.wide == l.count)
	end, last := p1, part.l1
	if q.wide > 0 { // the first row stands for all
		end, last = p1+(part.l1-1-part.l0)*q.wide, part.l0+1
	}
	for n := part.n0; n < part.n1; n++ {
		if codes != nil {
			q.requantPanel(codes, v, y, n, part, buf)
			continue
		}
		if w.Sums != nil {
			t.Start = &q.c.start[g*len(w.Sums)+n*f.Cols]
		}
		t.Ahead = w.NextPanel(n, part.n1)
		ch := g*q.og + n*f.Cols
		cols := min(f.Cols, q.og-n*f.Cols)
		sums := buf
		for line := part.l0; line < last; line++ {
			for at := p0; at < end; {
				rows := f.Part(end - at)
				if len(l.passes) == 1 {
					rows = f.PartOfOne(end - at)
				}
				t.C = &sums[(at-p0)*f.Cols]
				for i := range l.passes {
					q := &l.passes[i]
					t.Segs, t.SegA = q.Segs, bytes*q.Seg
					t.A = unsafe.Pointer(&v.x[bytes*(line*l.lineA+at*l.stepA+g*cg+q.A-v.base)])
					t.B = w.At(n, i*q.Segs*w.Pairs())
					t.SetContinue(i > 0)
					w.Run(t, rows, cols)
					t.Ahead = nil
				}
				at += rows
			}
			switch {
			case q.wide > 0:
			case together:
				sums = sums[(p1-p0)*f.Cols:]
			default:
				q.sink.put(buf, f.Cols, p1-p0, y+line*l.lineC+p0*l.stepC+ch, l.stepC, ch, cols)
			}
		}
		switch {
		case together:
			q.sink.put(buf, f.Cols, (part.l1-part.l0)*l.count, y+part.l0*l.lineC+ch, l.stepC, ch, cols)
		case q.wide > 0:
			for line := part.l0; line < part.l1; line++ {
				q.sink.put(buf[(line-part.l0)*q.wide*f.Cols:], f.Cols, l.count, y+line*l.lineC+ch, l.stepC, ch, cols)
			}
		}
	}
}
