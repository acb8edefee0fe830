package kernel

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions of small groups over [N,H,W,C] would leave most of a register empty, were each group a product of its own. Here the results of several
// groups fill one: each value that they take is written for all of its results, position by position, a few lines at a time, and windows walk over
// these as those of a depthwise convolution do, with a tap for each channel of a group.

// groupPlan is what such a convolution does in each run.
type groupPlan struct {
	f      *simd.Groups
	walk   *simd.Windows
	packed []float32 // weights of each block, a register for each step of a window
}

// planGroups returns nil where groups are large enough to fill registers by themselves, and for what the set lacks.
func (s *ConvShape) planGroups(cg, og int) *groupPlan {
	if s.Groups == 1 || og >= simd.GroupLanes || s.PadT < 0 || s.PadL < 0 || s.place != (placement{}) {
		return nil
	}
	l := &groupPlan{f: simd.NewGroups(s.Groups, cg, og), walk: simd.WindowKernels()}
	if l.f == nil || l.walk == nil {
		return nil
	}
	return l
}

// set takes weights [OC,KH,KW,C/Groups], k for each result.
func (l *groupPlan) set(w []float32, oc, k int) {
	l.packed = room(l.packed, l.f.Blocks*simd.GroupLanes*k)
	pack(l.packed, w, oc, k, simd.GroupLanes, k, 1)
}

// groupArgs is what a piece of the work needs.
type groupArgs struct {
	c    *Conv
	x, y []float32
}

// runGroups convolves x into y: the lines of one block of results after those of another.
func (c *Conv) runGroups(p *workers.Pool, x, y []float32) {
	s := &c.s
	grain := max(min(s.OH, 2*s.KH), workers.Grain(stripRate)/max(1, s.OW*simd.GroupLanes*c.k))
	workers.Do(p, s.N*c.groups.f.Blocks*s.OH, grain, groupArgs{c, x, y}, func(a groupArgs, lo, hi int) {
		r := windowRooms.Get().(*windowRoom)
		a.c.s.images(lo, hi, func(i, lo, hi int) { a.lines(r, i, lo, hi) })
		r.give()
	})
}

// groupRing bounds the lines that windows walk over, in values: they stay in the first-level cache.
const groupRing = 7 << 10

// lines computes lines lo to hi of a block of results of an image, so many columns at a time as stay near.
func (a *groupArgs) lines(r *windowRoom, i, lo, hi int) {
	c := a.c
	s, l := c.s, c.groups
	n, b := i/l.f.Blocks, i%l.f.Blocks
	img := a.x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
	taps, size, o := s.KH*s.KW, l.f.Size(), b*simd.GroupLanes
	t := &r.floats
	t.StepSrc, t.StepDst, t.StepW = 4*s.StrideW*size, 4*s.OC, 4*simd.GroupLanes
	t.W, t.Bias = &l.packed[o*c.k], nil
	if c.bias != nil {
		t.Bias = &c.bias[o]
	}
	t.SetClamp(c.act.On, c.act.Min, c.act.Max)
	put := func(dst []float32, y, x, n int) { l.f.Put(dst, img[(y*s.W+x)*s.C:], s.C, b, n) }
	r.offs = slices.Grow(r.offs[:0], taps+c.k)[:taps+c.k]
	most := max(8, groupRing/(size*((s.KH-1)*s.DilH+1)*s.StrideW))
	for x0 := 0; x0 < s.OW; {
		part := s
		part.OW, part.PadL = simd.Evenly(s.OW-x0, most), s.PadL-x0*s.StrideW
		g := newRing[float32](&part, size)
		sc, buf := borrow(g.len())
		g.data, g.holds = buf, slices.Grow(r.lines[:0], g.lines)[:g.lines]
		r.lines = g.holds
		fill(g.holds, -1)
		t.Src = &buf[0]
		for oy := lo; oy < hi; oy++ {
			g.line(&part, oy, r.offs[:taps], 0, put)
			// A tap is one for each channel of a group.
			steps := r.offs[taps:]
			for i, off := range r.offs[:taps] {
				for ch := range steps[i*c.cg:][:c.cg] {
					steps[i*c.cg+ch] = 4 * (off + ch*simd.GroupLanes)
				}
			}
			t.SetTaps(steps)
			t.Dst = &a.y[((n*s.OH+oy)*s.OW+x0)*s.OC+o]
			l.walk.Lanes(t, part.OW, min(simd.GroupLanes, s.OC-o))
		}
		scratch.Put(sc)
		x0 += part.OW
	}
}
