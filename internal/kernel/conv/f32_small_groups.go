package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Convolutions with small groups over [N,H,W,C] would leave most of a register empty if each
// group were its own GEMM. Here the outputs of several groups share a register. Each input value
// is repeated for all of its outputs, a few rows at a time. Windows then run over these rows like
// those of a depthwise convolution, with one tap per channel of a group.

// smallGroupPlan holds the parameters of such a convolution.
type smallGroupPlan struct {
	f      *simd.Groups
	walk   *simd.Windows
	packed []float32 // weights of each block, one register for each step of a window
}

// planSmallGroups returns false if groups fill registers by themselves, or if the ISA lacks the
// kernels.
func (c *Float32) planSmallGroups() bool {
	s := &c.s
	if c.lines == nil || s.Groups == 1 || s.PadT < 0 || s.PadL < 0 || s.place != (placement{}) {
		return false
	}
	l := &smallGroupPlan{f: simd.NewGroups(s.Groups, c.cg, c.og), walk: simd.WindowKernels()}
	if l.f == nil || l.walk == nil {
		return false
	}
	c.groups = l
	return true
}

// packSmallGroups packs weights [OC,KH,KW,C/Groups].
func (c *Float32) packSmallGroups(w []float32) {
	l := c.groups
	l.packed = scratch.Zeroed(l.packed, l.f.Blocks*simd.GroupLanes*c.k)
	gemm.Pack(l.packed, w, c.s.OC, c.k, simd.GroupLanes, c.k, 1)
}

// smallGroupArgs holds the arguments of a work item.
type smallGroupArgs struct {
	c    *Float32
	x, y []float32
}

// runSmallGroups convolves x into y: all rows of one output channel block, then of the next.
func (c *Float32) runSmallGroups(p *workers.Pool, x, y []float32) {
	s := &c.s
	grain := max(min(s.OH, 2*s.KH), workers.Grain(stripRate)/max(1, s.OW*simd.GroupLanes*c.k))
	workers.Do(p, s.N*c.groups.f.Blocks*s.OH, grain, smallGroupArgs{c, x, y}, func(a smallGroupArgs, lo, hi int) {
		r := windowPool.Get().(*windowScratch)
		a.c.s.images(lo, hi, func(i, lo, hi int) { a.lines(r, i, lo, hi) })
		r.give()
	})
}

// groupRingMax bounds the rows that windows run over, in values: they stay in the L1 cache.
const groupRingMax = 7 << 10

// lines computes rows lo to hi of an output channel block of an image, as many columns at a time
// as stay in the cache.
func (a *smallGroupArgs) lines(r *windowScratch, i, lo, hi int) {
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
	most := max(8, groupRingMax/(size*((s.KH-1)*s.DilH+1)*s.StrideW))
	for x0 := 0; x0 < s.OW; {
		part := s
		part.OW, part.PadL = simd.Evenly(s.OW-x0, most), s.PadL-x0*s.StrideW
		g := newRing[float32](&part, size)
		sc, buf := scratch.Borrow(g.len())
		g.data, g.holds = buf, slices.Grow(r.lines[:0], g.lines)[:g.lines]
		r.lines = g.holds
		scratch.Fill(g.holds, -1)
		t.Src = &buf[0]
		for oy := lo; oy < hi; oy++ {
			g.line(&part, oy, r.offs[:taps], 0, put)
			// One tap per channel of a group.
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
		scratch.Float32s.Put(sc)
		x0 += part.OW
	}
}
