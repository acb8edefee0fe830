package kernel

import (
	"math"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// GEMM kernels with fused requantisation: sums become quantised values while they are in
// registers; see [simd.CodeTile].

var codeTiles = sync.Pool{New: func() any { return new(simd.CodeTile) }}

// releaseCodeTile clears the pointers of a tile and returns it to the pool.
func releaseCodeTile(t *simd.CodeTile) {
	t.IntTile, t.Out, t.Scales = simd.IntTile{}, nil, nil
	codeTiles.Put(t)
}

// smallScales reports whether tiles can multiply by the scales.
func (q *Rescale) smallScales() bool { return !q.plain && q.q.Small }

// fusedRequant holds the requantisation parameters of tiles: initial accumulators, the
// multipliers of each panel, and how it rounds.
type fusedRequant struct {
	start, scales []int32
	rounds        []uint8
	fusing        fusing   // state for which they were packed
	fixed         *Rescale // or the ONNX parameters whose biases start includes
}

// fusesRequant reports whether tiles requantise for a sink.
func (c *convInt8NHWC) fusesRequant(sink *epilogue) bool {
	w := &c.panels[0]
	if w.sums == nil || c.sparse != nil || c.grouped() || sink.sums != nil || sink.floats != nil || sink.area > 0 || !w.f.HasCodes() {
		return false
	}
	if sink.r != nil {
		return sink.r.smallScales()
	}
	q := sink.q
	return q.scales.Small && simd.EightBits(q.Zero, q.Min, q.Max)
}

// startsOf returns the initial accumulators of all panels for requantisation by r. It uses a
// scratch buffer (workspace) if they may differ in the next run.
func (c *convInt8NHWC) startsOf(r *Rescale, og int) (start []int32, workspace *[]float32) {
	if !r.Fixed {
		workspace, fs := borrow(len(c.start))
		start = asInt32(fs)
		c.biased(start, r.Bias, og)
		return start, workspace
	}
	if len(c.codes.start) == 0 || c.codes.fixed != r {
		c.codes.start = append(c.codes.start[:0], c.start...)
		c.biased(c.codes.start, r.Bias, og)
		c.codes.fixed = r
	}
	return c.codes.start, nil
}

// biased writes the initial accumulators of all panels, including their biases.
func (c *convInt8NHWC) biased(dst, bias []int32, og int) {
	n := len(c.panels[0].sums)
	for g := range c.panels {
		to, from := dst[g*n:][:og], c.start[g*n:][:og]
		for i, b := range bias[g*og:][:og] {
			to[i] = from[i] + b
		}
	}
}

// fusedRequantOf returns the parameters of tiles for TFLite's rounding and the zero point of the
// last run.
func (c *convInt8NHWC) fusedRequantOf(q *Requant, og int) *fusedRequant {
	panels := c.plan.panels
	if len(c.codes.start) > 0 && c.codes.fusing == q.fusing {
		return &c.codes
	}
	c.codes.fusing = q.fusing
	c.codes.start = zeroed(c.codes.start, len(c.start))
	c.codes.scales = zeroed(c.codes.scales, len(c.panels)*panels*simd.CodeScales)
	c.codes.rounds = zeroed(c.codes.rounds, len(c.panels)*panels)
	copy(c.codes.start, c.start)
	zero := q.Zero
	if q.Max > math.MaxInt8 {
		zero -= 128
	}
	for g := range c.panels {
		for i := range panels {
			at, n := c.codes.scales[(g*panels+i)*simd.CodeScales:][:simd.CodeScales], min(simd.CodeColumns, og-i*simd.CodeColumns)
			start := c.codes.start[g*len(c.panels[0].sums)+i*simd.CodeColumns:][:n]
			c.codes.rounds[g*panels+i] = q.scales.PackCodes(at, start, g*og+i*simd.CodeColumns, n, zero, q.Min >= q.Zero)
		}
	}
	return &c.codes
}

// tile returns a tile set up for the requantisation of a sink.
func (k *epilogue) tile() *simd.CodeTile {
	t := codeTiles.Get().(*simd.CodeTile)
	if k.r != nil {
		t.SetRescaling(&k.r.q)
	} else {
		t.SetLimits(k.q.Min, k.q.Max)
	}
	return t
}

// requantPanel computes the quantised values of panel n of a work item. buf is scratch for the
// sums of all but the last pass.
func (q *convInt8NHWCArgs) requantPanel(t *simd.CodeTile, v lineView, y, n int, part linePart, buf []int32) {
	g, p0, p1 := part.g, part.p0, part.p1
	l, w := q.c.plan, &q.c.panels[g]
	f, cg := w.f, q.s.C/q.s.Groups
	ch, cols := g*q.og+n*f.Cols, min(f.Cols, q.og-n*f.Cols)
	t.SetColumns(cols)
	t.Start, t.RowOut = &q.codes.start[g*len(w.sums)+n*f.Cols], l.stepC
	if r := q.sink.r; r != nil {
		t.Scales = (*int32)(unsafe.Pointer(&r.Scales[ch : ch+cols][0]))
	} else {
		t.Scales = &q.codes.scales[(g*l.panels+n)*simd.CodeScales]
		t.SetRounding(q.codes.rounds[g*l.panels+n])
	}
	t.Ahead, t.C = w.nextPanel(n, part.n1), &buf[0]
	count, lines := p1-p0, part.l1-part.l0
	if q.wide > 0 && q.wide == count && l.lineC == count*l.stepC {
		count, lines = lines*count, 1
	}
	rows, calls := count, lines
	t.Segs = l.passes[0].segs
	switch {
	case q.wide > 0:
		rows, calls = count+(lines-1)*q.wide, 1
	case lines > 1 && w.sparse4of8 == nil && t.Ahead == nil && f.RunsPanels(&t.IntTile, count):
		q.requantRows(t, v, y+part.l0*l.lineC+p0*l.stepC+ch, n, part, cols)
		return
	}
	for line := part.l0; line < part.l0+calls; line++ {
		out := q.sink.y[y+line*l.lineC+p0*l.stepC+ch:]
		t.Out = &out[:(count-1)*l.stepC+cols][0]
		for i := range l.passes {
			pass := &l.passes[i]
			t.Segs, t.SegA = pass.segs, pass.seg
			t.A = unsafe.Pointer(&v.x[line*l.lineA+p0*l.stepA+g*cg+pass.a-v.base])
			t.B = w.at(n, i*pass.segs*w.pairs())
			t.SetContinue(i > 0)
			switch {
			case i < len(l.passes)-1 || rows > count:
				w.run(&t.IntTile, rows, cols)
			case q.sink.r != nil:
				w.runRescaled(t, count)
			default:
				w.runRequant(t, count)
			}
			t.Ahead = nil
		}
	}
	if rows == count {
		return
	}
	for i := range lines {
		out := q.sink.y[y+(part.l0+i)*l.lineC+ch:]
		t.Out, t.C = &out[:(count-1)*l.stepC+cols][0], &buf[i*q.wide*f.Cols]
		if q.sink.r != nil {
			f.SumsRescaled(t, count)
		} else {
			f.SumsToCodes(t, count)
		}
	}
}

// requantRows is requantPanel for all rows of a work item at once, of cols columns: configuring
// tile registers is slow. The first output is at position y.
func (q *convInt8NHWCArgs) requantRows(t *simd.CodeTile, v lineView, y, n int, part linePart, cols int) {
	l, w := q.c.plan, &q.c.panels[part.g]
	count, lines := part.p1-part.p0, simd.Lines{N: part.l1 - part.l0, A: l.lineA}
	t.Out = &q.sink.y[y:][:(lines.N-1)*l.lineC+(count-1)*l.stepC+cols][0]
	for i := range l.passes {
		pass := &l.passes[i]
		t.Segs, t.SegA = pass.segs, pass.seg
		t.A = unsafe.Pointer(&v.x[part.l0*l.lineA+part.p0*l.stepA+part.g*q.s.C/q.s.Groups+pass.a-v.base])
		t.B = w.at(n, i*pass.segs*w.pairs())
		t.SetContinue(i > 0)
		switch {
		case i < len(l.passes)-1:
			w.f.RunLines(&t.IntTile, count, cols, lines)
		case q.sink.r != nil:
			w.f.LinesRescaled(t, count, lines, l.lineC)
		default:
			w.f.LinesToCodes(t, count, lines, l.lineC)
		}
	}
}

// runRescaled is [intPanels.run] with requantisation by per-column scales.
func (w *intPanels) runRescaled(t *simd.CodeTile, rows int) {
	if w.sparse4of8 != nil {
		w.sparse4of8.Rescaled(t, rows)
		return
	}
	w.f.QuadsRescaled(t, rows)
}

// runRequant is [intPanels.run] with requantisation in TFLite's rounding.
func (w *intPanels) runRequant(t *simd.CodeTile, rows int) {
	if w.sparse4of8 != nil {
		w.sparse4of8.ToCodes(t, rows)
		return
	}
	w.f.QuadsToCodes(t, rows)
}

// gemmEpilogue receives the sums of a multiplication, or writes y requantised by r, which is
// small.
type gemmEpilogue struct {
	sums   []int32
	r      *Rescale
	y      []uint8
	scales []float32 // of each column, or of the columns of any panel
}

// columns writes the initial accumulators of n columns, including their biases, to the front of
// workspace. If all columns have one scale it writes that scale for the cols columns of a panel
// after them.
func (k *gemmEpilogue) columns(n, cols int, start []int32, workspace []float32) {
	to := asInt32(workspace[:len(start)])
	copy(to, start)
	if len(k.r.Scales) > 1 || n == 1 {
		for i, b := range k.r.Bias[:n] {
			to[i] += b
		}
		k.scales = k.r.Scales
		return
	}
	for i := range to[:n] {
		to[i] += k.r.Bias[0]
	}
	k.scales = workspace[len(start):][:cols]
	fill(k.scales, k.r.Scales[0])
}

// fusesRequant reports whether tiles requantise m rows: a single row computes several panels at a
// time instead.
func (p *PackedQ) fusesRequant(m int, tables []ByteTable, q *Rescale) bool {
	return m > 1 && p.panels != nil && p.panels.sums != nil && p.bitmask == nil && len(tables) == 1 && !p.usesSparse(m) && q.smallScales() && p.panels.f.HasCodes()
}

// fusedPieces computes work items lo to hi with fused requantisation.
func (q *intArgs) fusedPieces(lo, hi int) {
	w, n := q.p.panels, q.p.n
	f, panels := w.f, (n+w.f.Cols-1)/w.f.Cols
	t := codeTiles.Get().(*simd.CodeTile)
	t.SetRescaling(&q.to.r.q)
	t.K, t.Segs, t.RowA, t.RowC, t.RowOut = w.pairs(), 1, q.line, 4*f.Cols, n
	workspace, fs := borrow(f.Rows * f.Cols)
	t.C = &asInt32(fs)[0]
	for i := lo; i < hi; i++ {
		m0, m1 := portion(i/q.parts, q.blocks, q.m)
		n0, n1 := portion(i%q.parts, q.parts, panels)
		for at := n0 * f.Cols; at < min(n1*f.Cols, n); at += f.Cols {
			cols := min(f.Cols, n-at)
			t.SetColumns(cols)
			t.B, t.Start, t.Ahead = w.at(at/f.Cols, 0), &q.start[at], w.nextPanel(at/f.Cols, n1)
			t.Scales = (*int32)(unsafe.Pointer(&q.to.scales[at%len(q.to.scales):][:cols][0]))
			for r := m0; r < m1; {
				rows := f.Part(m1 - r)
				t.A = unsafe.Pointer(&q.a[r*q.line])
				t.Out = &q.to.y[r*n+at:][:(rows-1)*n+cols][0]
				w.runRescaled(t, rows)
				t.Ahead = nil
				r += rows
			}
		}
	}
	scratch.Put(workspace)
	releaseCodeTile(t)
}
