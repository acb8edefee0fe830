package kernel

import (
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Windows in vectors: depthwise convolutions and pooling. Over [N,H,W,C] the channels of
// a position go together, over [N,C,H,W] the positions of a line. Input lines are copied
// with their borders shortly before they are used.

// windowRoom is what a piece of work needs beside memory for values.
type windowRoom struct {
	floats simd.Window
	copies simd.Window
	ints   simd.IntWindow
	offs   []int
	lines  []int // which line of the input each line of a ring holds
}

var windowRooms = sync.Pool{New: func() any { return new(windowRoom) }}

// give forgets the memory that a walk points to.
func (r *windowRoom) give() {
	r.floats, r.copies, r.ints = simd.Window{}, simd.Window{}, simd.IntWindow{}
	windowRooms.Put(r)
}

// ring keeps those lines of an image that the windows of one line of the output see,
// with borders, each position with size values.
type ring[F any] struct {
	w, lines, size int // positions of a line, lines, values at a position
	data           []F
	holds          []int
}

// newRing is for an output line of s; its memory comes later.
func newRing[F any](s *ConvShape, size int) ring[F] {
	return ring[F]{w: (s.OW-1)*s.StrideW + (s.KW-1)*s.DilW + 1, lines: (s.KH-1)*s.DilH + 1, size: size}
}

// len is the number of values, without those that reads go beyond the end.
func (g *ring[F]) len() int { return g.w * g.lines * g.size }

// line makes sure of the lines that output line oy sees, and writes where its taps lie,
// in values, to offs. put converts a piece of a line, edge stands beyond the borders; a left border below zero leaves out what lies within it.
func (g *ring[F]) line(s *ConvShape, oy int, offs []int, edge F, put func(dst []F, y, x, n int)) {
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
		fill(line[:left*g.size], edge)
		if right > left {
			put(line[left*g.size:right*g.size], iy, max(-s.PadL, 0), right-left)
		}
		fill(line[right*g.size:], edge)
	}
}

// lineGrain is the number of lines of the output of [N,H,W,C] that are worth a piece of
// work; line is the number of multiplications of one, of which a thread does some 20 in a nanosecond.
func lineGrain(line int) int { return max(1, workers.Grain(20)/max(1, line)) }

// images calls f with the lines of each image of lines lo to hi of all.
func (s *ConvShape) images(lo, hi int, f func(n, lo, hi int)) {
	for lo < hi {
		n := lo / s.OH
		end := min(hi, (n+1)*s.OH)
		f(n, lo-n*s.OH, end-n*s.OH)
		lo = end
	}
}

// walker computes with the windows of a convolution or of pooling.
type walker struct {
	conv *Conv // nil for pooling
	pool *Pool
	y    []float32
}

// line computes a line of [N,H,W,C] with a walk that is set up but for Dst.
func (w *walker) line(t *simd.Window, n, oy int) {
	if w.pool != nil {
		s := &w.pool.Shape
		t.Dst = &w.y[(n*s.OH+oy)*s.OW*s.C]
		w.pool.walk(t, s.OW, s.C)
		return
	}
	c, s := w.conv, &w.conv.s
	t.Dst, t.W = &w.y[(n*s.OH+oy)*s.OW*s.OC], &c.weights[0]
	t.Bias = nil
	if c.bias != nil {
		t.Bias = &c.bias[0]
	}
	t.SetClamp(c.act.On, c.act.Min, c.act.Max)
	c.windows.Lanes(t, s.OW, s.OC)
}

// plane computes plane out of [N,C,H,W], places with n values each.
func (w *walker) plane(t *simd.Window, out, places, n int) {
	if w.pool != nil {
		w.pool.walk(t, places, n)
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

// windowArgs is what a piece of a walk needs.
type windowArgs struct {
	s    *ConvShape
	f    *simd.Windows
	q    *planePlan // over [N,C,H,W]
	x    []float32
	og   int
	edge float32 // beyond the borders
	w    walker
}

// unframed tells whether no window goes over a border.
func (s *ConvShape) unframed() bool {
	return s.PadT == 0 && s.PadL == 0 && (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH < s.H && (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW < s.W
}

// floatLines walks windows over [N,H,W,C].
func (s *ConvShape) floatLines(p *workers.Pool, x []float32, og int, edge float32, w walker) {
	workers.Do(p, s.N*s.OH, lineGrain(s.OW*s.C*og*s.KH*s.KW), windowArgs{s: s, x: x, og: og, edge: edge, w: w}, func(a windowArgs, lo, hi int) {
		r := windowRooms.Get().(*windowRoom)
		a.s.images(lo, hi, func(n, lo, hi int) { a.lines(r, n, lo, hi) })
		r.give()
	})
}

// lines walks lines lo to hi of image n.
func (a *windowArgs) lines(r *windowRoom, n, lo, hi int) {
	s, og := a.s, a.og
	size := s.C * og
	taps := s.KH * s.KW
	in := s.H * s.W * s.C
	t, img := &r.floats, a.x[n*in:][:in]
	t.StepSrc, t.StepDst, t.StepW = 4*s.StrideW*size, 4*size, 4*size
	r.offs = slices.Grow(r.offs[:0], taps)[:taps]
	if og == 1 && s.unframed() {
		for i := range r.offs {
			r.offs[i] = 4 * (i/s.KW*s.DilH*s.W + i%s.KW*s.DilW) * size
		}
		t.SetTaps(r.offs)
		for oy := lo; oy < hi; oy++ {
			t.Src = &img[oy*s.StrideH*s.W*size]
			a.w.line(t, n, oy)
		}
		return
	}
	g := newRing[float32](s, size)
	sc, buf := borrow(g.len())
	g.data, g.holds = buf, slices.Grow(r.lines[:0], g.lines)[:g.lines]
	r.lines = g.holds
	fill(g.holds, -1)
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
		a.w.line(t, n, oy)
	}
	scratch.Put(sc)
}

// windowLines is a depthwise convolution over [N,H,W,C].
func (c *Conv) windowLines(p *workers.Pool, x, y []float32) {
	c.s.floatLines(p, x, c.og, 0, walker{conv: c, y: y})
}

var zeroBias float32

// walk is how the results of a plane are computed: at places, n values each. together
// says that they are neighbours in the frame, borders between the lines included, which
// are computed for nothing: registers hold several short lines.
func (s *ConvShape) walk(q *planePlan, register int) (places, n int, together bool) {
	if q.w == s.OW || !q.frame {
		return 1, s.OH * s.OW, false
	}
	n = (s.OH-1)*q.w + s.OW
	if 2*((n+register-1)/register) <= s.OH*((s.OW+register-1)/register)+1 || s.OW < 2*register && s.OH > 1 && register < 32 {
		return 1, n, true
	}
	return s.OH, s.OW, false
}

// floatPlanes walks windows over planes of [N,C,H,W]: each plane gives og planes of output.
func (s *ConvShape) floatPlanes(p *workers.Pool, f *simd.Windows, q *planePlan, x []float32, og int, edge float32, w walker) {
	taps := s.KH * s.KW
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, s.OH*s.OW*taps*og)), windowArgs{s, f, q, x, og, edge, w}, func(a windowArgs, lo, hi int) {
		a.planes(lo, hi)
	})
}

// planes walks planes lo to hi.
func (a *windowArgs) planes(lo, hi int) {
	s, f, q, per := a.s, a.f, a.q, a.og
	taps := s.KH * s.KW
	area := s.H * s.W
	places, n, together := s.walk(q, 16)
	// A plane that is its own frame needs no copy.
	copied := q.frame && (q.w != s.W || q.h != s.H || q.size != area || !s.unframed())
	r := windowRooms.Get().(*windowRoom)
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
	var buf, room []float32
	if copied || together {
		sc, buf = borrow(q.size + n)
		buf, room = buf[:q.size], buf[q.size:]
		if copied {
			s.frameBorders(q, func(at, n int) { fill(buf[at:at+n], a.edge) })
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
			out := a.w.y[o*s.OH*s.OW:][:s.OH*s.OW]
			if !together {
				t.Dst = &out[0]
				a.w.plane(t, o, places, n)
				continue
			}
			t.Dst = &room[0]
			a.w.plane(t, o, places, n)
			f.CopyLines(&r.copies, out, s.OW, room, q.w, 1, s.OW, s.OH)
		}
	}
	if sc != nil {
		scratch.Put(sc)
	}
	r.give()
}

// windowPlanes is a depthwise convolution over [N,C,H,W].
func (c *Conv) windowPlanes(p *workers.Pool, x, y []float32) {
	c.s.floatPlanes(p, c.windows, c.planes, x, c.og, 0, walker{conv: c, y: y})
}

// intWindows is a depthwise convolution of 8-bit numbers.
type intWindows struct {
	f       *simd.Windows
	ints    *simd.Ints
	og      int
	repeats *simd.Repeats // of several results a channel over [N,H,W,C]
	planes  *planePlan    // over [N,C,H,W]
	weights []int16
	lanes   []int16     // weights [KH,KW,OC] of those over [N,H,W,C] before they are packed
	strips  *byteStrips // nil where windows are walked one by one
}

// pairedTaps is the number of taps and, if that is odd, one more.
func (s *ConvShape) pairedTaps() int { return roundUp(s.KH*s.KW, 2) }

// newIntWindows plans a depthwise convolution; nil without vectors.
func newIntWindows(s *ConvShape, og int, nhwc bool) *intWindows {
	c := &intWindows{f: simd.WindowKernels(), ints: simd.IntKernels(), og: og}
	if c.f == nil || c.ints == nil || s.outputs() == 0 {
		return nil
	}
	c.strips = s.planByteStrips(og, nhwc)
	if nhwc && og > 1 {
		c.repeats = simd.NewRepeats(og)
	}
	if !nhwc {
		if c.planes = s.planPlanes(1); c.planes == nil {
			return nil
		}
	}
	return c
}

// channels is for how many channels sums come together, of n.
func (c *intWindows) channels(n int) int {
	if c == nil || c.strips == nil {
		return n
	}
	return c.strips.channels(n)
}

// setLanes takes weights [KH,KW,OC], which have to stay.
func (c *intWindows) setLanes(s *ConvShape, w []int16) {
	c.lanes, c.weights = w, nil
	if c.strips != nil {
		c.strips.setLanes(s.OC, w)
	}
}

// packLanes packs weights [KH,KW,OC] where windows are walked, unless they are.
func (c *intWindows) packLanes(s *ConvShape) {
	if c.weights != nil {
		return
	}
	c.weights = c.f.PackLanes(s.KH*s.KW, s.OC, c.lanes)
}

// setPlanes takes weights [OC,KH,KW].
func (c *intWindows) setPlanes(s *ConvShape, w []int32) {
	taps, paired := s.KH*s.KW, s.pairedTaps()
	if c.strips != nil {
		c.strips.setPlanes(s.OC, w)
	}
	c.weights = room(c.weights, s.OC*paired)
	for i, v := range w[:s.OC*taps] {
		c.weights[i/taps*paired+i%taps] = int16(v)
	}
}

// intWindowArgs is what a piece of the work of intWindows needs.
type intWindowArgs struct {
	c      *intWindows
	s      *ConvShape
	x      []uint8
	signed bool
	zero   int32
	sink   tileSink // of lines
	put    putPlanes
}

// lines convolves x over [N,H,W,C].
func (c *intWindows) lines(p *workers.Pool, s *ConvShape, x []uint8, signed bool, zero int32, sink tileSink) {
	if c.strips.ready(signed, zero) {
		c.strips.lines(p, s, x, signed, zero, sink)
		return
	}
	c.packLanes(s)
	workers.Do(p, s.N*s.OH, lineGrain(s.OW*s.OC*s.KH*s.KW), intWindowArgs{c, s, x, signed, zero, sink, nil}, func(a intWindowArgs, lo, hi int) {
		r := windowRooms.Get().(*windowRoom)
		a.s.images(lo, hi, func(n, lo, hi int) { a.lines(r, n, lo, hi) })
		r.give()
	})
}

// lines convolves lines lo to hi of image n.
func (a *intWindowArgs) lines(r *windowRoom, n, lo, hi int) {
	c, s, signed, zero := a.c, a.s, a.signed, a.zero
	in, taps, paired := s.H*s.W*s.C, s.KH*s.KW, s.pairedTaps()
	blocks := (s.OC + c.f.Block - 1) / c.f.Block
	step := blocks * c.f.Block
	// The sums stay in the first-level cache.
	most := min(s.OW, max(1, 6144/step))
	img := a.x[n*in:][:in]
	r.offs = slices.Grow(r.offs[:0], paired)[:paired]
	g := newRing[int16](s, s.OC)
	sc, buf := borrow16(g.len() + step)
	sums, buf32 := borrow(most * step)
	g.data, g.holds = buf, slices.Grow(r.lines[:0], g.lines)[:g.lines]
	r.lines = g.holds
	fill(g.holds, -1)
	put16 := func(dst []int16, y, x, n int) {
		src := img[(y*s.W+x)*s.C:][:n*s.C]
		if c.og == 1 {
			c.ints.Widen(dst, src, signed, int16(zero))
			return
		}
		// Each channel once for each of its outputs, which are written no further than the channels have been read.
		last := dst[len(dst)-len(src):]
		c.ints.Widen(last, src, signed, int16(zero))
		c.repeats.Words(dst, last)
	}
	t := &r.ints
	t.StepSrc, t.StepDst, t.W, t.Dst = 2*s.StrideW*s.OC, 4*step, &c.weights[0], &asInt32(buf32)[0]
	for oy := lo; oy < hi; oy++ {
		g.line(s, oy, r.offs, 0, put16)
		if paired > taps {
			r.offs[taps] = r.offs[taps-1] // its weight is zero
		}
		for i := range r.offs {
			r.offs[i] *= 2
		}
		for ox := 0; ox < s.OW; ox += most {
			n16 := min(most, s.OW-ox)
			t.Src = &buf[ox*s.StrideW*s.OC]
			c.f.IntLanes(t, n16, blocks, r.offs)
			a.sink.put(asInt32(buf32), step, n16, ((n*s.OH+oy)*s.OW+ox)*s.OC, s.OC, 0, s.OC)
		}
	}
	scratch.Put(sums)
	scratch.Put(sc)
}

// run convolves x over [N,C,H,W]; put gets sums as [ConvSums.Each] says.
func (c *intWindows) run(p *workers.Pool, s *ConvShape, x []uint8, signed bool, zero int32, put putPlanes) {
	if c.strips.ready(signed, zero) {
		c.strips.planes(p, s, x, signed, zero, put)
		return
	}
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, s.OH*s.OW*s.KH*s.KW*c.og)), intWindowArgs{c, s, x, signed, zero, tileSink{}, put}, func(a intWindowArgs, lo, hi int) {
		a.planes(lo, hi)
	})
}

// planes convolves planes lo to hi.
func (a *intWindowArgs) planes(lo, hi int) {
	c, s, x, signed, zero, put := a.c, a.s, a.x, a.signed, a.zero, a.put
	q, taps, paired := c.planes, s.KH*s.KW, s.pairedTaps()
	in, out := s.H*s.W, s.OH*s.OW
	places, n, together := s.walk(q, c.f.Block)
	lines, line := places, n // of the results, between which lie step values
	blocks := (n + c.f.Block - 1) / c.f.Block
	step := blocks * c.f.Block
	apart := step
	if together {
		lines, line, apart = s.OH, s.OW, q.w
	}
	r := windowRooms.Get().(*windowRoom)
	r.offs = slices.Grow(r.offs[:0], paired)[:paired]
	for i := range r.offs {
		if r.offs[i] = 0; q.frame {
			r.offs[i] = 2 * int(q.offs[min(i, taps-1)])
		}
	}
	sf, frame := borrow16(q.size + step)
	if q.frame {
		s.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
	}
	ss, sums := borrow(places * step)
	sy, dense := borrow(out)
	t := &r.ints
	t.StepSrc, t.StepDst, t.Dst, t.Src = 2*q.w, 4*step, &asInt32(sums)[0], &frame[0]
	for i := lo; i < hi; i++ {
		c.widen(s, frame[:q.size], x[i*in:][:in], signed, int16(zero))
		for m := range c.og {
			o := i*c.og + m
			t.W = &c.weights[o%s.OC*paired]
			c.f.IntSpread(t, places, blocks, r.offs)
			if lines == 1 {
				put(o, 1, 0, out, asInt32(sums), out)
				continue
			}
			c.f.CopyLines(&r.copies, dense, line, sums, apart, 1, line, lines)
			put(o, 1, 0, out, asInt32(dense), out)
		}
	}
	scratch.Put(sy)
	scratch.Put(ss)
	scratch.Put(sf)
	r.give()
}

// widen writes the frames of a plane.
func (c *intWindows) widen(s *ConvShape, frame []int16, plane []uint8, signed bool, zero int16) {
	q := c.planes
	if !q.frame {
		c.ints.Widen(frame[:len(plane)], plane, signed, zero)
		return
	}
	var sc *[]float32
	var wide []int16
	s.frameInside(q, func(to, from, n, lines int) {
		if sc == nil && c.ints.WidenLines(frame[to:], q.w, plane[from:], s.StrideH*s.W, s.StrideW, n, lines, signed, zero) {
			return
		}
		if sc == nil {
			sc, wide = borrow16(len(plane))
			c.ints.Widen(wide, plane, signed, zero)
		}
		copyPiece(s, q, frame, wide, to, from, n, lines)
	})
	if sc != nil {
		scratch.Put(sc)
	}
}

// Pool is a two-dimensional pooling window in vectors, over planes or positions of
// float32.
type Pool struct {
	Shape ConvShape // Groups and OC are those of a depthwise convolution
	NHWC  bool
	Max   bool // the largest value, and not the sum
	// NaN says that what is no number is the result if it is in a window; else it never
	// wins. It is for Max.
	NaN    bool
	Clamp  activation.Clamp // for Max
	planes *planePlan
	f      *simd.Windows
}

// Largest window and line or plane with borders that are walked in vectors: nothing but
// attributes says how large windows are.
const (
	maxTaps   = 1 << 14
	maxFramed = 1 << 26
)

// Prepare tells whether kernels in vectors compute the windows.
func (w *Pool) Prepare() bool {
	s := &w.Shape
	s.Groups, s.OC = s.C, s.C
	w.f = simd.WindowKernels()
	if w.f == nil || s.outputs() == 0 || s.H*s.W == 0 || s.KH > maxTaps || s.KW > maxTaps/s.KH {
		return false
	}
	seenH, seenW := float64(s.OH)*float64(s.StrideH)+float64(s.KH)*float64(s.DilH), float64(s.OW)*float64(s.StrideW)+float64(s.KW)*float64(s.DilW)
	if w.NHWC {
		return float64(s.KH)*float64(s.DilH)*seenW*float64(s.C) <= maxFramed && s.PadT >= 0 && s.PadL >= 0
	}
	if seenH*seenW > maxFramed {
		return false
	}
	w.planes = s.planPlanes(1)
	return w.planes != nil && w.planes.size <= maxFramed
}

// Name is the name of the kernel.
func (w *Pool) Name() string { return "windows/" + w.f.Floats.String() }

// Divide turns sums into averages over counts, the number of values of each window of
// a plane, or of several planes in a row.
func (w *Pool) Divide(p *workers.Pool, y, counts []float32) {
	s := &w.Shape
	if w.NHWC {
		workers.Do(p, s.N*len(counts), max(1, 1<<14/s.C), divideArgs{y, counts, s.C}, func(a divideArgs, lo, hi int) {
			for i := lo; i < hi; i++ {
				v := a.y[i*a.c:][:a.c]
				element.DivAllTo(v, v, a.counts[i%len(a.counts)])
			}
		})
		return
	}
	workers.Do(p, len(y)/len(counts), max(1, 1<<14/len(counts)), divideArgs{y, counts, s.C}, func(a divideArgs, lo, hi int) {
		for i := lo; i < hi; i++ {
			v := a.y[i*len(a.counts):][:len(a.counts)]
			element.DivTo(v, v, a.counts)
		}
	})
}

// divideArgs is what a piece of dividing needs.
type divideArgs struct {
	y, counts []float32
	c         int
}

// Run pools x into y.
func (w *Pool) Run(p *workers.Pool, x, y []float32) {
	edge := float32(0)
	if w.Max {
		edge = float32(math.Inf(-1))
	}
	if w.NHWC {
		w.Shape.floatLines(p, x, 1, edge, walker{pool: w, y: y})
		return
	}
	w.Shape.floatPlanes(p, w.f, w.planes, x, 1, edge, walker{pool: w, y: y})
}

// walk computes n values at each of places.
func (w *Pool) walk(t *simd.Window, places, n int) {
	if !w.Max {
		t.SetClamp(false, 0, 0)
		w.f.Sum(t, places, n)
		return
	}
	lo, hi := float32(math.Inf(-1)), float32(math.Inf(1))
	if w.Clamp.On {
		lo, hi = w.Clamp.Min, w.Clamp.Max
	}
	t.SetClamp(true, lo, hi)
	if w.NaN {
		w.f.Greatest(t, places, n)
	} else {
		w.f.Largest(t, places, n)
	}
}
