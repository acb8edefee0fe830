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
// products of matrices take activations as they are, moved to numbers without a sign, and sums
// begin with what the zero point is too much.

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

// fill packs n channels: step i of channel j is v[j*vec+i*elem].
func (w *intPanels) fill(n int, v []int32, vec, elem int) {
	k, cols := w.segs*w.seg, w.f.Cols
	w.sums = nil
	size := func() int { return roundUp(n, cols) * w.segs * w.pairs() * w.each() }
	sums := make([]int32, roundUp(n, cols))
	for j := range n {
		for i := range k {
			x := v[j*vec+i*elem]
			if x != int32(int8(x)) {
				w.narrow, w.wide = nil, room(w.wide, size())
				packPairs(w, w.wide, n, v, vec, elem)
				return
			}
			sums[j] += x
		}
	}
	if w.fours && w.f.Quads() {
		w.sums = sums
	}
	w.narrow, w.wide = room(w.narrow, size()), nil
	packPairs(w, w.narrow, n, v, vec, elem)
}

// room is v with a length of n and zeros.
func room[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	v = v[:n]
	clear(v)
	return v
}

func packPairs[T int8 | int16](w *intPanels, dst []T, n int, v []int32, vec, elem int) {
	cols, pairs, each := w.f.Cols, w.pairs(), w.each()
	panel := w.segs * pairs * cols * each
	for j := range n {
		d := dst[j/cols*panel+j%cols*each:]
		for s := range w.segs {
			for i := range w.seg {
				d[(s*pairs+i/each)*cols*each+i%each] = T(v[j*vec+(s*w.seg+i)*elem])
			}
		}
	}
}

// at is the place of a panel's row of pairs or fours.
func (w *intPanels) at(panel, row int) unsafe.Pointer {
	i := (panel*w.segs*w.pairs() + row) * w.f.Cols * w.each()
	if w.narrow != nil {
		return unsafe.Pointer(&w.narrow[i])
	}
	return unsafe.Pointer(&w.wide[i])
}

// asInt16 reads scratch memory as 16-bit integers.
func asInt16(f []float32) []int16 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&f[0])), 2*len(f))
}

// borrow16 is room for n 16-bit integers.
func borrow16(n int) (*[]float32, []int16) {
	s, f := borrow(n/2 + 1)
	return s, asInt16(f)[:n]
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
	if line == k && len(tables) == 1 {
		// All rows are one piece.
		p.For(m, max(1, copyGrain/k), func(lo, hi int) {
			f.Widen(a[lo*k:hi*k], x[lo*k:hi*k], tables[0].signed, int16(tables[0].zero))
		})
	} else {
		p.For(m, max(1, copyGrain/k), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				t := &tables[min(r, len(tables)-1)]
				f.Widen(a[r*line:][:k], x[r*k:][:k], t.signed, int16(t.zero))
				clear(a[r*line+k : (r+1)*line])
			}
		})
	}
	w.product(p, m, bytesOf16(a), 2*line, nil, y)
	scratch.Put(sc)
}

// bytesOf16 are the bytes of 16-bit integers.
func bytesOf16(v []int16) []uint8 { return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 2*len(v)) }

// gemmFours is gemmInts with fours of 8-bit numbers.
func gemmFours(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, y []int32) {
	k, sums := w.k, w.panels.sums
	line, signed := 4*w.panels.pairs(), tables[0].signed
	zero := func(t *ByteTable) int32 {
		if signed {
			return t.zero + 128
		}
		return t.zero
	}
	scs, fs := borrow(len(sums))
	start := asInt32(fs)
	clear(start)
	if len(tables) == 1 {
		for i, v := range sums {
			start[i] = -zero(&tables[0]) * v
		}
	}
	a := x
	if signed || line != k {
		sc, fa := borrow(m*line/4 + 1)
		defer scratch.Put(sc)
		a = unsafe.Slice((*uint8)(unsafe.Pointer(&fa[0])), 4*len(fa))
		p.For(m, max(1, 2*copyGrain/k), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				simd.Unsigned(a[r*line:][:k], x[r*k:][:k], signed)
				clear(a[r*line+k : (r+1)*line])
			}
		})
	}
	w.product(p, m, a, line, start, y)
	if len(tables) > 1 {
		for r := range m {
			z, row := zero(&tables[r]), y[r*w.n:][:w.n]
			for i := range row {
				row[i] -= z * sums[i]
			}
		}
	}
	scratch.Put(scs)
}

// Product16 computes y[n] = w·x for one row of 16-bit numbers of at most 9 bits, whose
// length is even: [PackedQ.Pairs] pairs. It is for kernels in vectors only; see
// [PackedQ.Vectors]. The weights are those of [NewPacked16].
func (p *PackedQ) Product16(pool *workers.Pool, x []int16, y []int32) {
	p.product(pool, 1, bytesOf16(x), 2*len(x), nil, y)
}

// Vectors tells whether kernels in vectors compute the product.
func (p *PackedQ) Vectors() bool { return p.panels != nil }

// Pairs is the number of pairs of steps, the last one with a step that is not there if
// their number is odd.
func (p *PackedQ) Pairs() int { return (p.k + 1) / 2 }

// product multiplies m rows, line bytes apart, by all panels: of 16-bit numbers, or of 8-bit ones
// with what their sums begin with.
func (p *PackedQ) product(pool *workers.Pool, m int, a []uint8, line int, start, y []int32) {
	f, k := p.panels.f, p.k
	panels := (p.n + f.Cols - 1) / f.Cols
	jobs := 1
	if pool.Threads() > 1 {
		jobs = max(1, min(4*pool.Threads(), m*p.n*k/jobWork))
	}
	// The rows of a job and a panel stay in the second-level cache.
	rows := min(m, max(f.Rows, 2*packBlock/line/f.Rows*f.Rows))
	if jobs > 1 {
		rows = min(rows, roundUp((m+jobs-1)/jobs, f.Rows))
	}
	blocks := (m + rows - 1) / rows
	parts := min(max(1, jobs/blocks), panels)
	step := (panels + parts - 1) / parts
	pool.For(blocks*parts, 1, func(lo, hi int) {
		t := intTiles.Get().(*simd.IntTile)
		room, fs := borrow(f.Rows * f.Cols)
		buf := asInt32(fs)
		t.K, t.Segs, t.RowA = p.panels.pairs(), 1, line
		run := func(rows int) {
			if start != nil {
				f.RunQuads(t, rows)
				return
			}
			f.Run(t, rows, p.panels.wide != nil)
		}
		for i := lo; i < hi; i++ {
			m0, n0 := i/parts*rows, i%parts*step
			m1, n1 := min(m0+rows, m), min(n0+step, panels)
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
						run(h)
					} else {
						t.C, t.RowC = &buf[0], 4*f.Cols
						run(h)
						for j := range h {
							copy(out[j*p.n:][:width], buf[j*f.Cols:])
						}
					}
					r += h
				}
			}
		}
		scratch.Put(room)
		giveIntTile(t)
	})
}

// intLines is a convolution of 8-bit numbers over [N,H,W,C] in vectors.
type intLines struct {
	plan   *linePlan
	panels []intPanels // one a group
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

func (c *intLines) fill(og int, w []int32) {
	for g := range c.panels {
		p := &c.panels[g]
		k := p.segs * p.seg
		p.fill(og, w[g*og*k:], k, 1)
	}
}

// run convolves x. For each block of rows of a panel, put gets the sums, Cols apart, and
// where they belong: the first of its rows, their distance, the first channel and the
// number of channels.
func (c *intLines) run(p *workers.Pool, s *ConvShape, og int, x []uint8, signed bool, zero int32, put func(sums []int32, rows, at, step, ch, n int)) {
	l, f := c.plan, c.panels[0].f
	images, size := 1, l.imageA
	if !l.frame {
		images, size = l.images, s.N*l.imageA
	}
	sc, frame := borrow16(size + 1)
	frame[size] = 0 // an odd piece at the end has it for a neighbour
	widen := func(dst []int16, src []uint8) { f.Widen(dst, src, signed, int16(zero)) }
	block := func(first int) {
		l.each(p, s, images, c.panels[0].segs*c.panels[0].seg, f.Rows, func(n, g, l0, l1, p0, p1, n0, n1 int) {
			c.block(s, og, frame[n*l.imageA:], first+n*l.imageC, g, l0, l1, p0, p1, n0, n1, put)
		})
	}
	if !l.frame {
		p.For((size+copyGrain-1)/copyGrain, 1, func(lo, hi int) {
			lo, hi = lo*copyGrain, min(hi*copyGrain, size)
			widen(frame[lo:hi], x[lo:hi])
		})
		block(0)
	} else {
		for n := range s.N {
			in := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
			p.For(l.h, max(1, copyGrain/(l.w*s.C)), func(lo, hi int) { frameLines(s, frame, in, l.w, lo, hi, widen) })
			block(n * l.imageC)
		}
	}
	scratch.Put(sc)
}

// block computes panels n0 to n1 of group g on lines l0 to l1, positions p0 to p1.
func (c *intLines) block(s *ConvShape, og int, x []int16, y, g, l0, l1, p0, p1, n0, n1 int, put func(sums []int32, rows, at, step, ch, n int)) {
	l, w := c.plan, &c.panels[g]
	f, cg := w.f, s.C/s.Groups
	t := intTiles.Get().(*simd.IntTile)
	room, fs := borrow((p1 - p0) * f.Cols)
	buf := asInt32(fs)
	t.K, t.RowA, t.RowC = w.pairs(), 2*l.stepA, 4*f.Cols
	for n := n0; n < n1; n++ {
		for line := l0; line < l1; line++ {
			for at := p0; at < p1; {
				rows := evenly(p1-at, f.Rows)
				t.C = &buf[(at-p0)*f.Cols]
				for i := range l.passes {
					q := &l.passes[i]
					t.Segs, t.SegA = q.segs, 2*q.seg
					t.A = unsafe.Pointer(&x[line*l.lineA+at*l.stepA+g*cg+q.a])
					t.B = w.at(n, i*q.segs*w.pairs())
					t.SetContinue(i > 0)
					f.Run(t, rows, w.wide != nil)
				}
				at += rows
			}
			ch := g*og + n*f.Cols
			put(buf, p1-p0, y+line*l.lineC+p0*l.stepC+ch, l.stepC, ch, min(f.Cols, og-n*f.Cols))
		}
	}
	scratch.Put(room)
	giveIntTile(t)
}

// intPlanes is a convolution of 8-bit numbers over [N,C,H,W] in vectors.
type intPlanes struct {
	f       *simd.Ints
	plan    *planePlan
	line    int     // of the weights of an output channel, an even number
	offs    []int32 // of the steps, an even number of them
	weights []int16
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
	c := &intPlanes{f: f, plan: q, line: roundUp(k, 2), offs: make([]int32, roundUp(k, 2))}
	for i := range k {
		if c.offs[i] = int32(i * q.size); q.frame {
			c.offs[i] = q.offs[i]
		}
	}
	c.weights = make([]int16, s.OC*c.line)
	return c
}

func (c *intPlanes) fill(k int, w []int32) {
	for o := 0; len(w) >= k && o < len(c.weights); o += c.line {
		for i, v := range w[:k] {
			c.weights[o+i] = int16(v)
		}
		w = w[k:]
	}
}

// run convolves x into the sums y.
func (c *intPlanes) run(p *workers.Pool, s *ConvShape, og int, x []uint8, signed bool, zero int32, y []int32) {
	q, f := c.plan, c.f
	area := s.H * s.W
	sc, frame := borrow16(s.C*q.size + f.Cols)
	for n := range s.N {
		in := x[n*s.C*area:][:s.C*area]
		p.For(s.C, max(1, copyGrain/q.size), func(lo, hi int) {
			if !q.frame {
				f.Widen(frame[lo*area:hi*area], in[lo*area:hi*area], signed, int16(zero))
				return
			}
			room, plane := borrow16(area)
			for ch := lo; ch < hi; ch++ {
				f.Widen(plane, in[ch*area:][:area], signed, int16(zero))
				framePlane(s, q, frame[ch*q.size:][:q.size], plane, 0)
			}
			scratch.Put(room)
		})
		out := y[n*s.OC*s.OH*s.OW:]
		s.eachPlanes(p, og, c.line, f.Rows, f.Cols, func(buf []float32, runs *[]simd.Run, g, n0, n1, o0, o1 int) {
			*runs = c.block(s, og, asInt16(buf), *runs, frame, out, g, n0, n1, o0, o1)
		})
	}
	scratch.Put(sc)
}

// block computes output channels o0 to o1 of group g in panels n0 to n1.
func (c *intPlanes) block(s *ConvShape, og int, buf []int16, runs []simd.Run, x []int16, y []int32, g, n0, n1, o0, o1 int) []simd.Run {
	q, f := c.plan, c.f
	area := s.OH * s.OW
	in := x[g*s.C/s.Groups*q.size:]
	t := intTiles.Get().(*simd.IntTile)
	room, fs := borrow(f.Rows * f.Cols)
	edge := asInt32(fs)
	t.Segs, t.RowA = 1, 2*c.line
	for k0 := 0; k0 < c.line; k0 += kBlock {
		steps := min(kBlock, c.line-k0)
		t.K = steps / 2
		for n := n0; n < n1; n++ {
			p0 := n * f.Cols
			if !q.frame {
				runs = append(runs[:0], simd.Run{From: int32(p0)})
			} else {
				runs = s.runs(q, runs[:0], p0, min(f.Cols, area-p0))
			}
			f.Gather(buf[(n-n0)*steps*f.Cols:], in, c.offs[k0:][:steps], runs)
		}
		t.SetContinue(k0 > 0)
		for o := o0; o < o1; {
			rows := evenly(o1-o, f.Rows)
			t.A = unsafe.Pointer(&c.weights[(g*og+o)*c.line+k0])
			for n := n0; n < n1; n++ {
				p0 := n * f.Cols
				out := y[(g*og+o)*area+p0:]
				t.B = unsafe.Pointer(&buf[(n-n0)*steps*f.Cols])
				if p0+f.Cols <= area {
					t.C, t.RowC = &out[0], 4*area
					f.Run(t, rows, true)
					continue
				}
				width := area - p0
				t.C, t.RowC = &edge[0], 4*f.Cols
				if k0 > 0 {
					for r := range rows {
						copy(edge[r*f.Cols:][:width], out[r*area:])
					}
				}
				f.Run(t, rows, true)
				for r := range rows {
					copy(out[r*area:][:width], edge[r*f.Cols:])
				}
			}
			o += rows
		}
	}
	scratch.Put(room)
	giveIntTile(t)
	return runs
}
