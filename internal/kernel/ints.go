package kernel

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Products of 8-bit numbers in vectors: activations are widened to 16 bits, as
// differences to their zero point, so that borders are zeros and no sum has to be
// corrected; neighbours along the sum are multiplied in pairs. A piece of odd length
// has a pair with a weight of zero. Where the set multiplies fours of 8 bits and weights have no more,
// activations stay as they are, moved to numbers without a sign, or with one where the set wants that; borders are the zero point, and sums
// begin with what it is too much.

var intTiles = sync.Pool{New: func() any { return new(simd.IntTile) }}

// giveIntTile forgets the matrices that a tile points to.
func giveIntTile(t *simd.IntTile) {
	*t = simd.IntTile{}
	intTiles.Put(t)
}

// intPanels are weights for the kernels in vectors: panels of columns, in each for every
// pair, or four, of steps the weights of all columns.
type intPanels struct {
	f         *simd.Ints
	segs, seg int  // pieces of the sum and their length
	fours     bool // wanted where possible
	narrow    []int8
	wide      []int16 // in place of narrow where a weight has more than 8 bits
	sums      []int32 // of the weights of each column, where there are fours
}

// each is the number of steps that are multiplied together.
func (w *intPanels) each() int {
	if w.sums != nil {
		return 4
	}
	return 2
}

// pairs is the number of pairs, or of fours, of a piece.
func (w *intPanels) pairs() int { return (w.seg + w.each() - 1) / w.each() }

// start8 is what sums of fours begin with: the zero point of activations without a sign times the sums
// of weights.
func start8(dst, sums []int32, zero int32) {
	dst, by := dst[:len(sums)], -zero
	for i, v := range sums {
		dst[i] = by * v
	}
}

// zero8 is a zero point of numbers without a sign: those with one get 128 added.
func zero8(signed bool, zero int32) int32 {
	if signed {
		return zero + 128
	}
	return zero
}

// at is the place of a panel's row of pairs or fours.
func (w *intPanels) at(panel, row int) unsafe.Pointer {
	i := (panel*w.segs*w.pairs() + row) * w.f.Cols * w.each()
	if w.narrow != nil {
		return unsafe.Pointer(&w.narrow[i])
	}
	return unsafe.Pointer(&w.wide[i])
}

// run computes rows rows of a tile, of which cols columns at least are wanted.
func (w *intPanels) run(t *simd.IntTile, rows, cols int) {
	if w.sums != nil {
		w.f.RunQuads(t, rows, cols)
		return
	}
	w.f.Run(t, rows, w.wide != nil)
}

// asInt16 reads scratch memory as 16-bit integers.
func asInt16(f []float32) []int16 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&f[0])), 2*len(f))
}

// asBytes reads scratch memory as bytes.
func asBytes(f []float32) []uint8 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&f[0])), 4*len(f))
}

// borrow16 is room for n 16-bit integers.
func borrow16(n int) (*[]float32, []int16) {
	s, f := borrow(n/2 + 1)
	return s, asInt16(f)[:n]
}

// borrow8 is room for n bytes.
func borrow8(n int) (*[]float32, []uint8) {
	s, f := borrow(n/4 + 1)
	return s, asBytes(f)[:n]
}

// gemmInts is GemmQ in vectors.
func gemmInts(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, y []int32) {
	if w.panels.sums != nil {
		gemmFours(p, m, x, tables, w, y)
		return
	}
	f, k := w.panels.f, w.k
	line := 2 * w.panels.pairs()
	sc, a := borrow16(m * line)
	workers.Do(p, m, max(1, copyGrain/k), widenArgs{f, a, x, tables, k, line}, func(q widenArgs, lo, hi int) {
		k, line := q.k, q.line
		if line == k && len(q.tables) == 1 {
			// All rows are one piece.
			q.f.Widen(q.a[lo*k:hi*k], q.x[lo*k:hi*k], q.tables[0].signed, int16(q.tables[0].zero))
			return
		}
		for r := lo; r < hi; r++ {
			t := &q.tables[min(r, len(q.tables)-1)]
			q.f.Widen(q.a[r*line:][:k], q.x[r*k:][:k], t.signed, int16(t.zero))
			clear(q.a[r*line+k : (r+1)*line])
		}
	})
	w.product(p, m, bytesOf16(a), 2*line, nil, y)
	scratch.Put(sc)
}

// widenArgs is what a piece of widening rows needs.
type widenArgs struct {
	f       *simd.Ints
	a       []int16
	x       []uint8
	tables  []ByteTable
	k, line int
}

// int16sOf reads bytes as 16-bit integers; they begin at an even address.
func int16sOf(v []uint8) []int16 {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&v[0])), len(v)/2)
}

// bytesOf16 are the bytes of 16-bit integers.
func bytesOf16(v []int16) []uint8 { return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 2*len(v)) }

// gemmFours is gemmInts with fours of 8-bit numbers.
func gemmFours(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, y []int32) {
	f, k, sums := w.panels.f, w.k, w.panels.sums
	line, signed := 4*w.panels.pairs(), tables[0].signed
	start := w.start
	if zero := f.FoursZero(signed, tables[0].zero); start == nil || len(tables) > 1 || zero != w.zero {
		sc, room := borrow(len(sums))
		defer scratch.Put(sc)
		if start = asInt32(room); len(tables) > 1 {
			zero = 0 // that of each row comes below
		}
		start8(start, sums, zero)
	}
	a := x
	if signed != f.Signed || line != k {
		var sc *[]float32
		sc, a = borrow8(m * line)
		defer scratch.Put(sc)
		workers.Do(p, m, max(1, 2*copyGrain/k), turnArgs{f, a, x, k, line, signed}, func(q turnArgs, lo, hi int) {
			for r := lo; r < hi; r++ {
				q.f.Fours(q.a[r*q.line:][:q.k], q.x[r*q.k:][:q.k], q.signed)
				clear(q.a[r*q.line+q.k : (r+1)*q.line])
			}
		})
	}
	w.product(p, m, a, line, start, y)
	if len(tables) > 1 {
		for r := range m {
			z, row := f.FoursZero(signed, tables[r].zero), y[r*w.n:][:w.n]
			for i := range row {
				row[i] -= z * sums[i]
			}
		}
	}
}

// turnArgs is what a piece of moving rows to fours needs.
type turnArgs struct {
	f       *simd.Ints
	a, x    []uint8
	k, line int
	signed  bool
}

// Vectors tells whether kernels in vectors compute the product.
func (p *PackedQ) Vectors() bool { return p.panels != nil }

// product multiplies m rows, line bytes apart, by all panels: of 16-bit numbers, or of 8-bit ones
// with what their sums begin with.
func (p *PackedQ) product(pool *workers.Pool, m int, a []uint8, line int, start, y []int32) {
	f, k := p.panels.f, p.k
	panels := (p.n + f.Cols - 1) / f.Cols
	jobs := jobsOf(pool, m*p.n*k, f.Rate())
	// The rows of a job and a panel stay in the second-level cache.
	rows := min(m, max(f.Rows, 2*packBlock/line/f.Rows*f.Rows))
	if jobs > 1 {
		rows = min(rows, roundUp((m+jobs-1)/jobs, f.Rows))
	}
	blocks := (m + rows - 1) / rows
	parts := min(max(1, jobs/blocks), panels)
	step := (panels + parts - 1) / parts
	workers.Do(pool, blocks*parts, 1, intArgs{p, a, y, start, m, line, rows, parts, step}, func(q intArgs, lo, hi int) { q.part(lo, hi) })
}

// intArgs is what a piece of a product of 8-bit numbers needs.
type intArgs struct {
	p                          *PackedQ
	a                          []uint8
	y, start                   []int32
	m, line, rows, parts, step int
}

// part computes pieces lo to hi.
func (q *intArgs) part(lo, hi int) {
	p, a, y, start, m, line, rows, parts, step := q.p, q.a, q.y, q.start, q.m, q.line, q.rows, q.parts, q.step
	f, panels := p.panels.f, (p.n+p.panels.f.Cols-1)/p.panels.f.Cols
	t := intTiles.Get().(*simd.IntTile)
	var room *[]float32
	var buf []int32 // of a last panel that is not whole
	if p.n%f.Cols != 0 {
		var fs []float32
		room, fs = borrow(f.Rows * f.Cols)
		buf = asInt32(fs)
	}
	t.K, t.Segs, t.RowA = p.panels.pairs(), 1, line
	for i := lo; i < hi; i++ {
		m0, n0 := i/parts*rows, i%parts*step
		m1, n1 := min(m0+rows, m), min(n0+step, panels)
		if m == 1 && start != nil {
			n0 = q.row(t, n0, n1)
		}
		for n := n0; n < n1; n++ {
			width := min(f.Cols, p.n-n*f.Cols)
			t.B = p.panels.at(n, 0)
			if start != nil {
				t.Start = &start[n*f.Cols]
			}
			for r := m0; r < m1; {
				h := evenly(m1-r, f.Rows)
				t.A = unsafe.Pointer(&a[r*line])
				out := y[r*p.n+n*f.Cols:]
				if width == f.Cols {
					t.C, t.RowC = &out[0], 4*p.n
					p.panels.run(t, h, width)
				} else {
					t.C, t.RowC = &buf[0], 4*f.Cols
					p.panels.run(t, h, width)
					for j := range h {
						copy(out[j*p.n:][:width], buf[j*f.Cols:])
					}
				}
				r += h
			}
		}
	}
	if room != nil {
		scratch.Put(room)
	}
	giveIntTile(t)
}

// row computes a single row, several whole panels at a time; it returns the first panel that is left.
func (q *intArgs) row(t *simd.IntTile, n0, n1 int) int {
	p := q.p
	t.A, t.PanelB = unsafe.Pointer(&q.a[0]), 4*p.panels.pairs()*p.panels.f.Cols
	for ; p.panels.f.HasWideQuads() && n0+simd.WidePanels <= n1 && (n0+simd.WidePanels)*p.panels.f.Cols <= p.n; n0 += simd.WidePanels {
		t.B, t.C, t.Start = p.panels.at(n0, 0), &q.y[n0*p.panels.f.Cols], &q.start[n0*p.panels.f.Cols]
		p.panels.f.WideQuads(t)
	}
	return n0
}

// intLines is a convolution of 8-bit numbers over [N,H,W,C] in vectors.
type intLines struct {
	plan   *linePlan
	panels []intPanels // one a group
	start  []int32     // what sums of fours begin with, for the zero point of the last run; empty before the first with these weights
	zero   int32       // that zero point, as fours have it
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

// tileSink takes the sums of a convolution over [N,H,W,C]: they are kept, if there is room
// for them, or quantised.
type tileSink struct {
	sums []int32
	f    *simd.Ints
	y    []uint8
	q    *Requant
}

// put takes n channels from channel ch on of rows rows of sums, which lie line apart. They
// belong to place at, and step further for each row.
func (k *tileSink) put(sums []int32, line, rows, at, step, ch, n int) {
	if k.sums == nil {
		requantTile(k.f, k.y, sums, line, rows, at, step, ch, n, k.q)
		return
	}
	for r := range rows {
		copy(k.sums[at+r*step:][:n], sums[r*line:])
	}
}

// intLineArgs is what a piece of the work of intLines needs.
type intLineArgs struct {
	c        *intLines
	s        *ConvShape
	og       int
	x, frame []uint8
	bytes    int // of a value in the frame
	source   lineSource
	signed   bool
	zero     int32
	edge     uint8
	first    int // place of the first result of an image
	cut      lineCut
	sink     tileSink
}

// lineSource is where a convolution over [N,H,W,C] reads its input.
type lineSource uint8

const (
	fromFrame  lineSource = iota // a copy of all of it, with its borders
	fromPieces                   // copies of the positions that are computed next
	fromInput                    // where it lies
)

// source is how an input is read that has no borders. Positions that lie one behind the other and are read once need no copy of all.
func (c *intLines) source(s *ConvShape, signed bool) lineSource {
	w := &c.panels[0]
	switch l := c.plan; {
	case l.frame || l.n*l.images > 1 || s.Groups > 1 || s.KH*s.KW > 1 || l.stepA != s.C:
		return fromFrame
	case w.sums != nil && signed == w.f.Signed && w.seg%w.each() == 0:
		return fromInput
	}
	return fromPieces
}

// run convolves x.
func (c *intLines) run(p *workers.Pool, s *ConvShape, og int, x []uint8, signed bool, zero int32, sink tileSink) {
	l, w := c.plan, &c.panels[0]
	images, size := 1, l.imageA
	if !l.frame {
		images, size = l.images, s.N*l.imageA
	}
	// A value has 4/each bytes; the last piece has the bytes after it for neighbours, whose weight is zero.
	q := intLineArgs{c: c, s: s, og: og, x: x, bytes: 4 / w.each(), source: c.source(s, signed), signed: signed, zero: zero, sink: sink}
	var sc *[]float32
	if q.source == fromFrame {
		sc, q.frame = borrow8(q.bytes*size + 4)
		clear(q.frame[q.bytes*size:])
	}
	if w.sums != nil {
		z := w.f.FoursZero(signed, zero)
		q.edge = uint8(z)
		c.begin(z)
	}
	q.cut = l.cut(p, s, images, w.segs*w.seg, w.f.Rows, w.f.Rate())
	if !l.frame {
		if q.source == fromFrame {
			workers.Do(p, (size+copyGrain-1)/copyGrain, 1, q, func(q intLineArgs, lo, hi int) {
				lo, hi = lo*copyGrain, min(hi*copyGrain, len(q.x))
				q.put(q.frame[q.bytes*lo:q.bytes*hi], q.x[lo:hi])
			})
		}
		workers.Do(p, q.cut.jobs, 1, q, intLineArgs.blocks)
	} else {
		for n := range s.N {
			q.x, q.first = x[n*s.H*s.W*s.C:][:s.H*s.W*s.C], n*l.imageC
			workers.Do(p, l.h, max(1, copyGrain/(l.w*s.C)), q, func(q intLineArgs, lo, hi int) {
				frameLines(q.s, q.frame, q.bytes, q.x, q.c.plan.w, lo, hi, q.edge, q.put)
			})
			workers.Do(p, q.cut.jobs, 1, q, intLineArgs.blocks)
		}
	}
	if sc != nil {
		scratch.Put(sc)
	}
}

// begin makes what sums begin with for a zero point of fours.
func (c *intLines) begin(zero int32) {
	if len(c.start) > 0 && c.zero == zero {
		return
	}
	n := len(c.panels[0].sums)
	c.start, c.zero = room(c.start, len(c.panels)*n), zero
	for g := range c.panels {
		start8(c.start[g*n:][:n], c.panels[g].sums, zero)
	}
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

// block computes a piece of image n: all panels for as many positions as stay near.
func (q *intLineArgs) block(n int, part linePart) {
	c, l := q.c, q.c.plan
	w := &c.panels[part.g]
	t := intTiles.Get().(*simd.IntTile)
	t.K, t.RowA, t.RowC = w.pairs(), q.bytes*l.stepA, 4*w.f.Cols
	near := roundUp(rowBlock, w.f.Rows)
	piece := min(near, part.p1-part.p0)
	room, fs := borrow(piece * w.f.Cols)
	var copied *[]float32
	x := q.x
	switch q.source {
	case fromFrame:
		x = q.frame[q.bytes*n*l.imageA:]
	case fromPieces:
		copied, x = borrow8(q.bytes*piece*l.stepA + 4)
		clear(x[q.bytes*piece*l.stepA:])
	}
	lines := max(1, near/piece)
	for l0 := part.l0; l0 < part.l1; l0 += lines {
		for p0 := part.p0; p0 < part.p1; p0 += piece {
			here := linePart{part.g, l0, min(part.l1, l0+lines), p0, min(part.p1, p0+piece), part.n0, part.n1}
			first := 0
			if q.source == fromPieces {
				first = p0
				q.put(x[:q.bytes*(here.p1-p0)*l.stepA], q.x[p0*l.stepA:here.p1*l.stepA])
			}
			q.tiles(t, x, first, q.first+n*l.imageC, here, asInt32(fs))
		}
	}
	if copied != nil {
		scratch.Put(copied)
	}
	scratch.Put(room)
	giveIntTile(t)
}

// tiles computes a piece of which a line's sums have room in buf, and whose results begin at place y; x begins with position first.
func (q *intLineArgs) tiles(t *simd.IntTile, x []uint8, first, y int, part linePart, buf []int32) {
	c, og, g, p0, p1 := q.c, q.og, part.g, part.p0, part.p1
	l, w := c.plan, &c.panels[g]
	f, cg, bytes := w.f, q.s.C/q.s.Groups, q.bytes
	for n := part.n0; n < part.n1; n++ {
		if w.sums != nil {
			t.Start = &c.start[g*len(w.sums)+n*f.Cols]
		}
		for line := part.l0; line < part.l1; line++ {
			for at := p0; at < p1; {
				rows := evenly(p1-at, f.Rows)
				t.C = &buf[(at-p0)*f.Cols]
				for i := range l.passes {
					p := &l.passes[i]
					t.Segs, t.SegA = p.segs, bytes*p.seg
					t.A = unsafe.Pointer(&x[bytes*(line*l.lineA+(at-first)*l.stepA+g*cg+p.a)])
					t.B = w.at(n, i*p.segs*w.pairs())
					t.SetContinue(i > 0)
					w.run(t, rows, og-n*f.Cols)
				}
				at += rows
			}
			ch := g*og + n*f.Cols
			q.sink.put(buf, f.Cols, p1-p0, y+line*l.lineC+p0*l.stepC+ch, l.stepC, ch, min(f.Cols, og-n*f.Cols))
		}
	}
}

// intPlanes is a convolution of 8-bit numbers over [N,C,H,W] in vectors.
type intPlanes struct {
	f      *simd.Ints
	plan   *planePlan
	line   int     // of the weights of an output channel, a multiple of 4
	offs   []int32 // of as many steps
	narrow []int8  // weights of fours
	wide   []int16 // in place of narrow where the set has no fours, or a weight has more than 8 bits
	sums   []int32 // of the weights of each channel, where there are fours
}

// newIntPlanes plans a convolution; nil without vectors.
func newIntPlanes(s *ConvShape, cg int) *intPlanes {
	f := simd.IntKernels()
	if f == nil || s.outputs() == 0 || cg == 0 {
		return nil
	}
	q := s.planPlanes(cg)
	if q == nil {
		return nil
	}
	k := cg * s.KH * s.KW
	c := &intPlanes{f: f, plan: q, line: roundUp(k, 4), offs: make([]int32, roundUp(k, 4))}
	for i := range k {
		if c.offs[i] = int32(i * q.size); q.frame {
			c.offs[i] = q.offs[i]
		}
	}
	return c
}

// bytes is the size of a weight and of an activation.
func (c *intPlanes) bytes() int {
	if c.sums != nil {
		return 1
	}
	return 2
}

// at is the place of a weight.
func (c *intPlanes) at(i int) unsafe.Pointer {
	if c.sums != nil {
		return unsafe.Pointer(&c.narrow[i])
	}
	return unsafe.Pointer(&c.wide[i])
}

// gather writes a panel.
func (c *intPlanes) gather(dst, src []uint8, offs []int32, runs []simd.Run) {
	if c.sums != nil {
		c.f.GatherQuads(dst, src, offs, runs)
		return
	}
	c.f.Gather(int16sOf(dst), int16sOf(src), offs, runs)
}

// run convolves x; put gets sums as [ConvSums.Each] says.
func (c *intPlanes) run(p *workers.Pool, s *ConvShape, og int, x []uint8, signed bool, zero int32, put putPlanes) {
	q, f, bytes := c.plan, c.f, c.bytes()
	area := s.H * s.W
	sc, frame := borrow8(bytes * (s.C*q.size + f.Cols))
	scs, fs := borrow(len(c.sums))
	start := asInt32(fs)
	start8(start, c.sums, f.FoursZero(signed, zero))
	for n := range s.N {
		in := x[n*s.C*area:][:s.C*area]
		args := intPlaneArgs{c, s, og, frame, in, start, signed, zero, n * s.OC, s.cutPlanes(p, og, c.line, f.Rows, f.Cols, f.Rate()), put}
		workers.Do(p, s.C, max(1, copyGrain/q.size), args, func(q intPlaneArgs, lo, hi int) {
			q.c.frames(q.s, q.frame, q.in, lo, hi, q.signed, q.zero)
		})
		workers.Do(p, args.cut.jobs, 1, args, func(q intPlaneArgs, lo, hi int) {
			r := q.cut.rooms()
			for i := lo; i < hi; i++ {
				g, n0, n1, o0, o1 := q.cut.at(i)
				*r.runs = q.c.block(q.s, q.og, asBytes(r.buf), *r.runs, q.frame, q.start, q.first, g, n0, n1, o0, o1, q.put)
			}
			r.give()
		})
	}
	scratch.Put(scs)
	scratch.Put(sc)
}

// intPlaneArgs is what a piece of the work on an image needs.
type intPlaneArgs struct {
	c         *intPlanes
	s         *ConvShape
	og        int
	frame, in []uint8
	start     []int32
	signed    bool
	zero      int32
	first     int // the first plane of the results
	cut       planeCut
	put       putPlanes
}

// frames writes the frames of channels lo to hi of an image.
func (c *intPlanes) frames(s *ConvShape, frame, in []uint8, lo, hi int, signed bool, zero int32) {
	q, bytes, area := c.plan, c.bytes(), s.H*s.W
	if !q.frame {
		if dst, src := frame[bytes*lo*area:bytes*hi*area], in[lo*area:hi*area]; c.sums != nil {
			c.f.Fours(dst, src, signed)
		} else {
			c.f.Widen(int16sOf(dst), src, signed, int16(zero))
		}
		return
	}
	if c.sums != nil {
		for ch := lo; ch < hi; ch++ {
			frameBytes(s, q, c.f, frame[ch*q.size:][:q.size], in[ch*area:][:area], signed, uint8(c.f.FoursZero(signed, zero)))
		}
		return
	}
	room, plane := borrow16(area)
	for ch := lo; ch < hi; ch++ {
		c.f.Widen(plane, in[ch*area:][:area], signed, int16(zero))
		framePlane(s, q, int16sOf(frame[bytes*ch*q.size:][:bytes*q.size]), plane)
	}
	scratch.Put(room)
}

// block computes output channels o0 to o1 of group g in panels n0 to n1; first is the first plane of the image.
func (c *intPlanes) block(s *ConvShape, og int, buf []uint8, runs []simd.Run, x []uint8, start []int32, first, g, n0, n1, o0, o1 int, put putPlanes) []simd.Run {
	q, f, bytes := c.plan, c.f, c.bytes()
	area := s.OH * s.OW
	in := x[bytes*g*s.C/s.Groups*q.size:]
	t := intTiles.Get().(*simd.IntTile)
	// There is room for kBlock floats.
	most := kBlock * 4 / bytes
	width := (n1 - n0) * f.Cols
	height := f.Rows // of the sums that are kept
	if c.line > most {
		height = o1 - o0
	}
	room, fs := borrow(height * width)
	sums := asInt32(fs)
	t.Segs, t.RowA, t.RowC = 1, bytes*c.line, 4*width
	for k0 := 0; k0 < c.line; k0 += most {
		steps := min(most, c.line-k0)
		t.K = steps * bytes / 4
		for n := n0; n < n1; n++ {
			p0 := n * f.Cols
			if !q.frame {
				runs = append(runs[:0], simd.Run{From: int32(p0)})
			} else {
				runs = s.runs(q, runs[:0], p0, min(f.Cols, area-p0))
			}
			c.gather(buf[(n-n0)*bytes*steps*f.Cols:], in, c.offs[k0:][:steps], runs)
		}
		t.SetContinue(k0 > 0)
		for o := o0; o < o1; {
			rows := evenly(o1-o, f.Rows)
			t.A = c.at((g*og+o)*c.line + k0)
			if c.sums != nil {
				t.Start = &start[g*og+o]
			}
			here := sums
			if height > f.Rows {
				here = sums[(o-o0)*width:]
			}
			for n := range n1 - n0 {
				t.B, t.C = unsafe.Pointer(&buf[n*bytes*steps*f.Cols]), &here[n*f.Cols]
				if c.sums != nil {
					f.RunTurned(t, rows, area-(n0+n)*f.Cols)
				} else {
					f.Run(t, rows, true)
				}
			}
			if k0+steps == c.line {
				put(first+g*og+o, rows, n0*f.Cols, min(width, area-n0*f.Cols), here, width)
			}
			o += rows
		}
	}
	scratch.Put(room)
	giveIntTile(t)
	return runs
}
