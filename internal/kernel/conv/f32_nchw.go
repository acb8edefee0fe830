package conv

import (
	"math"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions over [N,C,H,W] with SIMD kernels. The weights are read in place, one row per
// output channel. Panels of output positions are gathered from the input, where neighbouring
// positions of a row are contiguous. If windows cross the border or the stride is above one, the
// input is first copied with padding and split by stride phase, so that the values of one tap are
// contiguous. Code calls such a padded input copy a frame.

// NCHWPlan holds the parameters of a SIMD convolution over [N,C,H,W].
type NCHWPlan struct {
	frame bool // the input is copied into frames
	// A frame has h rows of w values. A channel has one frame for each pair of stride phases: the
	// remainders phasesY and phasesX of tap offsets divided by the stride.
	h, w             int
	cols             int // Values written per row: w, or fewer for a part of the columns
	phasesY, phasesX []int
	Size             int     // of a channel: all its frames
	offs             []int32 // offset of the values of each patch element in the frames
}

// PlanNCHW returns nil if offsets do not fit 32 bits.
func (s *Shape) PlanNCHW(cg int) *NCHWPlan {
	if s.KH == 1 && s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.PadT == 0 && s.PadL == 0 && s.OH == s.H && s.OW == s.W {
		// the whole plane is one row
		return &NCHWPlan{w: s.H * s.W, cols: s.H * s.W, h: 1, Size: s.H * s.W}
	}
	return s.planFrames(cg)
}

// planFrames is planPlanes for padded copies.
func (s *Shape) planFrames(cg int) *NCHWPlan { return s.planFramesApart(cg, false) }

// planFramesApart is planFrames with further: it pads the distance between channels if it is
// close to a multiple of a page. Otherwise the channels would map to the same sets of the L1
// cache.
func (s *Shape) planFramesApart(cg int, further bool) *NCHWPlan {
	q := &NCHWPlan{frame: true}
	var yi, xi []int // phase index of each tap
	q.phasesY, yi, q.h = remainders(s.KH, s.DilH, s.StrideH, s.OH)
	q.phasesX, xi, q.w = remainders(s.KW, s.DilW, s.StrideW, s.OW)
	q.cols, q.Size = q.w, len(q.phasesY)*len(q.phasesX)*q.h*q.w
	if further {
		q.Size = padStride(q.Size)
	}
	if cg*q.Size > math.MaxInt32 {
		return nil
	}
	q.offs = make([]int32, 0, cg*s.KH*s.KW)
	for ch := range cg {
		for ky := range s.KH {
			for kx := range s.KW {
				frame := yi[ky]*len(q.phasesX) + xi[kx]
				q.offs = append(q.offs, int32(ch*q.Size+(frame*q.h+ky*s.DilH/s.StrideH)*q.w+kx*s.DilW/s.StrideW))
			}
		}
	}
	return q
}

// padStride returns n, or slightly more if n values are close to a multiple of a page.
func padStride(n int) int {
	if n%1024 < 16 || n%1024 > 1024-16 {
		n += 32
	}
	return n
}

// remainders lists the stride phases of the taps of one axis, the phase index of each tap, and
// the length of a frame.
func remainders(k, dil, stride, out int) (all, of []int, size int) {
	at := make(map[int]int)
	for i := range k {
		r := i * dil % stride
		if _, ok := at[r]; !ok {
			at[r] = len(all)
			all = append(all, r)
		}
		of = append(of, at[r])
		size = max(size, out+i*dil/stride)
	}
	return all, of, size
}

// usesPlanes reports whether SIMD GEMM kernels read planes.
func (c *Float32) usesPlanes() bool { return c.f != nil && c.planes != nil }

// planPanels prepares a convolution over gathered panels.
func (c *Float32) planPanels() bool {
	if !c.usesPlanes() {
		return false
	}
	c.copied = c.copiesPanels()
	return true
}

// eachImage returns a runner that calls run for each image n, with its planes given as frames or as
// they are.
func eachImage(run func(c *Float32, p *workers.Pool, x, y []float32, n int)) runner {
	return func(c *Float32, p *workers.Pool, x, y []float32) {
		s, q := &c.s, c.planes
		if !q.frame {
			for n := range s.N {
				run(c, p, x[n*s.C*s.H*s.W:], y, n)
			}
			return
		}
		sc, frame := scratch.Borrow(s.C*q.Size + c.f.Cols)
		clear(frame[s.C*q.Size:]) // tiles read columns beyond the last one, depending on the panel size
		for n := range s.N {
			workers.Do(p, s.C, max(1, scratch.CopyGrain/q.Size), planeFrames{c, frame, x, n}, planeFrames.pad)
			run(c, p, frame, y, n)
		}
		scratch.Float32s.Put(sc)
	}
}

// planeFrames holds the arguments of a work item that pads channels.
type planeFrames struct {
	c        *Float32
	frame, x []float32
	n        int // image index
}

// pad writes the frames of channels lo to hi.
func (a planeFrames) pad(lo, hi int) {
	s, q := &a.c.s, a.c.planes
	r, f := windowPool.Get().(*windowScratch), simd.WindowKernels()
	for ch := lo; ch < hi; ch++ {
		frame := a.frame[ch*q.Size:][:q.Size]
		s.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
		frameFloats(s, q, f, &r.copies, frame, a.c.plane(a.x, a.n, ch))
	}
	r.give()
}

// framePlane writes the frames of one channel with zero padding.
func framePlane(s *Shape, q *NCHWPlan, frame, in []int16) {
	s.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
	s.frameInside(q, func(to, from, n, lines int) { copyPiece(s, q, frame, in, to, from, n, lines) })
}

// copyPiece copies one piece of [Shape.frameInside].
func copyPiece[T any](s *Shape, q *NCHWPlan, frame, in []T, to, from, n, lines int) {
	move.Lines(frame[to:], q.w, in[from:], s.StrideH*s.W, s.StrideW, n, lines)
}

// frameBytes is framePlane for bytes; signed input is converted to unsigned.
func frameBytes(s *Shape, q *NCHWPlan, f *simd.Ints, frame, in []uint8, signed bool, edge uint8) {
	s.frameBorders(q, func(at, n int) { scratch.Fill(frame[at:at+n], edge) })
	s.frameInside(q, func(to, from, n, lines int) {
		if f.CopyBytes(frame[to:], q.w, in[from:], s.StrideH*s.W, s.StrideW, n, lines, signed != f.Signed) {
			return
		}
		copyPiece(s, q, frame, in, to, from, n, lines)
		for l := 0; signed != f.Signed && l < lines; l++ {
			line := frame[to+l*q.w:][:n]
			f.QuadInput(line, line, signed)
		}
	})
}

// frameFloats writes the interior of the frames of a channel with SIMD kernels.
func frameFloats(s *Shape, q *NCHWPlan, f *simd.Windows, t *simd.Window, frame, in []float32) {
	s.frameInside(q, func(to, from, n, lines int) {
		if f != nil && f.CopyLines(t, frame[to:], q.w, in[from:], s.StrideH*s.W, s.StrideW, n, lines) {
			return
		}
		copyPiece(s, q, frame, in, to, from, n, lines)
	})
}

// frameInside calls f for the interior of each frame of a channel: its offset in the frame and in
// the input, and lines rows of n values.
func (s *Shape) frameInside(q *NCHWPlan, f func(to, from, n, lines int)) {
	at := 0
	for _, ry := range q.phasesY {
		top, end := span(q.h, s.StrideH, ry-s.PadT, s.H)
		for _, rx := range q.phasesX {
			lo, hi := span(q.cols, s.StrideW, rx-s.PadL, s.W)
			if lo < hi && top < end {
				f(at+top*q.w+lo, (top*s.StrideH+ry-s.PadT)*s.W+lo*s.StrideW+rx-s.PadL, hi-lo, end-top)
			}
			at += q.h * q.w
		}
	}
}

// frameBorders calls f for the padding ranges of the frames of a channel.
func (s *Shape) frameBorders(q *NCHWPlan, f func(at, n int)) {
	at := 0
	for _, ry := range q.phasesY {
		top, end := span(q.h, s.StrideH, ry-s.PadT, s.H)
		for _, rx := range q.phasesX {
			lo, hi := span(q.cols, s.StrideW, rx-s.PadL, s.W)
			switch {
			case q.cols < q.w:
				for y := range q.h {
					if y < top || y >= end || lo >= hi {
						f(at+y*q.w, q.cols)
						continue
					}
					f(at+y*q.w, lo)
					f(at+y*q.w+hi, q.cols-hi)
				}
			case lo >= hi || top >= end:
				f(at, q.h*q.w)
			default:
				f(at, top*q.w+lo)
				for y := top; y+1 < end && hi-lo < q.w; y++ {
					f(at+y*q.w+hi, q.w-hi+lo)
				}
				f(at+(end-1)*q.w+hi, (q.h-end)*q.w+q.w-hi)
			}
			at += q.h * q.w
		}
	}
}

// planeImage convolves image n, given as frames or as it is.
func (c *Float32) planeImage(p *workers.Pool, x, y []float32, n int) {
	cut := c.s.cutPlanes(p, c.og, c.k, c.cut(), c.f.Cols, 4, c.f.Rate())
	workers.Do(p, cut.jobs, 1, planeArgs{c, x, y, n, cut}, func(q planeArgs, lo, hi int) {
		r, t := q.cut.scratch(), gemm.Tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			q.part(t, &r, i)
		}
		gemm.ReleaseTile(t)
		r.give()
	})
}

// planeArgs holds the arguments of a work item of an image.
type planeArgs struct {
	c    *Float32
	x, y []float32
	n    int
	cut  planeCut
}

// part computes work item i.
func (q *planeArgs) part(t *simd.Tile, r *panelScratch, i int) {
	c := q.c
	g, n0, n1, o0, o1 := q.cut.at(i)
	area, cols := c.s.OH*c.s.OW, c.f.Cols
	in := q.x[g*c.cg*c.planes.Size:]
	if c.s.KH*c.s.KW == 1 && c.sparse == nil && !c.copied {
		c.inPlace(t, r.buf, in, c.results(q.y, q.n, g*c.og+o0), g, n0, n1, o0, o1)
		return
	}
	spread := func(buf []float32, k0, steps int) { c.spread(buf, in, k0, steps, n0, n1) }
	if c.planes.frame {
		spread = func(buf []float32, k0, steps int) { *r.runs = c.gather(buf, *r.runs, in, k0, steps, n0, n1) }
	}
	c.planeBlock(t, r.buf, spread, c.results(q.y, q.n, g*c.og+o0)[n0*cols:], c.step(), g, min(area-n0*cols, (n1-n0)*cols), o0, o1)
}

// spread writes K steps of panels n0 to n1 of an input that needs no frames.
func (c *Float32) spread(buf, in []float32, k0, steps, n0, n1 int) {
	q, cols, area := c.planes, c.f.Cols, c.s.OH*c.s.OW
	whole := min(n1, area/cols) - n0
	c.f.Spread(buf, in[k0*q.Size+n0*cols:], q.Size, steps, whole)
	if p0 := n1 * cols; whole < n1-n0 {
		gemm.Pack(buf[whole*steps*cols:], in[k0*q.Size+p0-cols:], area-p0+cols, steps, cols, 1, q.Size)
	}
}

// gather is spread from frames. It reuses the slice runs and returns it.
func (c *Float32) gather(buf []float32, runs []simd.Run, in []float32, k0, steps, n0, n1 int) []simd.Run {
	cols, area := c.f.Cols, c.s.OH*c.s.OW
	for n := n0; n < n1; n++ {
		p0 := n * cols
		runs = c.s.runs(c.planes, runs[:0], p0, min(cols, area-p0))
		c.f.Gather(buf[(n-n0)*steps*cols:], in, c.planes.offs[k0:][:steps], runs)
	}
	return runs
}

// GatherPanel writes K steps of one panel, for [gemm.Panels].
func (c *Float32) GatherPanel(dst, data []float32, k0, steps, panel int) {
	runs := runPool.Get().(*[]simd.Run)
	*runs = c.gather(dst, *runs, data, k0, steps, panel, panel+1)
	runPool.Put(runs)
}

// planeCut describes how the work on an image is split: into blocks of panels, and of output
// channels if there are few blocks. Blocks that remain after each thread has the same number are
// split by channels, so that each thread gets a part of them.
//
// If planes end within a cache line, two threads write to the shared line when each has some
// positions of all channels. A line that another core has just written costs 75 ns or more: for
// 14×14 planes, more than the multiplications of 64 channels. Small planes are therefore split by
// channels if more planes are written than read. The same applies if all positions stay in the
// cache, because each thread then needs only a part of the weights.
type planeCut struct {
	jobs                       int  // work items
	groups, all, block, blocks int  // panels in total and per block
	parts, og, rows, cols      int  // channel parts of a group; rows are computed together
	channels                   bool // consecutive work items have the same channels
	// blocks per thread, and remaining blocks; 0 if all blocks are split alike
	threads, whole, left int
}

// cutPlanes splits the work; k is the length of a patch, rows the height of a tile, bytes the
// size of an output value.
func (s *Shape) cutPlanes(p *workers.Pool, og, k, rows, cols, bytes int, rate float64) planeCut {
	area, t := s.OH*s.OW, p.Threads()
	q := planeCut{groups: s.Groups, all: (area + cols - 1) / cols, og: og, rows: rows, cols: cols, threads: t}
	q.block = min(gemm.TileBlock, q.all)
	jobs, tiles := gemm.JobCount(p, s.OC*k*area, rate), (og+rows-1)/rows
	if jobs > 1 && tiles >= t && s.Groups == 1 && (area <= intCacheMax || area*bytes <= smallPlane && s.OC > s.C) {
		q.blocks, q.parts, q.channels = (q.all+q.block-1)/q.block, t, true
		if og >= 2*t*minOwnChannels && jobs >= 2*t {
			q.parts *= 2
		}
		q.jobs = q.blocks * q.parts
		return q
	}
	if jobs > s.Groups {
		q.block = max(1, min(q.block, q.all*s.Groups/jobs))
	}
	q.blocks = (q.all + q.block - 1) / q.block
	units := s.Groups * q.blocks
	q.channels = units < 2*t // few panels may have different widths
	q.parts = max(1, min(jobs/units, tiles))
	if q.parts > t {
		q.parts -= q.parts % t
	}
	q.jobs = units * q.parts
	if q.parts == 1 && jobs > t && units%t > 0 && tiles >= t {
		q.parts, q.whole, q.left = t, units/t, units%t
		q.jobs = t * (q.whole + q.left)
	}
	return q
}

// minOwnChannels is the minimum number of output channels that justifies gathering panels again.
const minOwnChannels = 64

// at returns the group and the ranges of panels and channels of work item i.
func (q *planeCut) at(i int) (g, n0, n1, o0, o1 int) {
	units := q.groups * q.blocks
	unit, part, parts := i/q.parts, i%q.parts, q.parts
	switch each := q.whole + q.left; {
	case q.left > 0:
		if part, unit = i/each, i%each; unit < q.whole {
			unit, part, parts = part*q.whole+unit, 0, 1
		} else {
			unit += (q.threads - 1) * q.whole
		}
	case q.channels:
		unit, part = i%units, i/units
	}
	o0, o1 = gemm.Portion(part, parts, (q.og+q.rows-1)/q.rows)
	b := unit % q.blocks
	return unit / q.blocks, b * q.block, min(q.all, (b+1)*q.block), o0 * q.rows, min(q.og, o1*q.rows)
}

// panelScratch holds scratch memory for the panels of KBlock steps, and for runs.
type panelScratch struct {
	sc   *[]float32
	buf  []float32
	runs *[]simd.Run
}

func (q *planeCut) scratch() panelScratch {
	// Gathering writes up to two rows beyond the end of a panel.
	sc, buf := scratch.Borrow((q.block*gemm.KBlock + 2) * q.cols)
	return panelScratch{sc, buf, runPool.Get().(*[]simd.Run)}
}

func (r *panelScratch) give() {
	runPool.Put(r.runs)
	scratch.Float32s.Put(r.sc)
}

var runPool = sync.Pool{New: func() any { return new([]simd.Run) }}

// planeBlock computes output channels o0 to o1 of group g in the np positions of the panels that
// spread writes. y begins with the first position of the first channel; channels are step apart.
func (c *Float32) planeBlock(t *simd.Tile, buf []float32, spread func(buf []float32, k0, steps int), y []float32, step, g, np, o0, o1 int) {
	if c.sparse != nil {
		c.sparsePlanes(buf, spread, y, step, g, np, o0, o1)
		return
	}
	f, cols := c.f, c.f.Cols
	t.RowC, t.StepB = 4*step, 4*cols
	for k0 := 0; k0 < c.k; k0 += c.pass {
		spread(buf, k0, min(c.pass, c.k-k0))
		c.rows(t, g, k0, o0, o1, func(o, rows int) {
			for p0 := 0; p0 < np; p0 += cols {
				t.B, t.C = &buf[p0*t.K], &y[(o-o0)*step+p0]
				t.Next, t.Fetch = nil, 0
				c.prefetchRows(t, g, k0, o+rows, rows, p0/cols)
				f.Run(t, rows, min(cols, np-p0), false)
			}
		})
	}
}

// rows calls tiles for each row tile of output channels o0 to o1 of group g. t then has their
// weights from K step k0, and in the last pass their biases and clamp.
func (c *Float32) rows(t *simd.Tile, g, k0, o0, o1 int, tiles func(o, rows int)) {
	line := c.k + c.rowGap
	w := c.weights[g*c.og*line:][:c.og*line]
	t.StepA, t.RowA, t.Segs, t.K = 4, 4*line, 1, min(c.pass, c.k-k0)
	last := k0+c.pass >= c.k
	gemm.SetStart(t, false, false, k0 == 0)
	gemm.SetClamp(t, c.act, last)
	t.BiasM = nil
	for o := o0; o < o1; {
		rows := simd.Evenly(o1-o, c.f.Rows)
		t.A = &w[o*line+k0]
		if last && c.bias != nil {
			t.BiasM = &c.bias[g*c.og+o]
		}
		tiles(o, rows)
		o += rows
	}
}

// copiesPanels reports whether panels of a 1×1 convolution are copied before the weights pass.
// Without a copy each K step of a panel is in a different page if planes are large, and in the
// same L1 set if planes are whole pages; each load touches two cache lines if planes do not end
// with one. Copying costs a fifth of the time of about 64 output channels on a Zen 4, a tenth on
// a Xeon. The Xeon gains 8 to 50 % with many channels if sets are full after two tiles, and 3 to
// 17 % with [copyChannels] channels whenever planes are half a page or more.
func (c *Float32) copiesPanels() bool {
	line := 4 * c.planes.Size
	switch {
	case c.s.KH*c.s.KW > 1 || c.planes.frame:
		return false
	case line%gemm.SameLines == 0:
		return c.og >= 2*c.f.Rows
	case simd.Current() == simd.AMX && line >= gemm.SameLines/2:
		return c.og >= copyChannels
	case line >= gemm.SameLines, line%(4*c.f.Cols/2) != 0:
		return c.og >= 256
	}
	return false
}

// copyChannels is the number of output channels from which copying is faster on a Xeon with AMX.
const copyChannels = 64

// padWeightRows pads given weight rows whose distance is a multiple of SameLines bytes, if many
// positions read them.
func (c *Float32) padWeightRows() {
	if !c.usesPlanes() || !c.unpacked || c.splitBF16 != nil || 4*c.k%gemm.SameLines != 0 || c.og <= c.f.Rows/2 {
		return
	}
	line := c.k + gemm.Apart
	w := hugepages.Make[float32](c.s.OC * line)
	for o := range c.s.OC {
		copy(w[o*line:], c.weights[o*c.k:][:c.k])
	}
	c.weights, c.unpacked, c.rowGap = w, false, gemm.Apart
}

// inPlace computes output channels o0 to o1 of group g in panels n0 to n1 of a 1×1 convolution
// that reads its planes in place. It copies the last panel to buf if that is partial.
//
// Rows of a panel are one plane apart, which hardware prefetchers do not follow. While the first
// rows of weights pass, tiles therefore prefetch the next panels.
func (c *Float32) inPlace(t *simd.Tile, buf, in, y []float32, g, n0, n1, o0, o1 int) {
	f, cols, line, step := c.f, c.f.Cols, c.planes.Size, c.step()
	area, further := c.s.OH*c.s.OW, (n1-n0)*cols
	t.RowC = 4 * step
	group := c.rowGroup(o0, o1)
	for first := o0; first < o1; first += group {
		end := min(o1, first+group)
		next := c.nextRows(g, end, min(o1, end+group), (end-first+f.Rows-1)/f.Rows*(n1-n0))
		for k0 := 0; k0 < c.k; k0 += c.pass {
			in := in[k0*line:]
			if p0 := (n1 - 1) * cols; p0+cols > area {
				gemm.Pack(buf, in[p0:], area-p0, min(c.pass, c.k-k0), cols, 1, line)
			}
			further := further // of the rows of the next panels
			c.rows(t, g, k0, first, end, func(o, rows int) {
				for p0 := n0 * cols; p0 < min(n1*cols, area); p0 += cols {
					t.B, t.StepB = &in[p0], 4*line
					if p0+cols > area {
						t.B, t.StepB = &buf[0], 4*cols
					}
					t.C = &y[(o-o0)*step+p0]
					t.Next, t.Fetch = nil, 0
					if soon := p0 + further; first == o0 && further < (n1-n0+1)*cols && soon < area {
						t.Next, t.Fetch = unsafe.Pointer(&in[soon]), 4*line
					} else if group < o1-o0 {
						next.Fetch(t, 1)
					} else {
						c.prefetchRows(t, g, k0, o+rows, rows, p0/cols-n0)
					}
					f.Run(t, rows, min(cols, area-p0), false)
				}
				further += cacheLine
			})
		}
	}
}

// rowGroup returns how many of output channels o0 to o1 pass all K steps before the next ones: all,
// unless their weights exceed the L2 cache and need several passes.
func (c *Float32) rowGroup(o0, o1 int) int {
	line := c.k + c.rowGap
	if c.pass >= c.k || (o1-o0)*line <= prefetchAllMax {
		return o1 - o0
	}
	return min(o1-o0, max(1, rowGroupValues/(line*c.f.Rows))*c.f.Rows)
}

// rowGroupValues is the size of the weights of a row group: two fit a typical L2 cache beside the
// input of a pass.
const rowGroupValues = 1 << 15

// nextRows returns the prefetch of the weights of output channels o0 to o1 of group g, spread over
// a number of tiles in each pass.
func (c *Float32) nextRows(g, o0, o1, tiles int) gemm.Prefetch {
	line := c.k + c.rowGap
	w := c.weights[(g*c.og+o0)*line : (g*c.og+o1)*line]
	return gemm.PrefetchOf(w, min(4*cacheLine, (4*len(w)+c.k*tiles-1)/max(1, c.k*tiles)))
}

// prefetchRows makes the next tile, number i of the tiles of a panel, prefetch a part of the
// weights of group g from output channel o, which are needed next. Many rows are read at once; if
// they are far apart, hardware prefetchers are too late.
func (c *Float32) prefetchRows(t *simd.Tile, g, k0, o, rows, i int) {
	line, at := c.k+c.rowGap, i*t.K*cacheLine
	if o >= c.og || k0 > 0 || at >= min(rows, c.og-o)*line || t.K < c.k && c.og*line > prefetchAllMax {
		return
	}
	t.Next, t.Fetch = unsafe.Pointer(&c.weights[(g*c.og+o)*line+at]), 4*cacheLine
}

// prefetchAllMax bounds the weights of a group that are all prefetched in the first of several
// passes, in values: half of a typical L2 cache.
const prefetchAllMax = 1 << 18

// cacheLine is the number of values in a cache line.
const cacheLine = 16

// sparsePlanes is planeBlock with sparse weights.
func (c *Float32) sparsePlanes(buf []float32, spread func(buf []float32, k0, steps int), y []float32, step, g, np, o0, o1 int) {
	s, bias := c.sparse[g], c.bias
	if bias != nil {
		bias = bias[g*c.og:]
	}
	t := gemm.SparseTiles.Get().(*simd.SparseTile)
	for b := range s.Blocks {
		k0 := b * gemm.KBlock
		steps := min(gemm.KBlock, c.k-k0)
		spread(buf, k0, steps)
		s.Block(t, buf, steps, b, y, step, np, o0, o1, bias, c.act, false)
	}
	gemm.ReleaseSparseTile(t)
}

// cut returns the multiple of output channels at which work is split.
func (c *Float32) cut() int {
	if c.sparse != nil {
		return gemm.SparseCut
	}
	return c.f.Rows
}

// runs lists the locations of the np positions from p0 in a frame, row by row.
func (s *Shape) runs(q *NCHWPlan, runs []simd.Run, p0, np int) []simd.Run {
	if q.w == s.OW {
		return append(runs, simd.Run{From: int32(p0)})
	}
	oy, ox := p0/s.OW, p0%s.OW
	for to := 0; to < np; oy, ox = oy+1, 0 {
		runs = append(runs, simd.Run{From: int32(oy*q.w + ox), To: int32(to)})
		to += s.OW - ox
	}
	return runs
}
