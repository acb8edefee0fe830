package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Direct convolution over [N,C,H,W] without im2col panels, for rows that fill panels. The input
// values of one tap for neighbouring output positions are contiguous in a padded input copy,
// which is split by stride phase if the stride is above one; tiles read them there. A thread
// makes the padded copy of some rows of all channels, which fits the L2 cache, and computes these
// rows.

// directPlan holds the parameters of a direct convolution.
type directPlan struct {
	*NCHWPlan      // of the padded copy of a group for some output rows
	lines     int  // output rows computed together
	gathered  bool // panels are gathered from the padded copy before multiplying
}

// directFrameMax bounds the padded copy of a group, in values: half of a typical L2 cache.
const directFrameMax = 1 << 17

// planDirect returns false if the direct algorithm is not faster: if rows end within panels so that
// more is lost there than gathering costs. The more channels use a panel, the less gathering
// costs.
func (c *Float32) planDirect() bool {
	s := &c.s
	if !c.usesPlanes() || c.groupedDirect != nil || !c.f.HasIndirect() || s.KH*s.KW == 1 {
		return false
	}
	if columnCost(c.f, s.OW) > (1.04+4/float64(c.og))*float64(s.OW) {
		return false
	}
	band, all := *s, c.planes
	more := all.h - s.OH
	band.OH = min(s.OH, max(2*more, 4, directFrameMax/(c.cg*len(all.phasesY)*len(all.phasesX)*all.w)-more))
	q := band.planFramesApart(c.cg, true)
	if q == nil || c.cg*q.Size > 1<<30 {
		return false
	}
	c.direct = &directPlan{q, band.OH, c.gathersPanels(q)}
	return true
}

// gathersPanels reports whether panels are gathered from the padded copy q before the weights
// pass. Gathering takes a few percent of the multiplication time. If the K steps of a panel lie
// in more pages than the TLB holds, as with long rows, reading in place costs a Xeon 20 %; half
// as many pages, 5 %.
func (c *Float32) gathersPanels(q *NCHWPlan) bool {
	s := &c.s
	pages := gemm.KBlock / (s.KH * s.KW) * min(s.KH*len(q.phasesX), 4*q.Size/gemm.SameLines)
	return simd.Current() == simd.AMX && c.og >= copyChannels && c.k >= gemm.KBlock && pages >= 32
}

// columnCost returns the number of columns of whole panels that take as long as n adjacent output
// values.
func columnCost(f *simd.Floats, n int) float64 {
	cost := float64(n / f.Cols * f.Cols)
	if rest := n % f.Cols; rest > 0 {
		// Narrower tiles read as many weights.
		cost += min(1.2*float64(f.Taken(rest)), float64(f.Cols))
	}
	return cost
}

// directArgs holds the arguments of a work item of runDirect.
type directArgs struct {
	c    *Float32
	x, y []float32
	// row bands of an image, column strips of a band, channel parts of a group
	bands, strips, parts int
}

// runDirect convolves x into y.
func (c *Float32) runDirect(p *workers.Pool, x, y []float32) {
	s, q := &c.s, c.direct
	a := directArgs{c: c, x: x, y: y, parts: 1}
	lines, all, t := q.lines, s.N*s.Groups, p.Threads()
	jobs := gemm.JobCount(p, s.N*s.OC*c.k*s.OH*s.OW, c.f.Rate())
	if jobs > all {
		// Keep the overlap between bands small.
		lines = min(lines, max((s.OH*all+jobs-1)/jobs, 2*(q.h-q.lines), 1))
	}
	a.bands = (s.OH + lines - 1) / lines
	if jobs > 1 && a.bands > 1 && all%t > 0 {
		a.bands = min(scratch.RoundUp(a.bands, t), s.OH) // the same number for each thread
	}
	a.strips = c.directStrips(all*a.bands, jobs, t)
	if whole := all * a.bands * a.strips; whole < jobs {
		a.parts = max(1, min((jobs+whole-1)/whole, c.og/minPartChannels))
	}
	workers.Do(p, all*a.bands*a.strips*a.parts, 1, a, directArgs.pieces)
}

// directStrips returns the number of column strips of a band for t threads. It is as large as the
// number of work items or the cache needs, while the overlap between strips stays small. One
// strip per thread may overlap more: copying is cheap.
func (c *Float32) directStrips(bands, jobs, t int) int {
	s, q := &c.s, c.direct
	most := s.OW / max(4*c.f.Cols, 4*(s.KW-1)*s.DilW)
	n := max(1, min(most, max((jobs+bands-1)/bands, c.cg*q.Size/(2*directFrameMax))))
	switch {
	case jobs < t || bands%t == 0:
	case n >= t:
		n -= n % t
	case bands < t && s.OW >= 2*t*c.f.Cols:
		n = t
	}
	return n
}

// minPartChannels is the minimum number of output channels that justifies another padded copy.
const minPartChannels = 64

func (a directArgs) pieces(lo, hi int) {
	c := a.c
	s, q := &c.s, c.direct
	// Tiles read whole panel rows at the end of the copy.
	sc, frame := scratch.Borrow(c.cg*q.Size + c.f.Cols)
	t, r := gemm.Tiles.Get().(*simd.Tile), windowPool.Get().(*windowScratch)
	made := -1
	for i := lo; i < hi; i++ {
		part, strip := i%a.parts, i/a.parts
		band := strip / a.strips
		g, n := band/a.bands%s.Groups, band/a.bands/s.Groups
		y0, y1 := gemm.Portion(band%a.bands, a.bands, s.OH)
		x0, x1 := gemm.Portion(strip%a.strips, a.strips, (s.OW+c.f.Cols-1)/c.f.Cols)
		x0, x1 = x0*c.f.Cols, min(s.OW, x1*c.f.Cols)
		o0, o1 := gemm.Portion(part, a.parts, (c.og+c.f.Rows-1)/c.f.Rows)
		if strip != made {
			made = strip
			c.padInput(&r.copies, frame, a.x, n, g, y0, y1, x0, x1)
		}
		c.directLines(t, frame, c.results(a.y, n, g*c.og)[x0:], g, y0, y1, x1-x0, o0*c.f.Rows, min(c.og, o1*c.f.Rows))
	}
	r.give()
	gemm.ReleaseTile(t)
	scratch.Float32s.Put(sc)
}

// padInput writes the padded input of output rows y0 to y1 and columns x0 to x1, for the channels
// of group g of image n.
func (c *Float32) padInput(t *simd.Window, frame, x []float32, n, g, y0, y1, x0, x1 int) {
	s, q := c.band(y0, y1), *c.direct.NCHWPlan
	s.PadL -= x0 * s.StrideW
	q.cols = x1 - x0 + q.w - s.OW
	c.padGroup(t, &s, &q, frame, x, n, g, true)
}

// band returns the shape of output rows y0 to y1 of a channel, limited to the input rows that
// exist.
func (c *Float32) band(y0, y1 int) Shape {
	s := c.s
	s.C, s.PadT, s.OH = 1, s.PadT-y0*s.StrideH, y1-y0
	s.H = min(s.H, max(0, (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1-s.PadT))
	return s
}

// padGroup writes the padded input of a band for the channels of group g of image n; with borders
// it also fills the padding.
func (c *Float32) padGroup(t *simd.Window, band *Shape, q *NCHWPlan, frame, x []float32, n, g int, borders bool) {
	f := simd.WindowKernels()
	for ch := range c.cg {
		frame := frame[ch*q.Size:][:q.Size]
		if borders {
			band.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
		}
		frameFloats(band, q, f, t, frame, c.plane(x, n, g*c.cg+ch))
	}
}

// directLines computes the given number of columns of output channels o0 to o1 of group g in rows
// y0 to y1 from their padded input.
func (c *Float32) directLines(t *simd.Tile, frame, y []float32, g, y0, y1, columns, o0, o1 int) {
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
					p += f.RunIndirect(t, rows, columns-p, false)
				}
			})
		}
	}
}

// directPanels is directLines with gathered panels.
func (c *Float32) directPanels(t *simd.Tile, frame, y []float32, g, y0, y1, columns, o0, o1 int) {
	s, q, f := &c.s, c.direct, c.f
	sc, buf := scratch.Borrow((gemm.TileBlock*gemm.KBlock + 2) * f.Cols) // as panelScratch
	runs := runPool.Get().(*[]simd.Run)
	for line := y0; line < y1; line++ {
		for p := 0; p < columns; p += gemm.TileBlock * f.Cols {
			np := min(columns-p, gemm.TileBlock*f.Cols)
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
	scratch.Float32s.Put(sc)
}
