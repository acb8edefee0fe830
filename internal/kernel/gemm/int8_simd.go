package gemm

import (
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int8 GEMM with SIMD kernels. Activations are widened to 16 bits as differences to their zero
// point, so that padding is zero and sums need no correction. Neighbouring K steps are multiplied
// in pairs; a segment of odd length ends with a zero weight. If the instruction set has 4-way
// int8 dot products (VNNI, SDOT) and weights fit 8 bits, activations stay 8-bit, converted to
// unsigned, or to signed if the instruction set requires it. Padding is then the zero point, and
// sums start with a correction for it.

// IntTiles lends integer tiles; [ReleaseIntTile] returns them.
var IntTiles = sync.Pool{New: func() any { return new(simd.IntTile) }}

// ReleaseIntTile clears the pointers of a tile and returns it to the pool.
func ReleaseIntTile(t *simd.IntTile) {
	*t = simd.IntTile{}
	IntTiles.Put(t)
}

// IntPanels holds weights packed for SIMD kernels: column panels with, for each pair or 4-way
// group of K steps, the weights of all columns.
type IntPanels struct {
	F          *simd.Ints
	Segs, Seg  int              // segments of the sum and their length
	Fours      bool             // use 4-way kernels if possible
	Sparse4of8 *simd.Sparse4of8 // nil for dense weights
	Narrow     []int8
	Wide       []int16         // replaces narrow if a weight needs more than 8 bits
	Sums       []int32         // of the weights of each column, for 4-way kernels
	order      []uint8         // of activations, see orderPairs; nil for the natural one
	split      [][]splitWindow // of each segment; nil if no window is split
	// spare keeps the buffers of earlier weights: weights that change with each run may fit 8
	// bits in one run and not in another.
	spare struct {
		narrow []int8
		wide   []int16
		sums   []int32
		order  []uint8
	}
}

// GroupSize returns the number of K steps that are multiplied together.
func (w *IntPanels) GroupSize() int {
	if w.Sums != nil {
		return 4
	}
	return 2
}

// Pairs returns the number of pairs or 4-way groups of a segment.
func (w *IntPanels) Pairs() int { return (w.Seg + w.GroupSize() - 1) / w.GroupSize() }

// ZeroPointSums computes the initial accumulators of 4-way kernels: the unsigned zero point of the
// activations times the weight sums.
func ZeroPointSums(dst, sums []int32, zero int32) {
	dst, by := dst[:len(sums)], -zero
	for i, v := range sums {
		dst[i] = by * v
	}
}

// UnsignedZero returns a zero point for unsigned values: 128 is added to signed ones.
func UnsignedZero(signed bool, zero int32) int32 {
	if signed {
		return zero + 128
	}
	return zero
}

// At returns the address of a panel row (a pair or 4-way group).
func (w *IntPanels) At(panel, row int) unsafe.Pointer {
	i := (panel*w.Segs*w.Pairs() + row) * w.F.Cols * w.GroupSize()
	if w.Narrow != nil {
		return unsafe.Pointer(&w.Narrow[i])
	}
	return unsafe.Pointer(&w.Wide[i])
}

// prefetchMin is the size in bytes from which weights are prefetched, as the L2 cache does not
// hold them all.
const prefetchMin = 1 << 20

// NextPanel returns the panel after panel n, up to n1, if weights are to be prefetched, else nil.
func (w *IntPanels) NextPanel(n, n1 int) unsafe.Pointer {
	if w.Sums == nil || n+1 >= n1 || len(w.Narrow) < prefetchMin {
		return nil
	}
	return w.At(n+1, 0)
}

// Run computes rows rows of a tile, of which at least cols columns are needed.
func (w *IntPanels) Run(t *simd.IntTile, rows, cols int) {
	switch {
	case w.Sparse4of8 != nil:
		w.Sparse4of8.Run(t, rows)
		return
	case w.order != nil:
		w.runOrdered(t, rows)
		return
	case w.Sums != nil:
		w.F.RunQuads(t, rows, cols)
		return
	}
	w.F.Run(t, rows, cols, w.Wide != nil)
}

// gemmInts is [MultiplyInt8] with SIMD kernels.
func gemmInts(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedInt8, y []int32) {
	if w.Panels.Sums != nil {
		gemmFours(p, m, x, tables, w, gemmEpilogue{sums: y})
		return
	}
	f, k := w.Panels.F, w.K
	line := 2 * w.Panels.Pairs()
	sc, a := scratch.Borrow16(m * line)
	workers.Do(p, m, max(1, scratch.CopyGrain/k), widenArgs{f, a, x, tables, k, line}, func(q widenArgs, lo, hi int) {
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
	w.product(p, m, scratch.BytesOf16(a), 2*line, nil, gemmEpilogue{sums: y})
	scratch.Float32s.Put(sc)
}

// widenArgs holds the arguments of a work item that widens rows.
type widenArgs struct {
	f       *simd.Ints
	a       []int16
	x       []uint8
	tables  []ByteTable
	k, line int
}

// gemmFours is gemmInts with 4-way kernels. With a single table the sums may be requantised.
func gemmFours(p *workers.Pool, m int, x []uint8, tables []ByteTable, w *PackedInt8, to gemmEpilogue) {
	f, k, sums := w.Panels.F, w.K, w.Panels.Sums
	line, signed := 4*w.Panels.Pairs(), tables[0].signed
	start := w.start
	if zero := f.QuadInputZero(signed, tables[0].zero); start == nil || len(tables) > 1 || zero != w.zero {
		sc, workspace := scratch.Borrow(len(sums))
		defer scratch.Float32s.Put(sc)
		if start = scratch.AsInt32(workspace); len(tables) > 1 {
			zero = 0 // the zero point of each row is applied below
		}
		ZeroPointSums(start, sums, zero)
	}
	if to.r != nil {
		sc, workspace := scratch.Borrow(len(sums) + f.Cols)
		defer scratch.Float32s.Put(sc)
		to.columns(w.N, f.Cols, start, workspace)
		start = scratch.AsInt32(workspace[:len(sums)])
	}
	a := x
	if signed != f.Signed || line != k {
		var sc *[]float32
		sc, a = scratch.Borrow8(m * line)
		defer scratch.Float32s.Put(sc)
		workers.Do(p, m, max(1, 2*scratch.CopyGrain/k), convertArgs{f, a, x, k, line, signed}, func(q convertArgs, lo, hi int) {
			q.rows(lo, hi)
		})
	}
	w.product(p, m, a, line, start, to)
	if len(tables) > 1 {
		e := simd.ElementKernels()
		for r := range m {
			z, row := f.QuadInputZero(signed, tables[r].zero), to.sums[r*w.N:][:w.N]
			for i := e.SubScaled(row, sums, z); i < len(row); i++ {
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
		q.f.QuadInput(dst, src, q.signed)
		return
	}
	whole := q.f.CopyBytes(dst, q.line, src, q.k, 1, q.k, hi-lo, q.signed != q.f.Signed)
	for ; len(dst) > 0; dst, src = dst[q.line:], src[q.k:] {
		if !whole {
			q.f.QuadInput(dst[:q.k], src[:q.k], q.signed)
		}
		clear(dst[q.k:q.line])
	}
}

// UsesSIMD reports whether SIMD kernels compute the multiplication.
func (p *PackedInt8) UsesSIMD() bool { return p.Panels != nil }

// product multiplies m rows, line bytes apart, by all panels: 16-bit rows, or 8-bit rows with the
// initial accumulators start.
func (p *PackedInt8) product(pool *workers.Pool, m int, a []uint8, line int, start []int32, to gemmEpilogue) {
	if p.bitmask != nil {
		p.bitmask.run(pool, m, a, line, start, to.sums)
		return
	}
	f, k := p.Panels.F, p.K
	panels := (p.N + f.Cols - 1) / f.Cols
	jobs := JobCount(pool, m*p.N*k, rateForRows(f.Rate(), m, 1))
	blocks := 1
	if m > f.Rows {
		// The rows of a work item and a panel stay in the L2 cache.
		most := max(f.Rows, 2*scratch.Block/line/f.Rows*f.Rows)
		blocks = (m + most - 1) / most
	}
	if t := pool.Threads(); jobs > 1 && m >= t*f.Rows {
		blocks = scratch.RoundUp(blocks, t) // equal blocks for each thread
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
	p                      *PackedInt8
	a                      []uint8
	start                  []int32
	m, line, blocks, parts int
	threads                int
	to                     gemmEpilogue
}

// part computes work items lo to hi.
func (q *intArgs) part(lo, hi int) {
	p, a, y, start, m, line := q.p, q.a, q.to.sums, q.start, q.m, q.line
	f, panels := p.Panels.F, (p.N+p.Panels.F.Cols-1)/p.Panels.F.Cols
	t := IntTiles.Get().(*simd.IntTile)
	var workspace *[]float32
	var buf []int32 // for a partial last panel
	if p.N%f.Cols != 0 {
		var fs []float32
		workspace, fs = scratch.Borrow(f.Rows * f.Cols)
		buf = scratch.AsInt32(fs)
	}
	t.K, t.Segs, t.RowA = p.Panels.Pairs(), 1, line
	for i := lo; i < hi; i++ {
		m0, m1 := Portion(i/q.parts, q.blocks, m)
		n0, n1 := Portion(i%q.parts, q.parts, panels)
		if m == 1 {
			n0, n1 = rowPortion(i, q.parts, q.threads, panels, false)
		}
		if m == 1 && start != nil && p.Panels.Sparse4of8 == nil {
			n0 = q.row(t, n0, n1)
		} else if start != nil && f.RunsPanels(t, m1-m0) {
			n0 = q.panels(t, m0, m1, n0, min(n1, p.N/f.Cols))
		}
		for n := n0; n < n1; n++ {
			width := min(f.Cols, p.N-n*f.Cols)
			t.B = p.Panels.At(n, 0)
			if start != nil {
				t.Start = &start[n*f.Cols]
			}
			for r := m0; r < m1; {
				h := f.Part(m1 - r)
				if width == f.Cols {
					h = f.PartOfOne(m1 - r)
				}
				t.A = unsafe.Pointer(&a[r*line])
				out := y[r*p.N+n*f.Cols:]
				if width == f.Cols {
					t.C, t.RowC = &out[0], 4*p.N
					p.Panels.Run(t, h, width)
				} else {
					t.C, t.RowC = &buf[0], 4*f.Cols
					p.Panels.Run(t, h, width)
					for j := range h {
						copy(out[j*p.N:][:width], buf[j*f.Cols:])
					}
				}
				r += h
			}
		}
	}
	if workspace != nil {
		scratch.Float32s.Put(workspace)
	}
	ReleaseIntTile(t)
}

// panels computes rows m0 to m1 of the whole panels n0 to n1, as many at a time as the kernels
// support. It returns the first panel that is not computed.
func (q *intArgs) panels(t *simd.IntTile, m0, m1, n0, n1 int) int {
	p := q.p
	f := p.Panels.F
	if n1 <= n0 {
		return n0
	}
	t.RowC, t.PanelB = 4*p.N, 4*p.Panels.Pairs()*f.Cols
	t.B, t.Start = p.Panels.At(n0, 0), &q.start[n0*f.Cols]
	t.Ahead = p.Panels.NextPanel(n0, n1)
	for r := m0; r < m1; {
		rows := f.Part(m1 - r)
		t.A, t.C = unsafe.Pointer(&q.a[r*q.line]), &q.to.sums[r*p.N+n0*f.Cols]
		f.RunPanels(t, rows, n1-n0)
		r += rows
	}
	return n1
}

// row computes a single row, several whole panels at a time. It returns the first panel that is
// not computed.
func (q *intArgs) row(t *simd.IntTile, n0, n1 int) int {
	p := q.p
	t.A, t.PanelB = unsafe.Pointer(&q.a[0]), 4*p.Panels.Pairs()*p.Panels.F.Cols
	for ; p.Panels.F.HasWideQuads() && n0+simd.WidePanels <= n1 && (n0+simd.WidePanels)*p.Panels.F.Cols <= p.N; n0 += simd.WidePanels {
		t.B, t.C, t.Start = p.Panels.At(n0, 0), &q.to.sums[n0*p.Panels.F.Cols], &q.start[n0*p.Panels.F.Cols]
		p.Panels.F.WideQuads(t)
	}
	return n0
}
