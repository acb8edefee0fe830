package kernel

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions over [N,H,W,C] with SIMD kernels. Neighbouring output positions of a row read the
// input at a constant stride, and a row of taps is contiguous. Tiles read the input in place, or
// a padded copy if windows cross the border.

// pass is a range of the K steps of a convolution: in a patch segs segments of k values from
// offset a, seg apart; in the weights the panel rows from b.
type pass struct{ a, k, segs, seg, b int }

// nhwcPlan holds the parameters of a SIMD convolution over [N,H,W,C].
type nhwcPlan struct {
	frame  bool // the input is copied with padding
	h, w   int  // size of what is read: the padded copy or the input
	passes []pass
	// n rows of count positions. Neighbouring positions are stepA and stepC values apart in input
	// and output; rows are lineA and lineC apart.
	n, count       int
	stepA, stepC   int
	lineA, lineC   int
	imageA, imageC int // distance between images; if images is 1, all images are rows of one
	images, panels int
	turned         bool // rows and columns are exchanged
}

// planNHWC plans for panels of cols columns and passes of at most block steps. cg and og are the
// channels of a group.
func (s *ConvShape) planNHWC(cg, og, cols, block int) *nhwcPlan {
	l := &nhwcPlan{h: s.H, w: s.W, images: s.N, n: s.OH, count: s.OW, stepC: s.OC}
	h, w := (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1, (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1
	if s.PadT != 0 || s.PadL != 0 || h > s.H || w > s.W {
		l.frame, l.h, l.w = true, h, w
	}
	l.stepA, l.lineA, l.lineC = s.StrideW*s.C, s.StrideH*l.w*s.C, s.OW*s.OC
	l.imageA, l.imageC = l.h*l.w*s.C, s.OH*s.OW*s.OC
	apart := s.place != placement{}
	if apart {
		l.stepC, l.lineC, l.imageC = s.place.step, s.place.line, s.place.image
	}
	switch {
	case !apart && s.KH == 1 && s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && !l.frame && s.OH == s.H && s.OW == s.W:
		l.images, l.n, l.count = 1, 1, s.N*s.OH*s.OW
	case s.OW < 4 && s.OH > s.OW:
		// Columns make longer rows.
		l.turned, l.n, l.count = true, l.count, l.n
		l.stepA, l.lineA, l.stepC, l.lineC = l.lineA, l.stepA, l.lineC, l.stepC
	}
	l.panels = (og + cols - 1) / cols
	tapLine := s.KW * cg
	if s.KW > 1 && (s.DilW > 1 || cg != s.C) {
		for ky := range s.KH {
			l.passes = append(l.passes, pass{a: ky * s.DilH * l.w * s.C, k: cg, segs: s.KW, seg: s.DilW * s.C, b: ky * tapLine})
		}
		return l
	}
	lines := max(1, block/tapLine)
	for ky := 0; ky < s.KH; ky += lines {
		for k := 0; k < tapLine; k += block {
			l.passes = append(l.passes, pass{
				a: ky*s.DilH*l.w*s.C + k, k: min(block, tapLine-k), segs: min(lines, s.KH-ky),
				seg: s.DilH * l.w * s.C, b: ky*tapLine + k,
			})
		}
	}
	return l
}

// runNHWC convolves x into y.
func (c *Conv) runNHWC(p *workers.Pool, x, y []float32) {
	l, s := c.lines, &c.s
	if !l.frame {
		c.lineImages(p, x, y, l.images)
		return
	}
	sc, frame := borrow(l.imageA)
	for n := range s.N {
		in := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
		workers.Do(p, l.h, max(1, copyGrain/(l.w*s.C)), frameArgs{s, frame, in, l.w}, func(q frameArgs, lo, hi int) {
			frameLines(q.s, q.frame, 1, q.w, q.w, lo, hi, 0, q.copy)
		})
		c.lineImages(p, frame, y[n*l.imageC:], 1)
	}
	scratch.Put(sc)
}

// frameArgs holds the arguments of a work item that pads the input.
type frameArgs struct {
	s         *ConvShape
	frame, in []float32
	w         int
}

// copyGrain is the minimum number of values per copy work item: a thread copies about four
// float32 values per nanosecond, or converts as many 8-bit values.
var copyGrain = workers.Grain(4)

// copy writes n positions from position at.
func (q *frameArgs) copy(dst []float32, at, n int) { copy(dst, q.in[at*q.s.C:][:n*q.s.C]) }

// frameLines copies rows lo to hi of an image with padding. Rows are w positions long and apart
// positions apart. put writes n positions from position at; a value takes size elements in the
// copy. edge fills the padding. Negative padding crops the input.
func frameLines[T float32 | uint8](s *ConvShape, frame []T, size, apart, w, lo, hi int, edge T, put func(dst []T, at, n int)) {
	step := size * s.C
	for y := lo; y < hi; y++ {
		line := frame[y*apart*step:][:w*step]
		iy := y - s.PadT
		if uint(iy) >= uint(s.H) {
			fill(line, edge)
			continue
		}
		left := min(max(s.PadL, 0), w)
		right := max(min(w, s.PadL+s.W), left)
		fill(line[:left*step], edge)
		if left < right {
			put(line[left*step:right*step], iy*s.W+max(-s.PadL, 0), right-left)
		}
		fill(line[right*step:], edge)
	}
}

// lineImages convolves images that include their padding.
func (c *Conv) lineImages(p *workers.Pool, x, y []float32, images int) {
	if c.sparse != nil {
		c.sparseImages(p, x, y, images)
		return
	}
	cut := c.lines.cut(p, &c.s, images, c.k, c.f.Rows, c.f.Rate()/2)
	workers.Do(p, cut.jobs, 1, lineArgs{c, x, y, cut}, func(q lineArgs, lo, hi int) {
		t := tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			n, part := q.cut.at(i)
			q.c.lineBlock(t, q.x[n*q.c.lines.imageA:], q.y[n*q.c.lines.imageC:], part)
		}
		releaseTile(t)
	})
}

// lineArgs holds the arguments of a work item over [N,H,W,C].
type lineArgs struct {
	c    *Conv
	x, y []float32
	cut  lineCut
}

// sparseImages is lineImages with sparse weights.
func (c *Conv) sparseImages(p *workers.Pool, x, y []float32, images int) {
	l := c.lines
	for n := range images {
		for g, s := range c.sparse {
			bias := c.bias
			if bias != nil {
				bias = bias[g*c.og:]
			}
			s.run(p, sparseLines{
				lines: l.n, count: l.count, stepA: l.stepA, lineA: l.lineA, stepC: l.stepC, lineC: l.lineC,
				passes: l.passes, bias: bias, act: c.act, exact: true,
			}, x[n*l.imageA+g*c.cg:], y[n*l.imageC+g*c.og:])
		}
	}
}

// lineCut describes how the work is split: into blocks of rows, of positions if there are few
// rows, and of panels if there are few of both.
type lineCut struct {
	jobs                          int // work items
	l                             *nhwcPlan
	groups, blocks, pieces, parts int
	rows                          int // positions computed together
}

// linePart is a work item: rows l0 to l1, positions p0 to p1 and panels n0 to n1 of group g.
type linePart struct{ g, l0, l1, p0, p1, n0, n1 int }

// cut splits the work; k is the length of a patch, rows the height of a tile.
func (l *nhwcPlan) cut(p *workers.Pool, s *ConvShape, images, k, rows int, rate float64) lineCut {
	const floatSum = 8 // multiplications that take as long as starting and storing a sum
	jobs := jobCount(p, images*l.n*l.count*s.OC*(k+floatSum), rate)
	// Join rows until there are enough positions for a block, or split them if there are too few
	// rows.
	q := lineCut{l: l, groups: s.Groups, rows: rows}
	together := max(1, rowBlock/l.count)
	if jobs > 1 {
		together = max(1, min(together, images*l.n*s.Groups/jobs))
	}
	q.blocks = (l.n + together - 1) / together
	jobs = max(1, jobs/(images*s.Groups*q.blocks))
	q.pieces = min(jobs, (l.count+rows-1)/rows)
	if q.pieces < jobs {
		q.pieces = 1
	}
	q.parts = min(jobs/q.pieces, l.panels)
	q.jobs = images * s.Groups * q.blocks * q.pieces * q.parts
	return q
}

// at returns image n and the part of work item i.
func (q *lineCut) at(i int) (n int, part linePart) {
	l := q.l
	part.n0, part.n1 = portion(i%q.parts, q.parts, l.panels)
	i /= q.parts
	part.p0, part.p1 = portion(i%q.pieces, q.pieces, (l.count+q.rows-1)/q.rows)
	part.p0, part.p1 = part.p0*q.rows, min(l.count, part.p1*q.rows)
	i /= q.pieces
	part.l0, part.l1 = portion(i%q.blocks, q.blocks, l.n)
	i /= q.blocks
	part.g = i % q.groups
	return i / q.groups, part
}

// lineBlock computes a work item: all panels for as many positions of a row as stay in the cache.
func (c *Conv) lineBlock(t *simd.Tile, x, y []float32, part linePart) {
	p1, near := part.p1, roundUp(rowBlock, c.f.Rows)
	for ; part.p0 < p1; part.p0 = part.p1 {
		part.p1 = min(p1, part.p0+near)
		c.lineTiles(t, x, y, part)
	}
}

func (c *Conv) lineTiles(t *simd.Tile, x, y []float32, part linePart) {
	l, f, g := c.lines, c.f, part.g
	per := l.panels * f.Cols * c.k
	w := c.weights[g*per:][:per]
	tiles := (part.l1 - part.l0) * ((part.p1 - part.p0 + f.Rows - 1) / f.Rows)
	piece := func(n, pass int) []float32 {
		q := &l.passes[pass]
		return w[(n*c.k+q.b)*f.Cols:][:q.k*q.segs*f.Cols]
	}
	t.StepA, t.RowA, t.RowC, t.StepB = 4, 4*l.stepA, 4*l.stepC, 4*f.Cols
	for i := range l.passes {
		q := &l.passes[i]
		t.K, t.Segs, t.SegA = q.k, q.segs, 4*q.seg
		setStart(t, true, false, i == 0)
		last := i == len(l.passes)-1
		setClamp(t, c.act, last)
		for n := part.n0; n < part.n1; n++ {
			o := n * f.Cols
			width := min(f.Cols, c.og-o)
			t.B = &piece(n, i)[0]
			var next prefetch
			switch step := min(4*cacheLine, (4*f.Cols+tiles-1)/tiles); {
			case n+1 < part.n1:
				next = prefetchOf(piece(n+1, i), step)
			case !last:
				next = prefetchOf(piece(part.n0, i+1), step)
			}
			t.BiasN = nil
			if last && c.bias != nil {
				t.BiasN = &c.bias[g*c.og+o]
			}
			for line := part.l0; line < part.l1; line++ {
				for at := part.p0; at < part.p1; {
					rows := simd.Evenly(part.p1-at, f.Rows)
					t.A = &x[line*l.lineA+at*l.stepA+g*c.cg+q.a]
					t.C = &y[line*l.lineC+at*l.stepC+g*c.og+o]
					next.fetch(t)
					f.Run(t, rows, width, true)
					at += rows
				}
			}
		}
	}
}
