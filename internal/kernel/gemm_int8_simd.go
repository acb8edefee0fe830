package kernel

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int8 GEMM with SIMD kernels. Activations are widened to 16 bits as differences to their zero
// point, so that padding is zero and sums need no correction. Neighbouring K steps are multiplied
// in pairs; a segment of odd length ends with a zero weight. If the instruction set has 4-way
// int8 dot products (VNNI, SDOT) and weights fit 8 bits, activations stay 8-bit, converted to
// unsigned, or to signed if the instruction set requires it. Padding is then the zero point, and
// sums start with a correction for it.

var intTiles = sync.Pool{New: func() any { return new(simd.IntTile) }}

// releaseIntTile clears the pointers of a tile and returns it to the pool.
func releaseIntTile(t *simd.IntTile) {
	*t = simd.IntTile{}
	intTiles.Put(t)
}

// intPanels holds weights packed for SIMD kernels: column panels with, for each pair or 4-way
// group of K steps, the weights of all columns.
type intPanels struct {
	f          *simd.Ints
	segs, seg  int          // segments of the sum and their length
	fours      bool         // use 4-way kernels if possible
	sparse4of8 *simd.Sifted // nil for dense weights
	narrow     []int8
	wide       []int16 // replaces narrow if a weight needs more than 8 bits
	sums       []int32 // of the weights of each column, for 4-way kernels
	// spare keeps the buffers of earlier weights: weights that change with each run may fit 8
	// bits in one run and not in another.
	spare struct {
		narrow []int8
		wide   []int16
		sums   []int32
	}
}

// groupSize returns the number of K steps that are multiplied together.
func (w *intPanels) groupSize() int {
	if w.sums != nil {
		return 4
	}
	return 2
}

// pairs returns the number of pairs or 4-way groups of a segment.
func (w *intPanels) pairs() int { return (w.seg + w.groupSize() - 1) / w.groupSize() }

// zeroPointSums computes the initial accumulators of 4-way kernels: the unsigned zero point of the
// activations times the weight sums.
func zeroPointSums(dst, sums []int32, zero int32) {
	dst, by := dst[:len(sums)], -zero
	for i, v := range sums {
		dst[i] = by * v
	}
}

// unsignedZero returns a zero point for unsigned values: 128 is added to signed ones.
func unsignedZero(signed bool, zero int32) int32 {
	if signed {
		return zero + 128
	}
	return zero
}

// at returns the address of a panel row (a pair or 4-way group).
func (w *intPanels) at(panel, row int) unsafe.Pointer {
	i := (panel*w.segs*w.pairs() + row) * w.f.Cols * w.groupSize()
	if w.narrow != nil {
		return unsafe.Pointer(&w.narrow[i])
	}
	return unsafe.Pointer(&w.wide[i])
}

// prefetchMin is the size in bytes from which weights are prefetched, as the L2 cache does not
// hold them all.
const prefetchMin = 1 << 20

// nextPanel returns the panel after panel n, up to n1, if weights are to be prefetched, else nil.
func (w *intPanels) nextPanel(n, n1 int) unsafe.Pointer {
	if w.sums == nil || n+1 >= n1 || len(w.narrow) < prefetchMin {
		return nil
	}
	return w.at(n+1, 0)
}

// run computes rows rows of a tile, of which at least cols columns are needed.
func (w *intPanels) run(t *simd.IntTile, rows, cols int) {
	switch {
	case w.sparse4of8 != nil:
		w.sparse4of8.Run(t, rows)
		return
	case w.sums != nil:
		w.f.RunQuads(t, rows, cols)
		return
	}
	w.f.Run(t, rows, cols, w.wide != nil)
}

// asInt16 views scratch memory as 16-bit integers.
func asInt16(f []float32) []int16 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&f[0])), 2*len(f))
}

// asBytes views scratch memory as bytes.
func asBytes(f []float32) []uint8 {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*uint8)(unsafe.Pointer(&f[0])), 4*len(f))
}

// borrow16 returns scratch memory for n 16-bit integers.
func borrow16(n int) (*[]float32, []int16) {
	s, f := borrow(n/2 + 1)
	return s, asInt16(f)[:n]
}

// borrow8 returns scratch memory for n bytes.
func borrow8(n int) (*[]float32, []uint8) {
	s, f := borrow(n/4 + 1)
	return s, asBytes(f)[:n]
}

// gemmInts is [GemmQ] with SIMD kernels.
func gemmInts(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, y []int32) {
	if w.panels.sums != nil {
		gemmFours(p, m, x, tables, w, gemmEpilogue{sums: y})
		return
	}
	f, k := w.panels.f, w.k
	line := 2 * w.panels.pairs()
	sc, a := borrow16(m * line)
	workers.Do(p, m, max(1, copyGrain/k), widenArgs{f, a, x, tables, k, line}, func(q widenArgs, lo, hi int) {
		k, line := q.k, q.line
		if line == k && len(q.tables) == 1 {
			// All rows are contiguous.
			q.f.Widen(q.a[lo*k:hi*k], q.x[lo*k:hi*k], q.tables[0].signed, int16(q.tables[0].zero))
			return
		}
		for r := lo; r < hi; r++ {
			t := &q.tables[min(r, len(q.tables)-1)]
			q.f.Widen(q.a[r*line:][:k], q.x[r*k:][:k], t.signed, int16(t.zero))
			clear(q.a[r*line+k : (r+1)*line])
		}
	})
	w.product(p, m, bytesOf16(a), 2*line, nil, gemmEpilogue{sums: y})
	scratch.Put(sc)
}

// widenArgs holds the arguments of a work item that widens rows.
type widenArgs struct {
	f       *simd.Ints
	a       []int16
	x       []uint8
	tables  []ByteTable
	k, line int
}

// int16sOf views bytes at an even address as 16-bit integers.
func int16sOf(v []uint8) []int16 {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*int16)(unsafe.Pointer(&v[0])), len(v)/2)
}

// bytesOf16 views 16-bit integers as bytes.
func bytesOf16(v []int16) []uint8 { return unsafe.Slice((*uint8)(unsafe.Pointer(&v[0])), 2*len(v)) }

// gemmFours is gemmInts with 4-way kernels. With a single table the sums may be requantised.
func gemmFours(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedQ, to gemmEpilogue) {
	f, k, sums := w.panels.f, w.k, w.panels.sums
	line, signed := 4*w.panels.pairs(), tables[0].signed
	start := w.start
	if zero := f.FoursZero(signed, tables[0].zero); start == nil || len(tables) > 1 || zero != w.zero {
		sc, workspace := borrow(len(sums))
		defer scratch.Put(sc)
		if start = asInt32(workspace); len(tables) > 1 {
			zero = 0 // the zero point of each row is applied below
		}
		zeroPointSums(start, sums, zero)
	}
	if to.r != nil {
		sc, workspace := borrow(len(sums) + f.Cols)
		defer scratch.Put(sc)
		to.columns(w.n, f.Cols, start, workspace)
		start = asInt32(workspace[:len(sums)])
	}
	a := x
	if signed != f.Signed || line != k {
		var sc *[]float32
		sc, a = borrow8(m * line)
		defer scratch.Put(sc)
		workers.Do(p, m, max(1, 2*copyGrain/k), convertArgs{f, a, x, k, line, signed}, func(q convertArgs, lo, hi int) {
			q.rows(lo, hi)
		})
	}
	w.product(p, m, a, line, start, to)
	if len(tables) > 1 {
		e := simd.ElementKernels()
		for r := range m {
			z, row := f.FoursZero(signed, tables[r].zero), to.sums[r*w.n:][:w.n]
			for i := e.LessTimes(row, sums, z); i < len(row); i++ {
				row[i] -= z * sums[i]
			}
		}
	}
}

// convertArgs holds the arguments of a work item that converts rows for 4-way kernels.
type convertArgs struct {
	f       *simd.Ints
	a, x    []uint8
	k, line int
	signed  bool
}

// rows converts rows lo to hi, in a single call if a kernel supports that.
func (q *convertArgs) rows(lo, hi int) {
	dst, src := q.a[lo*q.line:hi*q.line], q.x[lo*q.k:hi*q.k]
	if q.line == q.k {
		q.f.Fours(dst, src, q.signed)
		return
	}
	whole := q.f.CopyBytes(dst, q.line, src, q.k, 1, q.k, hi-lo, q.signed != q.f.Signed)
	for ; len(dst) > 0; dst, src = dst[q.line:], src[q.k:] {
		if !whole {
			q.f.Fours(dst[:q.k], src[:q.k], q.signed)
		}
		clear(dst[q.k:q.line])
	}
}

// UsesSIMD reports whether SIMD kernels compute the multiplication.
func (p *PackedQ) UsesSIMD() bool { return p.panels != nil }

// product multiplies m rows, line bytes apart, by all panels: 16-bit rows, or 8-bit rows with the
// initial accumulators start.
func (p *PackedQ) product(pool *workers.Pool, m int, a []uint8, line int, start []int32, to gemmEpilogue) {
	if p.bitmask != nil {
		p.bitmask.run(pool, m, a, line, start, to.sums)
		return
	}
	f, k := p.panels.f, p.k
	panels := (p.n + f.Cols - 1) / f.Cols
	jobs := jobCount(pool, m*p.n*k, rateForRows(f.Rate(), m, 1))
	blocks := 1
	if m > f.Rows {
		// The rows of a work item and a panel stay in the L2 cache.
		most := max(f.Rows, 2*packBlock/line/f.Rows*f.Rows)
		blocks = (m + most - 1) / most
	}
	if t := pool.Threads(); jobs > 1 && m >= t*f.Rows {
		blocks = roundUp(blocks, t) // equal blocks for each thread
	}
	parts := min((jobs+blocks-1)/blocks, panels)
	workers.Do(pool, blocks*parts, 1, intArgs{p, a, start, m, line, blocks, parts, pool.Taking(), to}, func(q intArgs, lo, hi int) {
		if q.to.r != nil {
			q.fusedPieces(lo, hi)
			return
		}
		q.part(lo, hi)
	})
}

// intArgs holds the arguments of a work item of an 8-bit multiplication.
type intArgs struct {
	p                      *PackedQ
	a                      []uint8
	start                  []int32
	m, line, blocks, parts int
	threads                int
	to                     gemmEpilogue
}

// part computes work items lo to hi.
func (q *intArgs) part(lo, hi int) {
	p, a, y, start, m, line := q.p, q.a, q.to.sums, q.start, q.m, q.line
	f, panels := p.panels.f, (p.n+p.panels.f.Cols-1)/p.panels.f.Cols
	t := intTiles.Get().(*simd.IntTile)
	var workspace *[]float32
	var buf []int32 // for a partial last panel
	if p.n%f.Cols != 0 {
		var fs []float32
		workspace, fs = borrow(f.Rows * f.Cols)
		buf = asInt32(fs)
	}
	t.K, t.Segs, t.RowA = p.panels.pairs(), 1, line
	for i := lo; i < hi; i++ {
		m0, m1 := portion(i/q.parts, q.blocks, m)
		n0, n1 := portion(i%q.parts, q.parts, panels)
		if m == 1 {
			n0, n1 = rowPortion(i, q.parts, q.threads, panels, false)
		}
		if m == 1 && start != nil && p.panels.sparse4of8 == nil {
			n0 = q.row(t, n0, n1)
		} else if start != nil && f.RunsPanels(t, m1-m0) {
			n0 = q.panels(t, m0, m1, n0, min(n1, p.n/f.Cols))
		}
		for n := n0; n < n1; n++ {
			width := min(f.Cols, p.n-n*f.Cols)
			t.B = p.panels.at(n, 0)
			if start != nil {
				t.Start = &start[n*f.Cols]
			}
			for r := m0; r < m1; {
				h := f.Part(m1 - r)
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
	if workspace != nil {
		scratch.Put(workspace)
	}
	releaseIntTile(t)
}

// panels computes rows m0 to m1 of the whole panels n0 to n1, as many at a time as the kernels
// support. It returns the first panel that is not computed.
func (q *intArgs) panels(t *simd.IntTile, m0, m1, n0, n1 int) int {
	p := q.p
	f := p.panels.f
	if n1 <= n0 {
		return n0
	}
	t.RowC, t.PanelB = 4*p.n, 4*p.panels.pairs()*f.Cols
	t.B, t.Start = p.panels.at(n0, 0), &q.start[n0*f.Cols]
	t.Ahead = p.panels.nextPanel(n0, n1)
	for r := m0; r < m1; {
		rows := f.Part(m1 - r)
		t.A, t.C = unsafe.Pointer(&q.a[r*q.line]), &q.to.sums[r*p.n+n0*f.Cols]
		f.RunPanels(t, rows, n1-n0)
		r += rows
	}
	return n1
}

// row computes a single row, several whole panels at a time. It returns the first panel that is
// not computed.
func (q *intArgs) row(t *simd.IntTile, n0, n1 int) int {
	p := q.p
	t.A, t.PanelB = unsafe.Pointer(&q.a[0]), 4*p.panels.pairs()*p.panels.f.Cols
	for ; p.panels.f.HasWideQuads() && n0+simd.WidePanels <= n1 && (n0+simd.WidePanels)*p.panels.f.Cols <= p.n; n0 += simd.WidePanels {
		t.B, t.C, t.Start = p.panels.at(n0, 0), &q.to.sums[n0*p.panels.f.Cols], &q.start[n0*p.panels.f.Cols]
		p.panels.f.WideQuads(t)
	}
	return n0
}

// convInt8NCHW is a SIMD int8 convolution over [N,C,H,W].
type convInt8NCHW struct {
	f      *simd.Ints
	plan   *nchwPlan
	line   int     // length of the weights of an output channel, a multiple of 4
	offs   []int32 // input offsets, one per K step
	rest   []int32 // the same in the copy of a partial panel of a 1×1 convolution
	narrow []int8  // weights of 4-way kernels
	wide   []int16 // replaces narrow without 4-way kernels, or if a weight needs more than 8 bits
	sums   []int32 // of the weights of each channel, for 4-way kernels
}

// newConvInt8NCHW plans a convolution; nil without SIMD.
func newConvInt8NCHW(s *ConvShape, cg int) *convInt8NCHW {
	f := simd.IntKernels()
	if f == nil || s.outputs() == 0 || cg == 0 {
		return nil
	}
	q := s.planNCHW(cg)
	if q == nil {
		return nil
	}
	k := cg * s.KH * s.KW
	c := &convInt8NCHW{f: f, plan: q, line: roundUp(k, 4), offs: make([]int32, roundUp(k, 4))}
	if !q.frame {
		c.rest = make([]int32, c.line)
		for i := range c.rest {
			c.rest[i] = int32(i * f.Cols)
		}
	}
	for i := range k {
		if c.offs[i] = int32(i * q.size); q.frame {
			c.offs[i] = q.offs[i]
		}
	}
	return c
}

// bytes returns the size of a weight and of an activation.
func (c *convInt8NCHW) bytes() int {
	if c.sums != nil {
		return 1
	}
	return 2
}

// at returns the address of weight i.
func (c *convInt8NCHW) at(i int) unsafe.Pointer {
	if c.sums != nil {
		return unsafe.Pointer(&c.narrow[i])
	}
	return unsafe.Pointer(&c.wide[i])
}

// gather writes a panel.
func (c *convInt8NCHW) gather(dst, src []uint8, offs []int32, runs []simd.Run) {
	if c.sums != nil {
		c.f.GatherQuads(dst, src, offs, runs)
		return
	}
	c.f.Gather(int16sOf(dst), int16sOf(src), offs, runs)
}

// run convolves x; put receives the sums for a sink. With channels-last output it receives all
// channels of a work item at once.
func (c *convInt8NCHW) run(p *workers.Pool, s *ConvShape, og int, x []uint8, signed bool, zero int32, sink *epilogue, put putPlanes) {
	q, f, bytes := c.plan, c.f, c.bytes()
	area, sums := s.H*s.W, len(c.sums)
	// 1×1 windows read the input in place if its signedness fits the kernels.
	inPlace := !q.frame && bytes == 1 && signed == f.Signed
	var sc *[]float32
	var frame []uint8
	if !inPlace {
		sc, frame = borrow8(bytes * (s.C*q.size + f.Cols))
	}
	scs, fs := borrow(2 * sums)
	start := asInt32(fs)[:sums]
	zeroPointSums(start, c.sums, f.FoursZero(signed, zero))
	var biased []int32
	if sums > 0 && f.HasCodes() && sink.area > 0 && sink.r != nil && sink.r.smallScales() {
		biased = asInt32(fs)[sums:]
		for i, b := range sink.r.Bias[:sums] {
			biased[i] = start[i] + b
		}
	}
	for n := range s.N {
		in := x[n*s.C*area:][:s.C*area]
		args := convInt8NCHWArgs{c, s, og, frame, in, start, biased, signed, zero, n * s.OC, s.cutPlanes(p, og, c.line+sumCost, f.CutRows(), f.Cols, 1, f.Rate()), sink, put, inPlace}
		if inPlace {
			args.frame = in
		} else {
			workers.Do(p, s.C, max(1, copyGrain/q.size), args, func(q convInt8NCHWArgs, lo, hi int) {
				q.c.frames(q.s, q.frame, q.in, lo, hi, q.signed, q.zero)
			})
		}
		workers.Do(p, args.cut.jobs, 1, args, func(q convInt8NCHWArgs, lo, hi int) {
			r := q.cut.scratch()
			for i := lo; i < hi; i++ {
				g, n0, n1, o0, o1 := q.cut.at(i)
				*r.runs = q.block(asBytes(r.buf), *r.runs, g, n0, n1, o0, o1)
			}
			r.give()
		})
	}
	scratch.Put(scs)
	if sc != nil {
		scratch.Put(sc)
	}
}

// convInt8NCHWArgs holds the arguments of a work item of an image.
type convInt8NCHWArgs struct {
	c         *convInt8NCHW
	s         *ConvShape
	og        int
	frame, in []uint8
	start     []int32
	biased    []int32 // start including the biases, if tiles requantise
	signed    bool
	zero      int32
	first     int // the first output plane
	cut       planeCut
	sink      *epilogue
	put       putPlanes
	inPlace   bool // frame is the input
}

// frames writes the padded copies of channels lo to hi of an image.
func (c *convInt8NCHW) frames(s *ConvShape, frame, in []uint8, lo, hi int, signed bool, zero int32) {
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
	workspace, plane := borrow16(area)
	for ch := lo; ch < hi; ch++ {
		c.f.Widen(plane, in[ch*area:][:area], signed, int16(zero))
		framePlane(s, q, int16sOf(frame[bytes*ch*q.size:][:bytes*q.size]), plane)
	}
	scratch.Put(workspace)
}

// block computes output channels o0 to o1 of group g in panels n0 to n1.
func (a *convInt8NCHWArgs) block(buf []uint8, runs []simd.Run, g, n0, n1, o0, o1 int) []simd.Run {
	c, s, og, x := a.c, a.s, a.og, a.frame
	q, f, bytes := c.plan, c.f, c.bytes()
	area := s.OH * s.OW
	in := x[bytes*g*s.C/s.Groups*q.size:]
	var t *simd.IntTile
	var codes *simd.CodeTile
	if a.biased != nil {
		codes = a.sink.tile()
		t, codes.RowOut = &codes.IntTile, area
	} else {
		t = intTiles.Get().(*simd.IntTile)
	}
	// The buffer holds kBlock float32 values per column.
	most, together := kBlock*4/bytes, a.sink.area == 0
	width := (n1 - n0) * f.Cols
	height := f.Rows // rows of sums that are kept
	if c.line > most || together {
		height = o1 - o0
	}
	workspace, fs := borrow(height * width)
	sums := asInt32(fs)
	t.Segs, t.RowA, t.RowC = 1, bytes*c.line, 4*width
	for k0 := 0; k0 < c.line; k0 += most {
		steps := min(most, c.line-k0)
		last := k0+steps == c.line
		t.K = steps * bytes / 4
		for n := n0; n < n1; n++ {
			p0, panel := n*f.Cols, buf[(n-n0)*bytes*steps*f.Cols:]
			switch {
			case q.frame:
				runs = s.runs(q, runs[:0], p0, min(f.Cols, area-p0))
			case a.inPlace && p0+f.Cols > area:
				runs = a.gatherRest(panel, in, runs, k0, steps, p0)
				continue
			default:
				runs = append(runs[:0], simd.Run{From: int32(p0)})
			}
			c.gather(panel, in, c.offs[k0:][:steps], runs)
		}
		t.SetContinue(k0 > 0)
		for o := o0; o < o1; {
			rows, ch := f.Part(o1-o), g*og+o
			t.A = c.at(ch*c.line + k0)
			here := sums
			if height > f.Rows {
				here = sums[(o-o0)*width:]
			}
			for n := range n1 - n0 {
				t.B, t.C = unsafe.Pointer(&buf[n*bytes*steps*f.Cols]), &here[n*f.Cols]
				p0 := (n0 + n) * f.Cols
				switch cols := min(f.Cols, area-p0); {
				case codes != nil && 2*cols > f.Cols:
					t.Start = &a.biased[ch]
					if last {
						a.requant(codes, ch, rows, p0, cols)
					} else {
						f.RunTurned(t, rows, cols)
					}
				case c.sums != nil:
					t.Start = &a.start[ch]
					f.RunTurned(t, rows, cols)
					if last && codes != nil {
						a.put(a.first+ch, rows, p0, cols, here[n*f.Cols:], width)
					}
				default:
					f.Run(t, rows, f.Cols, true)
				}
			}
			if last && !together && codes == nil {
				a.put(a.first+ch, rows, n0*f.Cols, min(width, area-n0*f.Cols), here, width)
			}
			o += rows
		}
	}
	if together {
		a.put(a.first+g*og+o0, o1-o0, n0*f.Cols, min(width, area-n0*f.Cols), sums, width)
	}
	scratch.Put(workspace)
	if codes != nil {
		releaseCodeTile(codes)
	} else {
		releaseIntTile(t)
	}
	return runs
}

// gatherRest writes the partial panel from position p0 from a copy, as reads beyond the last
// channel could leave the input.
func (a *convInt8NCHWArgs) gatherRest(panel, in []uint8, runs []simd.Run, k0, steps, p0 int) []simd.Run {
	c, area, cols := a.c, a.c.plan.size, a.c.f.Cols
	workspace, rest := borrow8(steps * cols)
	for i := range min(steps, a.s.C/a.s.Groups-k0) {
		copy(rest[i*cols:][:cols], in[(k0+i)*area+p0:(k0+i+1)*area])
	}
	runs = append(runs[:0], simd.Run{})
	c.gather(panel, rest, c.rest[:steps], runs)
	scratch.Put(workspace)
	return runs
}

// requant computes the quantised values of rows channels from channel ch at cols positions from p0.
func (a *convInt8NCHWArgs) requant(t *simd.CodeTile, ch, rows, p0, cols int) {
	area := a.sink.area
	t.SetColumns(cols)
	t.Out = &a.sink.y[(a.first+ch)*area+p0:][:(rows-1)*area+cols][0]
	t.Scales = (*int32)(unsafe.Pointer(&a.sink.r.Scales[ch:][:rows][0]))
	a.c.f.TurnedRescaled(t, rows)
}
