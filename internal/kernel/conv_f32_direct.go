package kernel

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions over [N,C,H,W] need no panels where lines fill them: what a tap sees of neighbouring positions of a line lies
// side by side in a frame that has the borders in place, taken apart where windows go in steps, and tiles read it there. A thread makes the
// frame of some lines of all channels, which the second-level cache holds, and computes these lines.

// directPlan is what such a convolution does in each run.
type directPlan struct {
	*planePlan      // of the frame of a group for some lines of results
	lines      int  // of results that go together
	gathered   bool // panels of the frame are gathered before they are multiplied
}

// directFrameMax bounds the frame of a group, in values: half of a usual second-level cache.
const directFrameMax = 1 << 17

// planDirect returns nil for what gains nothing from it: where lines end within panels so that more is lost there than gathering
// costs, which is the less the more channels make use of a panel.
func (c *Conv) planDirect() *directPlan {
	s := &c.s
	if !c.f.HasPlaced() || s.KH*s.KW == 1 {
		return nil
	}
	if columnCost(c.f, s.OW) > (1.04+4/float64(c.og))*float64(s.OW) {
		return nil
	}
	band, all := *s, c.planes
	more := all.h - s.OH
	band.OH = min(s.OH, max(2*more, 4, directFrameMax/(c.cg*len(all.phasesY)*len(all.phasesX)*all.w)-more))
	q := band.planFramesApart(c.cg, true)
	if q == nil || c.cg*q.size > 1<<30 {
		return nil
	}
	return &directPlan{q, band.OH, c.gathersPanels(q)}
}

// gathersPanels tells whether panels are gathered from the frame q before the weights go by, which takes a few hundredths of the time of the products. Steps
// of a panel that lie in more pages than a processor has at hand, as those of long lines do, cost a Xeon a fifth of it, those of half
// as many a twentieth.
func (c *Conv) gathersPanels(q *planePlan) bool {
	s := &c.s
	pages := kBlock / (s.KH * s.KW) * min(s.KH*len(q.phasesX), 4*q.size/sameLines)
	return simd.Current() == simd.AMX && c.og >= copyChannels && c.k >= kBlock && pages >= 32
}

// columnCost is how many columns of whole panels take as long as n results side by side.
func columnCost(f *simd.Floats, n int) float64 {
	cost := float64(n / f.Cols * f.Cols)
	if rest := n % f.Cols; rest > 0 {
		// Tiles of fewer columns read as much of the weights.
		cost += min(1.2*float64(f.Taken(rest)), float64(f.Cols))
	}
	return cost
}

// directArgs is what a piece of the work needs.
type directArgs struct {
	c                    *Conv
	x, y                 []float32
	bands, strips, parts int // bands of the lines of an image, strips of their columns, parts of the channels of a group
}

// runDirect convolves x into y.
func (c *Conv) runDirect(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.direct
	a := directArgs{c: c, x: x, y: y, parts: 1}
	lines, all, t := q.lines, s.N*s.Groups, p.Threads()
	jobs := jobCount(p, s.N*s.OC*c.k*s.OH*s.OW, c.f.Rate())
	if jobs > all {
		// What bands have twice at their ends stays a small part.
		lines = min(lines, max((s.OH*all+jobs-1)/jobs, 2*(q.h-q.lines), 1))
	}
	a.bands = (s.OH + lines - 1) / lines
	if jobs > 1 && a.bands > 1 && all%t > 0 {
		a.bands = min(roundUp(a.bands, t), s.OH) // each thread has as many
	}
	a.strips = c.directStrips(all*a.bands, jobs, t)
	if whole := all * a.bands * a.strips; whole < jobs {
		a.parts = max(1, min((jobs+whole-1)/whole, c.og/minPartChannels))
	}
	workers.Do(p, all*a.bands*a.strips*a.parts, 1, a, directArgs.pieces)
}

// directStrips is the number of strips into which bands of lines are cut, for t threads: as many as pieces are wanted, or as the cache does not
// hold, so long as what strips have twice at their ends stays a small part. A strip for each thread may have more twice: copying is little.
func (c *Conv) directStrips(bands, jobs, t int) int {
	s, q := &c.s, c.direct
	most := s.OW / max(4*c.f.Cols, 4*(s.KW-1)*s.DilW)
	n := max(1, min(most, max((jobs+bands-1)/bands, c.cg*q.size/(2*directFrameMax))))
	switch {
	case jobs < t || bands%t == 0:
	case n >= t:
		n -= n % t
	case bands < t && s.OW >= 2*t*c.f.Cols:
		n = t
	}
	return n
}

// minPartChannels is the least number of output channels for whose sake a frame is made once more.
const minPartChannels = 64

func (a directArgs) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.direct
	// Rows of panels at the end of a frame are read whole.
	sc, frame := borrow(c.cg*q.size + c.f.Cols)
	t, r := tiles.Get().(*simd.Tile), windowPool.Get().(*windowScratch)
	made := -1
	for i := lo; i < hi; i++ {
		part, strip := i%a.parts, i/a.parts
		band := strip / a.strips
		g, n := band/a.bands%s.Groups, band/a.bands/s.Groups
		y0, y1 := portion(band%a.bands, a.bands, s.OH)
		x0, x1 := portion(strip%a.strips, a.strips, (s.OW+c.f.Cols-1)/c.f.Cols)
		x0, x1 = x0*c.f.Cols, min(s.OW, x1*c.f.Cols)
		o0, o1 := portion(part, a.parts, (c.og+c.f.Rows-1)/c.f.Rows)
		if strip != made {
			made = strip
			c.padInput(&r.copies, frame, a.x, n, g, y0, y1, x0, x1)
		}
		c.directLines(t, frame, c.results(a.y, n, g*c.og)[x0:], g, y0, y1, x1-x0, o0*c.f.Rows, min(c.og, o1*c.f.Rows))
	}
	r.give()
	giveTile(t)
	scratch.Put(sc)
}

// padInput writes what the windows of lines y0 to y1 and columns x0 to x1 see of the channels of group g of picture n.
func (c *Conv) padInput(t *simd.Window, frame, x []float32, n, g, y0, y1, x0, x1 int) {
	s, q := c.band(y0, y1), *c.direct.planePlan
	s.PadL -= x0 * s.StrideW
	q.cols = x1 - x0 + q.w - s.OW
	c.padGroup(t, &s, &q, frame, x, n, g, true)
}

// band is a channel whose results are lines y0 to y1, which see no more of it than it has.
func (c *Conv) band(y0, y1 int) ConvShape {
	s := c.s
	s.C, s.PadT, s.OH = 1, s.PadT-y0*s.StrideH, y1-y0
	s.H = min(s.H, max(0, (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1-s.PadT))
	return s
}

// padGroup writes what a band sees of the channels of group g of picture n, and with borders what is beyond them.
func (c *Conv) padGroup(t *simd.Window, band *ConvShape, q *planePlan, frame, x []float32, n, g int, borders bool) {
	f := simd.WindowKernels()
	for ch := range c.cg {
		frame := frame[ch*q.size:][:q.size]
		if borders {
			band.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
		}
		frameFloats(band, q, f, t, frame, c.plane(x, n, g*c.cg+ch))
	}
}

// directLines computes the first so many columns of output channels o0 to o1 of group g in lines y0 to y1, whose frame it is given.
func (c *Conv) directLines(t *simd.Tile, frame, y []float32, g, y0, y1, columns, o0, o1 int) {
	if c.direct.gathered {
		c.directPanels(t, frame, y, g, y0, y1, columns, o0, o1)
		return
	}
	s, q, f, step := &c.s, c.direct, c.f, c.step()
	t.RowC = 4 * step
	for line := y0; line < y1; line++ {
		for k0 := 0; k0 < c.k; k0 += c.pass {
			t.Offs = &q.offs[k0]
			c.rows(t, g, k0, o0, o1, func(o, rows int) {
				for p := 0; p < columns; {
					t.B, t.C = &frame[(line-y0)*q.w+p], &y[o*step+line*s.OW+p]
					p += f.Placed(t, rows, columns-p, false)
				}
			})
		}
	}
}

// directPanels is directLines by way of panels.
func (c *Conv) directPanels(t *simd.Tile, frame, y []float32, g, y0, y1, columns, o0, o1 int) {
	s, q, f := &c.s, c.direct, c.f
	sc, buf := borrow((tileBlock*kBlock + 2) * f.Cols) // as that of planeRooms
	runs := runPool.Get().(*[]simd.Run)
	for line := y0; line < y1; line++ {
		for p := 0; p < columns; p += tileBlock * f.Cols {
			np := min(columns-p, tileBlock*f.Cols)
			spread := func(buf []float32, k0, steps int) {
				for at := 0; at < np; at += f.Cols {
					*runs = append((*runs)[:0], simd.Run{From: int32((line-y0)*q.w + p + at)})
					f.Gather(buf[at*steps:], frame, q.offs[k0:][:steps], *runs)
				}
			}
			c.planeBlock(t, buf, spread, y[o0*c.step()+line*s.OW+p:], c.step(), g, np, o0, o1)
		}
	}
	runPool.Put(runs)
	scratch.Put(sc)
}
