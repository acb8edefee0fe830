package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// intLines is a convolution of 8-bit numbers over [N,H,W,C] in vectors. It reads [N,C,H,W] as well: what it reads
// has to be copied in most cases, and channels go last on the way.
type intLines struct {
	plan   *linePlan
	panels []intPanels // one a group
	planes bool        // the input is [N,C,H,W]
}

// newIntLines plans a convolution; nil without vectors.
func newIntLines(s *ConvShape, cg, og int) *intLines {
	f := simd.IntKernels()
	if f == nil || s.outputs() == 0 || cg == 0 {
		return nil
	}
	// Sums need no blocks: panels of 8-bit weights are short.
	c := &intLines{plan: s.planLines(cg, og, f.Cols, cg*s.KH*s.KW), panels: make([]intPanels, s.Groups)}
	q := &c.plan.passes[0]
	for g := range c.panels {
		c.panels[g] = intPanels{f: f, segs: len(c.plan.passes) * q.segs, seg: q.k}
	}
	return c
}

// intLineArgs is what a piece of the work of intLines needs.
type intLineArgs struct {
	c        *intLines
	s        *ConvShape
	og       int
	x, frame []uint8
	bytes    int // of a value in the frame
	start    []int32
	signed   bool
	zero     int32
	edge     uint8
	first    int // place of the first result of an image
	cut      lineCut
	sink     tileSink
}

// run convolves x.
func (c *intLines) run(p *workers.Pool, s *ConvShape, og int, x []uint8, signed bool, zero int32, sink tileSink) {
	l, w := c.plan, &c.panels[0]
	images := 1
	if !l.frame {
		images = l.images
	}
	scs, fs := borrow(len(c.panels) * len(w.sums))
	start := asInt32(fs)
	// A value has 4/each bytes.
	q := intLineArgs{c: c, s: s, og: og, x: x, bytes: 4 / w.each(), start: start, signed: signed, zero: zero, sink: sink}
	if w.sums != nil {
		q.edge = uint8(w.f.FoursZero(signed, zero))
		for g := range c.panels {
			start8(start[g*len(w.sums):], c.panels[g].sums, w.f.FoursZero(signed, zero))
		}
	}
	q.cut = l.cut(p, s, images, w.segs*w.seg, w.f.Rows, w.f.Rate())
	switch {
	case q.inPlace():
		q.frame = x
		workers.Do(p, q.cut.jobs, 1, q, intLineArgs.blocks)
	case c.near(s) && q.cut.parts == 1:
		workers.Do(p, q.cut.jobs, 1, q, intLineArgs.blocks)
	default:
		q.framed(p)
	}
	scratch.Put(scs)
}

// inPlace tells whether tiles read the input where it is: it needs no other borders, order or sign, and no neighbours after its end.
func (q *intLineArgs) inPlace() bool {
	return !q.c.plan.frame && !q.c.planes && q.bytes == 1 && q.signed == q.c.panels[0].f.Signed && q.c.panels[0].seg%4 == 0
}

// near tells whether blocks copy what they read themselves, so that it is in the cache: positions do not share it.
func (c *intLines) near(s *ConvShape) bool {
	return !c.plan.frame && s.KH == 1 && s.KW == 1 && c.plan.stepC == s.OC
}

// framed convolves a copy of the input.
func (q intLineArgs) framed(p *workers.Pool) {
	l, s, x := q.c.plan, q.s, q.x
	images := 1
	if !l.frame {
		images = s.N
	}
	sc, frame := borrow8(q.room(images * l.imageA))
	defer scratch.Put(sc)
	q.frame = frame
	if !l.frame {
		workers.Do(p, (s.N*s.H*s.W*s.C+copyGrain-1)/copyGrain, 1, q, func(q intLineArgs, lo, hi int) {
			each, all := (copyGrain+q.s.C-1)/q.s.C, q.s.N*q.s.H*q.s.W
			lo, hi = min(lo*each, all), min(hi*each, all)
			q.copy(q.frame[q.bytes*lo*q.s.C:q.bytes*hi*q.s.C], lo, hi-lo)
		})
		workers.Do(p, q.cut.jobs, 1, q, intLineArgs.blocks)
		return
	}
	for n := range s.N {
		q.x, q.first = x[n*s.H*s.W*s.C:][:s.H*s.W*s.C], n*l.imageC
		workers.Do(p, l.h, max(1, copyGrain/(l.w*s.C)), q, func(q intLineArgs, lo, hi int) {
			frameLines(q.s, q.frame, q.bytes, q.c.plan.w, lo, hi, q.edge, q.copy)
		})
		workers.Do(p, q.cut.jobs, 1, q, intLineArgs.blocks)
	}
}

// room is the size of memory for n values. The last piece has the bytes after it for neighbours, whose weight is zero.
func (q *intLineArgs) room(n int) int { return q.bytes*n + 4 }

// copy writes n positions from position at of all images on to where the convolution reads them.
func (q *intLineArgs) copy(dst []uint8, at, n int) {
	c, area := q.s.C, q.s.H*q.s.W
	if !q.c.planes {
		q.put(dst, q.x[at*c:][:n*c])
		return
	}
	for n > 0 {
		img, p := at/area, at%area
		here := min(n, area-p)
		q.turned(dst[:q.bytes*here*c], q.x[img*area*c+p:], area, here)
		dst, at, n = dst[q.bytes*here*c:], at+here, n-here
	}
}

// turned writes n positions of planes that lie area apart.
func (q *intLineArgs) turned(dst, src []uint8, area, n int) {
	c := q.s.C
	if q.bytes == 1 && q.signed == q.c.panels[0].f.Signed {
		turnBytes(dst, c, src, area, n, c)
		return
	}
	sc, room := borrow8(n * c)
	turnBytes(room, c, src, area, n, c)
	q.put(dst, room)
	scratch.Put(sc)
}

// put moves values to where the convolution reads them.
func (q *intLineArgs) put(dst, src []uint8) {
	f := q.c.panels[0].f
	if q.bytes == 1 {
		f.Fours(dst, src, q.signed)
		return
	}
	f.Widen(int16sOf(dst), src, q.signed, int16(q.zero))
}

// blocks computes pieces lo to hi.
func (q intLineArgs) blocks(lo, hi int) {
	for i := lo; i < hi; i++ {
		if n, part, ok := q.cut.at(i); ok {
			q.block(n, part)
		}
	}
}

// lineView is what tiles read: values of which line l0 begins with position p0, and lines are line apart.
type lineView struct {
	x            []uint8
	l0, p0, line int
}

// block computes a piece of image n: all panels for as many positions as stay near.
func (q *intLineArgs) block(n int, part linePart) {
	c, l := q.c, q.c.plan
	t := intTiles.Get().(*simd.IntTile)
	w := &c.panels[part.g]
	t.K, t.RowA, t.RowC = w.pairs(), 4/w.each()*l.stepA, 4*w.f.Cols
	near := roundUp(rowBlock, w.f.Rows)
	piece := min(near, part.p1-part.p0)
	lines := max(1, near/piece)
	room, fs := borrow(lines * piece * w.f.Cols)
	var view lineView
	var copies *[]float32
	seen := (piece-1)*l.stepA + q.s.C // of a line
	if q.frame != nil {
		view = lineView{x: q.frame[q.bytes*n*l.imageA:], line: l.lineA}
	} else {
		copies, view.x = borrow8(q.room(lines * seen))
		view.line = seen
	}
	for l0 := part.l0; l0 < part.l1; l0 += lines {
		for p0 := part.p0; p0 < part.p1; p0 += piece {
			here := linePart{part.g, l0, min(part.l1, l0+lines), p0, min(part.p1, p0+piece), part.n0, part.n1}
			if copies != nil {
				view.l0, view.p0 = l0, p0
				for line := here.l0; line < here.l1; line++ {
					at := (n*l.imageA + line*l.lineA + p0*l.stepA) / q.s.C
					values := (here.p1-p0-1)*l.stepA + q.s.C
					q.copy(view.x[q.bytes*(line-l0)*seen:][:q.bytes*values], at, values/q.s.C)
				}
			}
			q.tiles(t, &view, q.first+n*l.imageC, here, asInt32(fs))
		}
	}
	if copies != nil {
		scratch.Put(copies)
	}
	scratch.Put(room)
	giveIntTile(t)
}

// tiles computes a piece of which the sums of a panel have room in buf; the results of the image begin at place y.
func (q *intLineArgs) tiles(t *simd.IntTile, v *lineView, y int, part linePart, buf []int32) {
	g, p0, p1 := part.g, part.p0, part.p1
	l, w := q.c.plan, &q.c.panels[g]
	f, cg, bytes := w.f, q.s.C/q.s.Groups, q.bytes
	// Whole lines follow one another.
	together := p0 == 0 && p1 == l.count && l.lineC == l.count*l.stepC
	for n := part.n0; n < part.n1; n++ {
		if w.sums != nil {
			t.Start = &q.start[g*len(w.sums)+n*f.Cols]
		}
		ch := g*q.og + n*f.Cols
		cols := min(f.Cols, q.og-n*f.Cols)
		sums := buf
		for line := part.l0; line < part.l1; line++ {
			for at := p0; at < p1; {
				rows := evenly(p1-at, f.Rows)
				t.C = &sums[(at-p0)*f.Cols]
				for i := range l.passes {
					q := &l.passes[i]
					t.Segs, t.SegA = q.segs, bytes*q.seg
					t.A = unsafe.Pointer(&v.x[bytes*((line-v.l0)*v.line+(at-v.p0)*l.stepA+g*cg+q.a)])
					t.B = w.at(n, i*q.segs*w.pairs())
					t.SetContinue(i > 0)
					w.run(t, rows, cols)
				}
				at += rows
			}
			if together {
				sums = sums[(p1-p0)*f.Cols:]
				continue
			}
			q.sink.put(buf, f.Cols, p1-p0, y+line*l.lineC+p0*l.stepC+ch, l.stepC, ch, cols)
		}
		if together {
			q.sink.put(buf, f.Cols, (part.l1-part.l0)*l.count, y+part.l0*l.lineC+ch, l.stepC, ch, cols)
		}
	}
}
