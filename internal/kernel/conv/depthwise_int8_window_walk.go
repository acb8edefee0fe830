package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// depthwiseInt8 is an 8-bit depthwise convolution.
type depthwiseInt8 struct {
	f       *simd.Windows
	ints    *simd.Ints
	og      int
	repeats *simd.Repeats // with a channel multiplier over [N,H,W,C]
	planes  *NCHWPlan     // over [N,C,H,W]
	weights []int16
	lanes   []int16     // weights [KH,KW,OC] over [N,H,W,C] before packing
	strips  *byteStrips // nil if windows are computed one by one
}

// pairedTaps returns the number of taps, rounded up to an even number.
func (s *Shape) pairedTaps() int { return scratch.RoundUp(s.KH*s.KW, 2) }

// newDepthwiseInt8 plans a depthwise convolution; nil without SIMD.
func newDepthwiseInt8(s *Shape, og int, nhwc bool) *depthwiseInt8 {
	c := &depthwiseInt8{f: simd.WindowKernels(), ints: simd.IntKernels(), og: og}
	if c.f == nil || c.ints == nil || s.Outputs() == 0 {
		return nil
	}
	c.strips = s.planByteStrips(og, nhwc)
	if nhwc && og > 1 {
		c.repeats = simd.NewRepeats(og)
	}
	if !nhwc {
		if c.planes = s.PlanNCHW(1); c.planes == nil {
			return nil
		}
	}
	return c
}

// channels returns how many of n channels sums are computed for at a time.
func (c *depthwiseInt8) channels(n int) int {
	if c == nil || c.strips == nil {
		return n
	}
	return c.strips.channels(n)
}

// setLanes takes weights [KH,KW,OC]; the slice must not change.
func (c *depthwiseInt8) setLanes(s *Shape, w []int16) {
	c.lanes, c.weights = w, nil
	if c.strips != nil {
		c.strips.setLanes(s.OC, w)
	}
}

// packLanes packs weights [KH,KW,OC] for single windows, unless already packed.
func (c *depthwiseInt8) packLanes(s *Shape) {
	if c.weights != nil {
		return
	}
	c.weights = c.f.PackLanes(s.KH*s.KW, s.OC, c.lanes)
}

// setPlanes takes weights [OC,KH,KW].
func (c *depthwiseInt8) setPlanes(s *Shape, w []int32) {
	taps, paired := s.KH*s.KW, s.pairedTaps()
	if c.strips != nil {
		c.strips.setPlanes(s.OC, w)
	}
	c.weights = scratch.Zeroed(c.weights, s.OC*paired)
	for i, v := range w[:s.OC*taps] {
		c.weights[i/taps*paired+i%taps] = int16(v)
	}
}

// depthwiseInt8Args holds the arguments of a work item of depthwiseInt8.
type depthwiseInt8Args struct {
	c      *depthwiseInt8
	s      *Shape
	x      []uint8
	signed bool
	zero   int32
	sink   epilogue // over [N,H,W,C]
	put    putPlanes
}

// lines convolves x over [N,H,W,C].
func (c *depthwiseInt8) lines(p *workers.Pool, s *Shape, x []uint8, signed bool, zero int32, sink epilogue) {
	if c.strips.usable(signed, zero) && c.strips.lines(p, s, x, signed, zero, sink) {
		return
	}
	c.packLanes(s)
	workers.Do(p, s.N*s.OH, lineGrain(s.OW*s.OC*s.KH*s.KW), depthwiseInt8Args{c, s, x, signed, zero, sink, nil}, func(a depthwiseInt8Args, lo, hi int) {
		r := windowPool.Get().(*windowScratch)
		a.s.images(lo, hi, func(n, lo, hi int) { a.lines(r, n, lo, hi) })
		r.give()
	})
}

// lines convolves rows lo to hi of image n.
func (a *depthwiseInt8Args) lines(r *windowScratch, n, lo, hi int) {
	c, s, signed, zero := a.c, a.s, a.signed, a.zero
	in, taps, paired := s.H*s.W*s.C, s.KH*s.KW, s.pairedTaps()
	blocks := (s.OC + c.f.Block - 1) / c.f.Block
	step := blocks * c.f.Block
	// The sums stay in the L1 cache.
	most := min(s.OW, max(1, 6144/step))
	img := a.x[n*in:][:in]
	r.offs = slices.Grow(r.offs[:0], paired)[:paired]
	g := newRing[int16](s, s.OC)
	sc, buf := scratch.Borrow16(g.len() + step)
	sums, buf32 := scratch.Borrow(most * step)
	g.data, g.holds = buf, slices.Grow(r.lines[:0], g.lines)[:g.lines]
	r.lines = g.holds
	scratch.Fill(g.holds, -1)
	put16 := func(dst []int16, y, x, n int) {
		src := img[(y*s.W+x)*s.C:][:n*s.C]
		if c.og == 1 {
			c.ints.Widen(dst, src, signed, int16(zero))
			return
		}
		// Repeat each channel for each of its outputs, no further than channels have been read.
		last := dst[len(dst)-len(src):]
		c.ints.Widen(last, src, signed, int16(zero))
		c.repeats.Words(dst, last)
	}
	t := &r.ints
	t.StepSrc, t.StepDst, t.W, t.Dst = 2*s.StrideW*s.OC, 4*step, &c.weights[0], &scratch.AsInt32(buf32)[0]
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
			a.sink.put(scratch.AsInt32(buf32), step, n16, ((n*s.OH+oy)*s.OW+ox)*s.OC, s.OC, 0, s.OC)
		}
	}
	scratch.Float32s.Put(sums)
	scratch.Float32s.Put(sc)
}

// run convolves x over [N,C,H,W]; put receives the sums.
func (c *depthwiseInt8) run(p *workers.Pool, s *Shape, x []uint8, signed bool, zero int32, put putPlanes) {
	if c.strips.usable(signed, zero) {
		c.strips.planes(p, s, x, signed, zero, put)
		return
	}
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, s.OH*s.OW*s.KH*s.KW*c.og)), depthwiseInt8Args{c, s, x, signed, zero, epilogue{}, put}, func(a depthwiseInt8Args, lo, hi int) {
		a.planes(lo, hi)
	})
}

// planes convolves planes lo to hi.
func (a *depthwiseInt8Args) planes(lo, hi int) {
	c, s, x, signed, zero, put := a.c, a.s, a.x, a.signed, a.zero, a.put
	q, taps, paired := c.planes, s.KH*s.KW, s.pairedTaps()
	in, out := s.H*s.W, s.OH*s.OW
	places, n, together := s.walk(q, c.f.Block)
	lines, line := places, n // of the output, with step values between rows
	blocks := (n + c.f.Block - 1) / c.f.Block
	step := blocks * c.f.Block
	apart := step
	if together {
		lines, line, apart = s.OH, s.OW, q.w
	}
	r := windowPool.Get().(*windowScratch)
	r.offs = slices.Grow(r.offs[:0], paired)[:paired]
	for i := range r.offs {
		if r.offs[i] = 0; q.frame {
			r.offs[i] = 2 * int(q.offs[min(i, taps-1)])
		}
	}
	sf, frame := scratch.Borrow16(q.Size + step)
	if q.frame {
		s.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
	}
	ss, sums := scratch.Borrow(places * step)
	sy, dense := scratch.Borrow(out)
	t := &r.ints
	t.StepSrc, t.StepDst, t.Dst, t.Src = 2*q.w, 4*step, &scratch.AsInt32(sums)[0], &frame[0]
	for i := lo; i < hi; i++ {
		c.widen(s, frame[:q.Size], x[i*in:][:in], signed, int16(zero))
		for m := range c.og {
			o := i*c.og + m
			t.W = &c.weights[o%s.OC*paired]
			c.f.IntSpread(t, places, blocks, r.offs)
			if lines == 1 {
				put(o, 1, 0, out, scratch.AsInt32(sums), out)
				continue
			}
			c.f.CopyLines(&r.copies, dense, line, sums, apart, 1, line, lines)
			put(o, 1, 0, out, scratch.AsInt32(dense), out)
		}
	}
	scratch.Float32s.Put(sy)
	scratch.Float32s.Put(ss)
	scratch.Float32s.Put(sf)
	r.give()
}

// widen writes the padded copies of a plane as 16-bit integers.
func (c *depthwiseInt8) widen(s *Shape, frame []int16, plane []uint8, signed bool, zero int16) {
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
			sc, wide = scratch.Borrow16(len(plane))
			c.ints.Widen(wide, plane, signed, zero)
		}
		copyPiece(s, q, frame, wide, to, from, n, lines)
	})
	if sc != nil {
		scratch.Float32s.Put(sc)
	}
}
