package kernel

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions of groups over [N,C,H,W] have few output channels for each value that they read: gathering panels would take as long as
// the products. A thread makes frames of some lines of a group's channels, with the borders in place and taken apart where windows go in
// steps, and tiles read what each tap sees where it lies. The results of these lines are computed as one line, what lies between
// its ends and beginnings for nothing, and copied from there.

// flatPlan is what such a convolution does in each run.
type flatPlan struct {
	lines int        // of results that go together
	plane *planePlan // of the frame of a group for as many lines
	cols  float64    // columns that are computed for a result
}

// flatFrame bounds the frame of a group, in values: a quarter of a usual second-level cache.
const flatFrame = 1 << 16

// planFlat returns nil for what gains nothing from it.
func (c *Conv) planFlat() *flatPlan {
	s := c.s
	if !c.f.HasPlaced() || s.Groups == 1 || !c.planes.frame {
		return nil
	}
	q := &flatPlan{}
	more := (s.KH - 1) * s.DilH // lines of the input that a line of results sees besides those of its own
	line := max(1, c.planes.w*len(c.planes.xs)*s.StrideH*c.cg)
	q.lines = min(s.OH, max(2*more/s.StrideH, 4, flatFrame/line-more/s.StrideH))
	s.OH = q.lines
	if q.plane = s.planFramesApart(c.cg, true); q.plane == nil || c.cg*q.plane.size > 1<<30 {
		return nil
	}
	if q.cols = columnsFor(c.f, (q.lines-1)*q.plane.w+s.OW) / float64(q.lines*s.OW); q.cols > flatGain {
		return nil
	}
	return q
}

const (
	flatGain = 1.6 // how many columns may be computed for a result
	flatTime = 0.3 // what a value takes that is copied into a frame, in nanoseconds
)

// time is what an image takes, in nanoseconds, about.
func (q *flatPlan) time(c *Conv) float64 {
	s := &c.s
	return c.productTime()*q.cols*float64(s.OH*s.OW) + flatTime*float64(s.C*s.H*s.W)
}

// flatArgs is what a piece of the work needs.
type flatArgs struct {
	c            *Conv
	x, y         []float32
	bands, parts int // bands of the lines of an image, parts of the channels of a group
}

// runFlat convolves x into y.
func (c *Conv) runFlat(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.flat
	a := flatArgs{c: c, x: x, y: y, parts: 1}
	lines, all := q.lines, s.N*s.Groups
	jobs := jobsOf(p, s.N*s.OC*c.k*s.OH*s.OW, c.f.Rate())
	if jobs > all {
		// What bands have twice at their ends stays a small part.
		lines = min(lines, max((s.OH*all+jobs-1)/jobs, 2*(s.KH-1)*s.DilH/s.StrideH, 1))
	}
	a.bands = (s.OH + lines - 1) / lines
	if whole := all * a.bands; whole < jobs {
		a.parts = max(1, min((jobs+whole-1)/whole, c.og/partRows))
	}
	grain := max(1, all*a.bands*a.parts/max(1, jobs))
	workers.Do(p, all*a.bands*a.parts, grain, a, flatArgs.pieces)
}

// pieces computes pieces lo to hi: for a band of an image all groups, so that borders stay where they are.
func (a flatArgs) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.flat
	// Rows of panels at the end of a frame are read whole.
	sc, frame := borrow(c.cg*q.plane.size + c.f.Cols)
	width := apartFrom(roundUp(q.lines*q.plane.w, c.f.Cols))
	sr, room := borrow(min(c.og, roundUp(partRows, c.f.Rows)) * width)
	t, r := tiles.Get().(*simd.Tile), windowRooms.Get().(*windowRoom)
	clean, made := -1, -1
	for i := lo; i < hi; i++ {
		part, group := i%a.parts, i/a.parts
		g, band := group%s.Groups, group/s.Groups
		n := band / a.bands
		y0, y1 := portion(band%a.bands, a.bands, s.OH)
		if group != made {
			s := c.band(y0, y1)
			c.groupFrame(&r.copies, &s, q.plane, frame, a.x, n, g, band != clean)
		}
		clean, made = band, group
		o0, o1 := portion(part, a.parts, (c.og+c.f.Rows-1)/c.f.Rows)
		c.flatLines(t, frame, room, width, c.results(a.y, n, g*c.og), &r.copies, g, y0, y1, o0*c.f.Rows, min(c.og, o1*c.f.Rows))
	}
	r.give()
	giveTile(t)
	scratch.Put(sr)
	scratch.Put(sc)
}

// flatLines computes output channels o0 to o1 of group g in lines y0 to y1, whose frame it is given, and room with lines of width values.
func (c *Conv) flatLines(t *simd.Tile, frame, room []float32, width int, y []float32, copies *simd.Window, g, y0, y1, o0, o1 int) {
	s, q, f := &c.s, c.flat, c.f
	step, windows := c.step(), simd.WindowKernels()
	n := (y1-y0-1)*q.plane.w + s.OW
	t.RowC = 4 * width
	for ; o0 < o1; o0 += len(room) / width {
		here := min(o1, o0+len(room)/width)
		for k0 := 0; k0 < c.k; k0 += c.pass {
			t.Offs = &q.plane.offs[k0]
			c.rows(t, g, k0, o0, here, func(o, rows int) {
				for p := 0; p < n; {
					t.B, t.C = &frame[p], &room[(o-o0)*width+p]
					p += f.Placed(t, rows, n-p, false)
				}
			})
		}
		for o := o0; o < here; o++ {
			windows.CopyLines(copies, y[o*step+y0*s.OW:], s.OW, room[(o-o0)*width:], q.plane.w, 1, s.OW, y1-y0)
		}
	}
}
