package conv

import (
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// SIMD window kernels: depthwise convolutions and pooling. Over [N,H,W,C] they vectorise over the
// channels of a position, over [N,C,H,W] over the positions of a row. Input rows are copied with
// padding shortly before they are used.

// windowScratch holds the kernel arguments of a work item.
type windowScratch struct {
	floats simd.Window
	copies simd.Window
	ints   simd.IntWindow
	offs   []int
	lines  []int // index of the input row in each row of a ring
}

var windowPool = sync.Pool{New: func() any { return new(windowScratch) }}

// give clears the pointers and returns r to the pool.
func (r *windowScratch) give() {
	r.floats, r.copies, r.ints = simd.Window{}, simd.Window{}, simd.IntWindow{}
	windowPool.Put(r)
}

// ring is a ring buffer of the padded input rows of one output row, with size values per
// position.
type ring[F any] struct {
	w, lines, size int // positions per row, rows, values per position
	data           []F
	holds          []int
}

// newRing returns a ring for output rows of s; the caller sets its memory.
func newRing[F any](s *Shape, size int) ring[F] {
	return ring[F]{w: (s.OW-1)*s.StrideW + (s.KW-1)*s.DilW + 1, lines: (s.KH-1)*s.DilH + 1, size: size}
}

// len returns the number of values, without those that kernels read beyond the end.
func (g *ring[F]) len() int { return g.w * g.lines * g.size }

// line loads the rows that output row oy needs and writes the offsets of its taps, in values, to
// offs. put converts a piece of a row. edge fills the padding; negative left padding crops the
// input.
func (g *ring[F]) line(s *Shape, oy int, offs []int, edge F, put func(dst []F, y, x, n int)) {
	for ky := range s.KH {
		y := oy*s.StrideH + ky*s.DilH
		slot := y % g.lines
		for kx := range s.KW {
			offs[ky*s.KW+kx] = (slot*g.w + kx*s.DilW) * g.size
		}
		if g.holds[slot] == y {
			continue
		}
		g.holds[slot] = y
		line := g.data[slot*g.w*g.size:][:g.w*g.size]
		iy := y - s.PadT
		left := min(max(s.PadL, 0), g.w)
		right := max(min(g.w, s.PadL+s.W), left)
		if uint(iy) >= uint(s.H) {
			right = left
		}
		scratch.Fill(line[:left*g.size], edge)
		if right > left {
			put(line[left*g.size:right*g.size], iy, max(-s.PadL, 0), right-left)
		}
		scratch.Fill(line[right*g.size:], edge)
	}
}

// lineGrain is the number of output rows of [N,H,W,C] per work item; line is the number of
// multiplications of a row, of which a thread does about 20 per nanosecond.
func lineGrain(line int) int { return max(1, workers.Grain(20)/max(1, line)) }

// images calls f for each image with its part of rows lo to hi of all images.
func (s *Shape) images(lo, hi int, f func(n, lo, hi int)) {
	for lo < hi {
		n := lo / s.OH
		end := min(hi, (n+1)*s.OH)
		f(n, lo-n*s.OH, end-n*s.OH)
		lo = end
	}
}

// WindowWalker computes the windows of a convolution or of pooling.
type WindowWalker struct {
	conv *Float32 // nil for pooling
	Pool pooling
	Y    []float32
}

// pooling computes n values at each of places of a pooling operator.
type pooling interface {
	Walk(t *simd.Window, places, n int)
}

// line computes a row of [N,H,W,C]; t is set up except for Dst.
func (w *WindowWalker) line(s *Shape, t *simd.Window, n, oy int) {
	if w.Pool != nil {
		t.Dst = &w.Y[(n*s.OH+oy)*s.OW*s.C]
		w.Pool.Walk(t, s.OW, s.C)
		return
	}
	c := w.conv
	t.Dst, t.W = &w.Y[(n*s.OH+oy)*s.OW*s.OC], &c.weights[0]
	t.Bias = nil
	if c.bias != nil {
		t.Bias = &c.bias[0]
	}
	t.SetClamp(c.act.On, c.act.Min, c.act.Max)
	c.windows.Lanes(t, s.OW, s.OC)
}

// plane computes plane out of [N,C,H,W]: n values at each of places.
func (w *WindowWalker) plane(t *simd.Window, out, places, n int) {
	if w.Pool != nil {
		w.Pool.Walk(t, places, n)
		return
	}
	c := w.conv
	o := out % c.s.OC
	t.W, t.Bias = &c.weights[o*c.k], &zeroBias
	if c.bias != nil {
		t.Bias = &c.bias[o]
	}
	t.SetClamp(c.act.On, c.act.Min, c.act.Max)
	c.windows.Spread(t, places, n)
}

// windowArgs holds the arguments of a work item.
type windowArgs struct {
	s    *Shape
	f    *simd.Windows
	q    *NCHWPlan // over [N,C,H,W]
	x    []float32
	og   int
	edge float32 // padding value
	w    WindowWalker
}

// InsideImage reports whether no window crosses the border.
func (s *Shape) InsideImage() bool {
	return s.PadT == 0 && s.PadL == 0 && (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH < s.H && (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW < s.W
}

// FloatLines computes windows over [N,H,W,C].
func (s *Shape) FloatLines(p *workers.Pool, x []float32, og int, edge float32, w WindowWalker) {
	workers.Do(p, s.N*s.OH, lineGrain(s.OW*s.C*og*s.KH*s.KW), windowArgs{s: s, x: x, og: og, edge: edge, w: w}, func(a windowArgs, lo, hi int) {
		r := windowPool.Get().(*windowScratch)
		a.s.images(lo, hi, func(n, lo, hi int) { a.lines(r, n, lo, hi) })
		r.give()
	})
}

// lines computes rows lo to hi of image n.
func (a *windowArgs) lines(r *windowScratch, n, lo, hi int) {
	s, og := a.s, a.og
	size := s.C * og
	taps := s.KH * s.KW
	in := s.H * s.W * s.C
	t, img := &r.floats, a.x[n*in:][:in]
	t.StepSrc, t.StepDst, t.StepW = 4*s.StrideW*size, 4*size, 4*size
	r.offs = slices.Grow(r.offs[:0], taps)[:taps]
	if og == 1 && s.InsideImage() {
		for i := range r.offs {
			r.offs[i] = 4 * (i/s.KW*s.DilH*s.W + i%s.KW*s.DilW) * size
		}
		t.SetTaps(r.offs)
		for oy := lo; oy < hi; oy++ {
			t.Src = &img[oy*s.StrideH*s.W*size]
			a.w.line(s, t, n, oy)
		}
		return
	}
	g := newRing[float32](s, size)
	sc, buf := scratch.Borrow(g.len())
	g.data, g.holds = buf, slices.Grow(r.lines[:0], g.lines)[:g.lines]
	r.lines = g.holds
	scratch.Fill(g.holds, -1)
	put := func(dst []float32, y, x, n int) {
		src := img[(y*s.W+x)*s.C:][:n*s.C]
		if og == 1 {
			copy(dst, src)
			return
		}
		a.w.conv.repeats.Floats(dst, src)
	}
	t.Src = &buf[0]
	for oy := lo; oy < hi; oy++ {
		g.line(s, oy, r.offs, a.edge, put)
		for i := range r.offs {
			r.offs[i] *= 4
		}
		t.SetTaps(r.offs)
		a.w.line(s, t, n, oy)
	}
	scratch.Float32s.Put(sc)
}

// windowLines runs a depthwise convolution over [N,H,W,C].
func (c *Float32) windowLines(p *workers.Pool, x, y []float32) {
	c.s.FloatLines(p, x, c.og, 0, WindowWalker{conv: c, Y: y})
}

var zeroBias float32

// walk describes how the outputs of a plane are computed: n values at each of places. together
// says that they are adjacent in the padded copy, including the padding between rows, for which
// unused values are computed: a register holds several short rows.
func (s *Shape) walk(q *NCHWPlan, register int) (places, n int, together bool) {
	if q.w == s.OW || !q.frame {
		return 1, s.OH * s.OW, false
	}
	n = (s.OH-1)*q.w + s.OW
	if 2*((n+register-1)/register) <= s.OH*((s.OW+register-1)/register)+1 || s.OW < 2*register && s.OH > 1 && register < 32 {
		return 1, n, true
	}
	return s.OH, s.OW, false
}

// FloatPlanes computes windows over planes of [N,C,H,W]: each input plane gives og output planes.
func (s *Shape) FloatPlanes(p *workers.Pool, f *simd.Windows, q *NCHWPlan, x []float32, og int, edge float32, w WindowWalker) {
	taps := s.KH * s.KW
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, s.OH*s.OW*taps*og)), windowArgs{s, f, q, x, og, edge, w}, func(a windowArgs, lo, hi int) {
		a.planes(lo, hi)
	})
}

// planes computes planes lo to hi.
func (a *windowArgs) planes(lo, hi int) {
	s, f, q, per := a.s, a.f, a.q, a.og
	taps := s.KH * s.KW
	area := s.H * s.W
	places, n, together := s.walk(q, 16)
	// A plane without padding needs no copy.
	copied := q.frame && (q.w != s.W || q.h != s.H || q.Size != area || !s.InsideImage())
	r := windowPool.Get().(*windowScratch)
	r.offs = slices.Grow(r.offs[:0], taps)[:taps]
	for i := range r.offs {
		if r.offs[i] = 0; q.frame {
			r.offs[i] = 4 * int(q.offs[i])
		}
	}
	t := &r.floats
	t.StepSrc, t.StepDst = 4*q.w, 4*s.OW
	t.SetTaps(r.offs)
	var sc *[]float32
	var buf, workspace []float32
	if copied || together {
		sc, buf = scratch.Borrow(q.Size + n)
		buf, workspace = buf[:q.Size], buf[q.Size:]
		if copied {
			s.frameBorders(q, func(at, n int) { scratch.Fill(buf[at:at+n], a.edge) })
		}
	}
	for i := lo; i < hi; i++ {
		plane := a.x[i*area:][:area]
		if copied {
			frameFloats(s, q, f, &r.copies, buf, plane)
			plane = buf
		}
		t.Src = &plane[0]
		for o := i * per; o < (i+1)*per; o++ {
			out := a.w.Y[o*s.OH*s.OW:][:s.OH*s.OW]
			if !together {
				t.Dst = &out[0]
				a.w.plane(t, o, places, n)
				continue
			}
			t.Dst = &workspace[0]
			a.w.plane(t, o, places, n)
			f.CopyLines(&r.copies, out, s.OW, workspace, q.w, 1, s.OW, s.OH)
		}
	}
	if sc != nil {
		scratch.Float32s.Put(sc)
	}
	r.give()
}

// windowPlanes runs a depthwise convolution over [N,C,H,W].
func (c *Float32) windowPlanes(p *workers.Pool, x, y []float32) {
	c.s.FloatPlanes(p, c.windows, c.planes, x, c.og, 0, WindowWalker{conv: c, Y: y})
}

// Largest window, and padded row or plane, for SIMD kernels: window sizes come unchecked from
// node attributes.
const (
	MaxTaps   = 1 << 14
	MaxFramed = 1 << 26
)
