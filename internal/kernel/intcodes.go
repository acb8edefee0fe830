package kernel

import (
	"math"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Sums that become codes while they are in registers: see [simd.CodeTile]. Panels of which half or more is not there are computed as sums.

var codeTiles = sync.Pool{New: func() any { return new(simd.CodeTile) }}

// giveCodeTile forgets the matrices that a tile points to.
func giveCodeTile(t *simd.CodeTile) {
	t.IntTile, t.Out, t.Scales = simd.IntTile{}, nil, nil
	codeTiles.Put(t)
}

// small tells whether tiles multiply by the scales.
func (q *Rescale) small() bool { return !q.plain && q.q.Small }

// intCodes is what tiles need of a requantisation beside weights: what sums begin with, and the numbers of each panel.
type intCodes struct{ start, scales []int32 }

// makesCodes tells whether tiles make codes for a sink.
func (c *intLines) makesCodes(sink *tileSink, og int) bool {
	w := &c.panels[0]
	if w.sums == nil || c.sparse != nil || c.grouped() || sink.sums != nil || sink.floats != nil || sink.area > 0 || 2*og <= w.f.Cols || !w.f.HasCodes() {
		return false
	}
	if sink.r != nil {
		return sink.r.small()
	}
	q := sink.q
	return q.scales.Small && simd.EightBits(q.Zero, q.Min, q.Max)
}

// biased writes what the sums of all panels begin with, their biases and more included.
func (c *intLines) biased(dst, bias []int32, og int, more int32) {
	n := len(c.panels[0].sums)
	for g := range c.panels {
		to, from := dst[g*n:][:og], c.start[g*n:][:og]
		for i, b := range bias[g*og:][:og] {
			to[i] = from[i] + b + more
		}
	}
}

// codesOf is what tiles need for TFLite's rounding, for the zero point of the last run.
func (c *intLines) codesOf(q *Requant, og int) *intCodes {
	panels := c.plan.panels
	if len(c.codes.start) > 0 {
		return &c.codes
	}
	c.codes.start = room(c.codes.start, len(c.start))
	c.codes.scales = room(c.codes.scales, len(c.panels)*panels*simd.CodeScales)
	c.biased(c.codes.start, q.scales.Bias, og, math.MinInt32)
	zero := q.Zero
	if q.Max > math.MaxInt8 {
		zero -= 128
	}
	for g := range c.panels {
		for i := range panels {
			at := c.codes.scales[(g*panels+i)*simd.CodeScales:][:simd.CodeScales]
			q.scales.PackCodes(at, g*og+i*simd.CodeColumns, min(simd.CodeColumns, og-i*simd.CodeColumns), zero, q.Min >= q.Zero)
		}
	}
	return &c.codes
}

// tile is a tile for the codes of a sink.
func (k *tileSink) tile() *simd.CodeTile {
	t := codeTiles.Get().(*simd.CodeTile)
	if k.r != nil {
		t.SetRescaling(&k.r.q)
	} else {
		t.SetLimits(k.q.Zero, k.q.Min, k.q.Max)
	}
	return t
}

// codesOfPanel computes the codes of panel n of a piece; sums of all but the last pass have room in buf.
func (q *intLineArgs) codesOfPanel(t *simd.CodeTile, v lineView, y, n int, part linePart, buf []int32) {
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
	}
	for line := part.l0; line < part.l1; line++ {
		for at := p0; at < p1; {
			rows := evenly(p1-at, f.Rows)
			t.C = &buf[(at-p0)*f.Cols]
			out := q.sink.y[y+line*l.lineC+at*l.stepC+ch:]
			t.Out = &out[:(rows-1)*l.stepC+cols][0]
			for i := range l.passes {
				pass := &l.passes[i]
				t.Segs, t.SegA = pass.segs, pass.seg
				t.A = unsafe.Pointer(&v.x[line*l.lineA+at*l.stepA+g*cg+pass.a-v.base])
				t.B = w.at(n, i*pass.segs*w.pairs())
				t.SetContinue(i > 0)
				switch {
				case i < len(l.passes)-1:
					w.run(&t.IntTile, rows, f.Cols)
				case w.sifted != nil && q.sink.r != nil:
					w.sifted.Rescaled(t, rows)
				case w.sifted != nil:
					w.sifted.ToCodes(t, rows)
				case q.sink.r != nil:
					f.QuadsRescaled(t, rows)
				default:
					f.QuadsToCodes(t, rows)
				}
			}
			at += rows
		}
	}
}
