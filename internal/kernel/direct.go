package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Convolutions over [N,C,H,W] need no panels where lines fill them: what a tap sees of neighbouring positions of a line lies
// side by side in a frame that has the borders in place, taken apart where windows go in steps, and tiles read it there. A thread makes the
// frame of some lines of all channels, which the second-level cache holds, and computes these lines.

// directPlan is what such a convolution does in each run.
type directPlan struct {
	*planePlan     // of the frame of a group for some lines of results
	lines      int // of results that go together
}

// directFrame bounds the frame of a group, in values: half of a usual second-level cache.
const directFrame = 1 << 17

// planDirect returns nil for what gains nothing from it: where lines end within panels so that more is lost there than gathering
// costs, which is the less the more channels make use of a panel.
func (c *Conv) planDirect() *directPlan {
	s := &c.s
	if !c.f.HasPlaced() || s.KH*s.KW == 1 {
		return nil
	}
	whole, rest := s.OW/c.f.Cols*c.f.Cols, s.OW%c.f.Cols
	cost := float64(whole)
	if rest > 0 {
		// Tiles of fewer columns read as much of the weights.
		cost += min(1.2*float64(c.f.Taken(rest)), float64(c.f.Cols))
	}
	if cost > (1.04+4/float64(c.og))*float64(s.OW) {
		return nil
	}
	band, all := *s, c.planes
	more := all.h - s.OH
	band.OH = min(s.OH, max(2*more, 4, directFrame/(c.cg*len(all.ys)*len(all.xs)*all.w)-more))
	q := band.planFramesApart(c.cg, true)
	if q == nil || c.cg*q.size > 1<<30 {
		return nil
	}
	return &directPlan{q, band.OH}
}

// directArgs is what a piece of the work needs.
type directArgs struct {
	c            *Conv
	x, y         []float32
	bands, parts int // bands of the lines of an image, parts of the channels of a group
}

// runDirect convolves x into y.
func (c *Conv) runDirect(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.direct
	a := directArgs{c: c, x: x, y: y, parts: 1}
	lines, all, t := q.lines, s.N*s.Groups, p.Threads()
	jobs := jobsOf(p, s.N*s.OC*c.k*s.OH*s.OW, c.f.Rate())
	if jobs > all {
		// What bands have twice at their ends stays a small part.
		lines = min(lines, max((s.OH*all+jobs-1)/jobs, 2*(q.h-q.lines), 1))
	}
	a.bands = (s.OH + lines - 1) / lines
	if jobs > 1 && a.bands > 1 && all%t > 0 {
		a.bands = min(roundUp(a.bands, t), s.OH) // each thread has as many
	}
	if whole := all * a.bands; whole < jobs {
		a.parts = max(1, min((jobs+whole-1)/whole, c.og/partRows))
	}
	workers.Do(p, all*a.bands*a.parts, 1, a, directArgs.pieces)
}

// partRows is the least number of output channels for whose sake a frame is made once more.
const partRows = 64

func (a directArgs) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.direct
	// Rows of panels at the end of a frame are read whole.
	sc, frame := borrow(c.cg*q.size + c.f.Cols)
	t, r := tiles.Get().(*simd.Tile), windowRooms.Get().(*windowRoom)
	made := -1
	for i := lo; i < hi; i++ {
		part, band := i%a.parts, i/a.parts
		g, n := band/a.bands%s.Groups, band/a.bands/s.Groups
		y0, y1 := portion(band%a.bands, a.bands, s.OH)
		o0, o1 := portion(part, a.parts, (c.og+c.f.Rows-1)/c.f.Rows)
		if band != made {
			made = band
			c.directFrame(&r.copies, frame, a.x, n, g, y0)
		}
		c.directLines(t, frame, c.results(a.y, n, g*c.og), g, y0, y1, o0*c.f.Rows, min(c.og, o1*c.f.Rows))
	}
	r.give()
	giveTile(t)
	scratch.Put(sc)
}

// directFrame writes what the windows of lines from y0 on see of the channels of group g of picture n.
func (c *Conv) directFrame(t *simd.Window, frame, x []float32, n, g, y0 int) {
	s, q, f := &c.s, c.direct, simd.WindowKernels()
	band := *s
	band.PadT -= y0 * s.StrideH
	for ch := range c.cg {
		frame := frame[ch*q.size:][:q.size]
		band.frameBorders(q.planePlan, func(at, n int) { clear(frame[at : at+n]) })
		frameFloats(&band, q.planePlan, f, t, frame, c.plane(x, n, g*c.cg+ch))
	}
}

// directLines computes output channels o0 to o1 of group g in lines y0 to y1, whose frame it is given.
func (c *Conv) directLines(t *simd.Tile, frame, y []float32, g, y0, y1, o0, o1 int) {
	s, q, f := &c.s, c.direct, c.f
	w, step := c.weights[g*c.og*c.k:][:c.og*c.k], c.step()
	t.StepA, t.RowA, t.Segs, t.RowC = 4, 4*c.k, 1, 4*step
	for line := y0; line < y1; line++ {
		for k0 := 0; k0 < c.k; k0 += kBlock {
			t.K = min(kBlock, c.k-k0)
			last := k0+kBlock >= c.k
			setStart(t, false, false, k0 == 0)
			setClamp(t, c.act, last)
			t.BiasM, t.Offs = nil, &q.offs[k0]
			for o := o0; o < o1; {
				rows := evenly(o1-o, f.Rows)
				t.A = &w[o*c.k+k0]
				if last && c.bias != nil {
					t.BiasM = &c.bias[g*c.og+o]
				}
				for p := 0; p < s.OW; p += f.Cols {
					t.B, t.C = &frame[(line-y0)*q.w+p], &y[o*step+line*s.OW+p]
					f.Placed(t, rows, min(f.Cols, s.OW-p))
				}
				o += rows
			}
		}
	}
}
