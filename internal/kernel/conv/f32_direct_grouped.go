package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Grouped convolutions over [N,C,H,W] have few output channels per input value: gathering panels
// would take as long as multiplying. A thread makes padded copies of some rows of a group, split
// by stride phase, and tiles read each tap in place. These output rows are computed as one long
// row, including the unused values between them, and copied from there.

// groupedDirectPlan holds the parameters of a grouped direct convolution.
type groupedDirectPlan struct {
	lines int       // output rows computed together
	plane *NCHWPlan // of the padded copy of a group for that many rows
	cols  float64   // columns computed per output value
}

// groupedFrameMax bounds the padded copy of a group, in values: a quarter of a typical L2 cache.
const groupedFrameMax = 1 << 16

// planGroupedDirect returns false if this algorithm is not faster.
func (c *Float32) planGroupedDirect() bool {
	s := c.s
	if !c.usesPlanes() || !c.f.HasIndirect() || s.Groups == 1 || !c.planes.frame {
		return false
	}
	q := &groupedDirectPlan{}
	more := (s.KH - 1) * s.DilH // input rows that an output row reads besides its first
	line := max(1, c.planes.w*len(c.planes.phasesX)*s.StrideH*c.cg)
	q.lines = min(s.OH, max(2*more/s.StrideH, 4, groupedFrameMax/line-more/s.StrideH))
	s.OH = q.lines
	if q.plane = s.planFramesApart(c.cg, true); q.plane == nil || c.cg*q.plane.Size > 1<<30 {
		return false
	}
	if q.cols = columnCost(c.f, (q.lines-1)*q.plane.w+s.OW) / float64(q.lines*s.OW); q.cols > groupedMaxColumns {
		return false
	}
	c.groupedDirect = q
	return true
}

const (
	groupedMaxColumns = 1.6 // maximum number of columns computed per output value
	groupedCopyTime   = 0.3 // nanoseconds to copy a value into a padded copy
)

// time estimates the time of an image, in nanoseconds.
func (q *groupedDirectPlan) time(c *Float32) float64 {
	s := &c.s
	return c.productTime()*q.cols*float64(s.OH*s.OW) + groupedCopyTime*float64(s.C*s.H*s.W)
}

// groupedDirectArgs holds the arguments of a work item.
type groupedDirectArgs struct {
	c            *Float32
	x, y         []float32
	bands, parts int // row bands of an image, channel parts of a group
}

// runGroupedDirect convolves x into y.
func (c *Float32) runGroupedDirect(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.groupedDirect
	a := groupedDirectArgs{c: c, x: x, y: y, parts: 1}
	lines, all := q.lines, s.N*s.Groups
	jobs := gemm.JobCount(p, s.N*s.OC*c.k*s.OH*s.OW, c.f.Rate())
	if jobs > all {
		// Keep the overlap between bands small.
		lines = min(lines, max((s.OH*all+jobs-1)/jobs, 2*(s.KH-1)*s.DilH/s.StrideH, 1))
	}
	a.bands = (s.OH + lines - 1) / lines
	if whole := all * a.bands; whole < jobs {
		a.parts = max(1, min((jobs+whole-1)/whole, c.og/minPartChannels))
	}
	grain := max(1, all*a.bands*a.parts/max(1, jobs))
	workers.Do(p, all*a.bands*a.parts, grain, a, groupedDirectArgs.pieces)
}

// pieces computes work items lo to hi: all groups for one band of an image, so that the padding
// of the copy is written once.
func (a groupedDirectArgs) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.groupedDirect
	// Tiles read whole panel rows at the end of the copy.
	sc, frame := scratch.Borrow(c.cg*q.plane.Size + c.f.Cols)
	width := padStride(scratch.RoundUp(q.lines*q.plane.w, c.f.Cols))
	sr, workspace := scratch.Borrow(min(c.og, scratch.RoundUp(minPartChannels, c.f.Rows)) * width)
	t, r := gemm.Tiles.Get().(*simd.Tile), windowPool.Get().(*windowScratch)
	clean, made := -1, -1
	for i := lo; i < hi; i++ {
		part, group := i%a.parts, i/a.parts
		g, band := group%s.Groups, group/s.Groups
		n := band / a.bands
		y0, y1 := gemm.Portion(band%a.bands, a.bands, s.OH)
		if group != made {
			s := c.band(y0, y1)
			c.padGroup(&r.copies, &s, q.plane, frame, a.x, n, g, band != clean)
		}
		clean, made = band, group
		o0, o1 := gemm.Portion(part, a.parts, (c.og+c.f.Rows-1)/c.f.Rows)
		c.groupedDirectLines(t, frame, workspace, width, c.results(a.y, n, g*c.og), &r.copies, g, y0, y1, o0*c.f.Rows, min(c.og, o1*c.f.Rows))
	}
	r.give()
	gemm.ReleaseTile(t)
	scratch.Float32s.Put(sr)
	scratch.Float32s.Put(sc)
}

// groupedDirectLines computes output channels o0 to o1 of group g in rows y0 to y1 from their
// padded input. workspace is scratch memory with rows of width values.
func (c *Float32) groupedDirectLines(t *simd.Tile, frame, workspace []float32, width int, y []float32, copies *simd.Window, g, y0, y1, o0, o1 int) {
	s, q, f := &c.s, c.groupedDirect, c.f
	step, windows := c.step(), simd.WindowKernels()
	n := (y1-y0-1)*q.plane.w + s.OW
	t.RowC = 4 * width
	for ; o0 < o1; o0 += len(workspace) / width {
		here := min(o1, o0+len(workspace)/width)
		for k0 := 0; k0 < c.k; k0 += c.pass {
			t.Offs = &q.plane.offs[k0]
			c.rows(t, g, k0, o0, here, func(o, rows int) {
				for p := 0; p < n; {
					t.B, t.C = &frame[p], &workspace[(o-o0)*width+p]
					p += f.RunIndirect(t, rows, n-p, false)
				}
			})
		}
		for o := o0; o < here; o++ {
			windows.CopyLines(copies, y[o*step+y0*s.OW:], s.OW, workspace[(o-o0)*width:], q.plane.w, 1, s.OW, y1-y0)
		}
	}
}
