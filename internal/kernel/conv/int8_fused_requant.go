package conv

import (
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// fusesRequant reports whether tiles requantise for a sink.
func (c *int8NHWC) fusesRequant(sink *epilogue) bool {
	w := &c.panels[0]
	if w.Sums == nil || c.sparse != nil || c.grouped() || sink.sums != nil || sink.floats != nil || sink.area > 0 || !w.F.HasRequantised() {
		return false
	}
	if sink.r != nil {
		return sink.r.SmallScales()
	}
	q := sink.q
	return q.Scales.Small && simd.EightBits(q.Zero, q.Min, q.Max)
}

// startsOf returns the initial accumulators of all panels for requantisation by r. It uses a
// scratch buffer (workspace) if they may differ in the next run.
func (c *int8NHWC) startsOf(r *quantise.Rescale, og int) (start []int32, workspace *[]float32) {
	if !r.Fixed {
		workspace, fs := scratch.Borrow(len(c.start))
		start = scratch.AsInt32(fs)
		c.biased(start, r.Bias, og)
		return start, workspace
	}
	if len(c.codes.Start) == 0 || c.codes.Fixed != r {
		c.codes.Start = append(c.codes.Start[:0], c.start...)
		c.biased(c.codes.Start, r.Bias, og)
		c.codes.Fixed = r
	}
	return c.codes.Start, nil
}

// biased writes the initial accumulators of all panels, including their biases.
func (c *int8NHWC) biased(dst, bias []int32, og int) {
	n := len(c.panels[0].Sums)
	for g := range c.panels {
		to, from := dst[g*n:][:og], c.start[g*n:][:og]
		for i, b := range bias[g*og:][:og] {
			to[i] = from[i] + b
		}
	}
}

// fusedRequantOf returns the parameters of tiles for TFLite's rounding and the zero point of the
// last run.
func (c *int8NHWC) fusedRequantOf(q *quantise.Requant, og int) *gemm.FusedRequant {
	panels := c.plan.panels
	if len(c.codes.Start) > 0 && c.codes.Fusing == q.Fusing {
		return &c.codes
	}
	c.codes.Fusing = q.Fusing
	c.codes.Start = scratch.Zeroed(c.codes.Start, len(c.start))
	c.codes.Scales = scratch.Zeroed(c.codes.Scales, len(c.panels)*panels*simd.RequantScales)
	c.codes.Rounds = scratch.Zeroed(c.codes.Rounds, len(c.panels)*panels)
	copy(c.codes.Start, c.start)
	zero := q.Zero
	if q.Max > math.MaxInt8 {
		zero -= 128
	}
	for g := range c.panels {
		for i := range panels {
			at, n := c.codes.Scales[(g*panels+i)*simd.RequantScales:][:simd.RequantScales], min(simd.RequantColumns, og-i*simd.RequantColumns)
			start := c.codes.Start[g*len(c.panels[0].Sums)+i*simd.RequantColumns:][:n]
			c.codes.Rounds[g*panels+i] = q.Scales.PackRequant(at, start, g*og+i*simd.RequantColumns, n, zero, q.Min >= q.Zero)
		}
	}
	return &c.codes
}

// tile returns a tile set up for the requantisation of a sink.
func (k *epilogue) tile() *simd.CodeTile {
	t := gemm.CodeTiles.Get().(*simd.CodeTile)
	if k.r != nil {
		t.SetRescaling(&k.r.Q)
	} else {
		t.SetLimits(k.q.Min, k.q.Max)
	}
	return t
}

// requantPanel computes the quantised values of panel n of a work item. buf is scratch for the
// sums of all but the last pass.
func (q *int8NHWCArgs) requantPanel(t *simd.CodeTile, v lineView, y, n int, part linePart, buf []int32) {
	g, p0, p1 := part.g, part.p0, part.p1
	l, w := q.c.plan, &q.c.panels[g]
	f, cg := w.F, q.s.C/q.s.Groups
	ch, cols := g*q.og+n*f.Cols, min(f.Cols, q.og-n*f.Cols)
	t.SetColumns(cols)
	t.Start, t.RowOut = &q.codes.Start[g*len(w.Sums)+n*f.Cols], l.stepC
	if r := q.sink.r; r != nil {
		t.Scales = (*int32)(unsafe.Pointer(&r.Scales[ch : ch+cols][0]))
	} else {
		t.Scales = &q.codes.Scales[(g*l.panels+n)*simd.RequantScales]
		t.SetRounding(q.codes.Rounds[g*l.panels+n])
	}
	t.Ahead, t.C = w.NextPanel(n, part.n1), &buf[0]
	count, lines := p1-p0, part.l1-part.l0
	if q.wide > 0 && q.wide == count && l.lineC == count*l.stepC {
		count, lines = lines*count, 1
	}
	rows, calls := count, lines
	t.Segs = l.passes[0].Segs
	switch {
	case q.wide > 0:
		rows, calls = count+(lines-1)*q.wide, 1
	case lines > 1 && w.Sparse4of8 == nil && t.Ahead == nil && f.RunsPanels(&t.IntTile, count):
		q.requantRows(t, v, y+part.l0*l.lineC+p0*l.stepC+ch, n, part, cols)
		return
	}
	for line := part.l0; line < part.l0+calls; line++ {
		out := q.sink.y[y+line*l.lineC+p0*l.stepC+ch:]
		t.Out = &out[:(count-1)*l.stepC+cols][0]
		for i := range l.passes {
			pass := &l.passes[i]
			t.Segs, t.SegA = pass.Segs, pass.Seg
			t.A = unsafe.Pointer(&v.x[line*l.lineA+p0*l.stepA+g*cg+pass.A-v.base])
			t.B = w.At(n, i*pass.Segs*w.Pairs())
			t.SetContinue(i > 0)
			switch {
			case i < len(l.passes)-1 || rows > count:
				w.Run(&t.IntTile, rows, cols)
			case q.sink.r != nil:
				w.RunRescaled(t, count)
			default:
				w.RunRequant(t, count)
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
			f.SumsRequantised(t, count)
		}
	}
}

// requantRows is requantPanel for all rows of a work item at once, of cols columns: configuring
// tile registers is slow. The first output is at position y.
func (q *int8NHWCArgs) requantRows(t *simd.CodeTile, v lineView, y, n int, part linePart, cols int) {
	l, w := q.c.plan, &q.c.panels[part.g]
	count, lines := part.p1-part.p0, simd.Lines{N: part.l1 - part.l0, A: l.lineA}
	t.Out = &q.sink.y[y:][:(lines.N-1)*l.lineC+(count-1)*l.stepC+cols][0]
	for i := range l.passes {
		pass := &l.passes[i]
		t.Segs, t.SegA = pass.Segs, pass.Seg
		t.A = unsafe.Pointer(&v.x[part.l0*l.lineA+part.p0*l.stepA+part.g*q.s.C/q.s.Groups+pass.A-v.base])
		t.B = w.At(n, i*pass.Segs*w.Pairs())
		t.SetContinue(i > 0)
		switch {
		case i < len(l.passes)-1:
			w.F.RunLines(&t.IntTile, count, cols, lines)
		case q.sink.r != nil:
			w.F.LinesRescaled(t, count, lines, l.lineC)
		default:
			w.F.LinesRequantised(t, count, lines, l.lineC)
		}
	}
}
