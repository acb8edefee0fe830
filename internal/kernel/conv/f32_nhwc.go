package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions over [N,H,W,C] with SIMD kernels. Neighbouring output positions of a row read the
// input at a constant stride, and a row of taps is contiguous. Tiles read the input in place, or
// a padded copy if windows cross the border.

// nhwcPlan holds the parameters of a SIMD convolution over [N,H,W,C].
type nhwcPlan struct {
	frame  bool // the input is copied with padding
	h, w   int  // size of what is read: the padded copy or the input
	passes []gemm.Pass
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
func (s *Shape) planNHWC(cg, og, cols, block int) *nhwcPlan {
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
			l.passes = append(l.passes, gemm.Pass{A: ky * s.DilH * l.w * s.C, K: cg, Segs: s.KW, Seg: s.DilW * s.C, B: ky * tapLine})
		}
		return l
	}
	lines := max(1, block/tapLine)
	for ky := 0; ky < s.KH; ky += lines {
		for k := 0; k < tapLine; k += block {
			l.passes = append(l.passes, gemm.Pass{
				A: ky*s.DilH*l.w*s.C + k, K: min(block, tapLine-k), Segs: min(lines, s.KH-ky),
				Seg: s.DilH * l.w * s.C, B: ky*tapLine + k,
			})
		}
	}
	return l
}

// eachPadded returns a runner that calls run with images that include their padding.
func eachPadded(run func(c *Float32, p *workers.Pool, x, y []float32, images int)) runner {
	return func(c *Float32, p *workers.Pool, x, y []float32) {
		l, s := c.lines, &c.s
		if !l.frame {
			run(c, p, x, y, l.images)
			return
		}
		sc, frame := scratch.Borrow(l.imageA)
		for n := range s.N {
			in := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
			workers.Do(p, l.h, max(1, scratch.CopyGrain/(l.w*s.C)), frameArgs{s, frame, in, l.w}, func(q frameArgs, lo, hi int) {
				frameLines(q.s, q.frame, 1, q.w, q.w, lo, hi, 0, q.copy)
			})
			run(c, p, frame, y[n*l.imageC:], 1)
		}
		scratch.Float32s.Put(sc)
	}
}

// frameArgs holds the arguments of a work item that pads the input.
type frameArgs struct {
	s         *Shape
	frame, in []float32
	w         int
}

// copy writes n positions from position at.
func (q *frameArgs) copy(dst []float32, at, n int) { copy(dst, q.in[at*q.s.C:][:n*q.s.C]) }

// frameLines copies rows lo to hi of an image with padding. Rows are w positions long and apart
// positions apart. put writes n positions from position at; a value takes size elements in the
// copy. edge fills the padding. Negative padding crops the input.
func frameLines[T float32 | uint8](s *Shape, frame []T, size, apart, w, lo, hi int, edge T, put func(dst []T, at, n int)) {
	step := size * s.C
	for y := lo; y < hi; y++ {
		line := frame[y*apart*step:][:w*step]
		iy := y - s.PadT
		if uint(iy) >= uint(s.H) {
			scratch.Fill(line, edge)
			continue
		}
		left := min(max(s.PadL, 0), w)
		right := max(min(w, s.PadL+s.W), left)
		scratch.Fill(line[:left*step], edge)
		if left < right {
			put(line[left*step:right*step], iy*s.W+max(-s.PadL, 0), right-left)
		}
		scratch.Fill(line[right*step:], edge)
	}
}

// lineImages convolves images that include their padding.
func (c *Float32) lineImages(p *workers.Pool, x, y []float32, images int) {
	cut := c.lines.cut(p, &c.s, images, c.k, c.f.Rows, c.f.Rate()/2)
	workers.Do(p, cut.jobs, 1, lineArgs{c, x, y, cut}, func(q lineArgs, lo, hi int) {
		t := gemm.Tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			n, part := q.cut.at(i)
			q.c.lineBlock(t, q.x[n*q.c.lines.imageA:], q.y[n*q.c.lines.imageC:], part)
		}
		gemm.ReleaseTile(t)
	})
}

// lineArgs holds the arguments of a work item over [N,H,W,C].
type lineArgs struct {
	c    *Float32
	x, y []float32
	cut  lineCut
}

// sparseImages is lineImages with sparse weights.
func (c *Float32) sparseImages(p *workers.Pool, x, y []float32, images int) {
	l := c.lines
	for n := range images {
		for g, s := range c.sparse {
			bias := c.bias
			if bias != nil {
				bias = bias[g*c.og:]
			}
			s.Run(p, gemm.SparseLines{
				Lines: l.n, Count: l.count, StepA: l.stepA, LineA: l.lineA, StepC: l.stepC, LineC: l.lineC,
				Passes: l.passes, Bias: bias, Act: c.act, Exact: true,
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
func (l *nhwcPlan) cut(p *workers.Pool, s *Shape, images, k, rows int, rate float64) lineCut {
	const floatSum = 8 // multiplications that take as long as starting and storing a sum
	jobs := gemm.JobCount(p, images*l.n*l.count*s.OC*(k+floatSum), rate)
	// Join rows until there are enough positions for a block, or split them if there are too few
	// rows.
	q := lineCut{l: l, groups: s.Groups, rows: rows}
	together := max(1, gemm.RowBlock/l.count)
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
	part.n0, part.n1 = gemm.Portion(i%q.parts, q.parts, l.panels)
	i /= q.parts
	part.p0, part.p1 = gemm.Portion(i%q.pieces, q.pieces, (l.count+q.rows-1)/q.rows)
	part.p0, part.p1 = part.p0*q.rows, min(l.count, part.p1*q.rows)
	i /= q.pieces
	part.l0, part.l1 = gemm.Portion(i%q.blocks, q.blocks, l.n)
	i /= q.blocks
	part.g = i % q.groups
	return i / q.groups, part
}

// lineBlock computes a work item: all panels for as many positions of a row as stay in the cache.
func (c *Float32) lineBlock(t *simd.Tile, x, y []float32, part linePart) {
	p1, near := part.p1, scratch.RoundUp(gemm.RowBlock, c.f.Rows)
	for ; part.p0 < p1; part.p0 = part.p1 {
		part.p1 = min(p1, part.p0+near)
		c.lineTiles(t, x, y, part)
	}
}

func (c *Float32) lineTiles(t *simd.Tile, x, y []float32, part linePart) {
	l, f, g := c.lines, c.f, part.g
	per := l.panels * f.Cols * c.k
	w := c.weights[g*per:][:per]
	tiles := (part.l1 - part.l0) * ((part.p1 - part.p0 + f.Rows - 1) / f.Rows)
	piece := func(n, pass int) []float32 {
		q := &l.passes[pass]
		return w[(n*c.k+q.B)*f.Cols:][:q.K*q.Segs*f.Cols]
	}
	t.StepA, t.RowA, t.RowC, t.StepB = 4, 4*l.stepA, 4*l.stepC, 4*f.Cols
	for i := range l.passes {
		q := &l.passes[i]
		t.K, t.Segs, t.SegA = q.K, q.Segs, 4*q.Seg
		gemm.SetStart(t, true, false, i == 0)
		last := i == len(l.passes)-1
		gemm.SetClamp(t, c.act, last)
		for n := part.n0; n < part.n1; n++ {
			o := n * f.Cols
			width := min(f.Cols, c.og-o)
			t.B = &piece(n, i)[0]
			var next gemm.Prefetch
			switch step := min(4*cacheLine, (4*f.Cols+tiles-1)/tiles); {
			case n+1 < part.n1:
				next = gemm.PrefetchOf(piece(n+1, i), step)
			case !last:
				next = gemm.PrefetchOf(piece(part.n0, i+1), step)
			}
			t.BiasN = nil
			if last && c.bias != nil {
				t.BiasN = &c.bias[g*c.og+o]
			}
			for line := part.l0; line < part.l1; line++ {
				for at := part.p0; at < part.p1; {
					rows, tiles := f.Split(t, part.p1-at)
					t.A = &x[line*l.lineA+at*l.stepA+g*c.cg+q.A]
					t.C = &y[line*l.lineC+at*l.stepC+g*c.og+o]
					next.Fetch(t, tiles)
					f.RunTiles(t, rows, tiles, width, true)
					at += rows * tiles
				}
			}
		}
	}
}
