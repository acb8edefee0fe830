package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Float16 convolutions over [N,C,H,W] compute in float32 and round once. Values are widened when
// they are gathered, and outputs are narrowed while they are in the cache.

// SupportsFloat16 reports whether [Float32.RunFloat16] supports the convolution.
func (c *Float32) SupportsFloat16() bool {
	return simd.ElementKernels() != nil && c.planes != nil
}

// RunFloat16 convolves the float16 values x into y; see [Float32.SupportsFloat16].
func (c *Float32) RunFloat16(p *workers.Pool, x, y []uint16) {
	if c.algorithm.run16 == nil {
		c.float16ViaFloat32(p, x, y)
		return
	}
	c.algorithm.run16(c, p, x, y)
}

// float16Panels is RunFloat16 over gathered panels.
func (c *Float32) float16Panels(p *workers.Pool, x, y []uint16) {
	s, q := &c.s, c.planes
	in, area := s.H*s.W, s.OH*s.OW
	var sc *[]float32
	var frame []float32
	if q.frame {
		sc, frame = scratch.Borrow(s.C*q.Size + c.f.Cols)
		defer scratch.Float32s.Put(sc)
	}
	for n := range s.N {
		img, out := x[n*s.C*in:][:s.C*in], y[n*s.OC*area:]
		if q.frame {
			workers.Do(p, s.C, max(1, scratch.CopyGrain/q.Size), float16Args{c: c, img: img, frame: frame}, func(a float16Args, lo, hi int) {
				s, q, in := &a.c.s, a.c.planes, a.c.s.H*a.c.s.W
				e := simd.ElementKernels()
				r, f := windowPool.Get().(*windowScratch), simd.WindowKernels()
				workspace, plane := scratch.Borrow(in)
				for ch := lo; ch < hi; ch++ {
					frame := a.frame[ch*q.Size:][:q.Size]
					s.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
					e.FromHalves(plane, a.img[ch*in:][:in])
					frameFloats(s, q, f, &r.copies, frame, plane)
				}
				scratch.Float32s.Put(workspace)
				r.give()
			})
		}
		c.float16Image(p, img, frame, out)
	}
}

// float16ViaFloat32 is RunFloat16 with full conversion to float32: for Winograd, whose transforms
// take much longer than widening, for im2row, and for tap-by-tap GEMM.
func (c *Float32) float16ViaFloat32(p *workers.Pool, x, y []uint16) {
	sx, wide := scratch.Borrow(len(x))
	sy, sums := scratch.Borrow(len(y))
	workers.Do(p, len(x), scratch.CopyGrain, float16Args{img: x, frame: wide}, func(a float16Args, lo, hi int) {
		simd.ElementKernels().FromHalves(a.frame[lo:hi], a.img[lo:hi])
	})
	c.Run(p, wide, sums)
	workers.Do(p, len(y), scratch.CopyGrain, float16Args{out: y, frame: sums}, func(a float16Args, lo, hi int) {
		simd.ElementKernels().ToHalves(a.out[lo:hi], a.frame[lo:hi])
	})
	scratch.Float32s.Put(sy)
	scratch.Float32s.Put(sx)
}

// float16Image convolves one image, given as it is or as padded copies.
func (c *Float32) float16Image(p *workers.Pool, img []uint16, frame []float32, out []uint16) {
	cut := c.s.cutPlanes(p, c.og, c.k, c.cut(), c.f.Cols, 2, c.f.Rate())
	workers.Do(p, cut.jobs, 1, float16Args{c, img, frame, out, cut}, func(q float16Args, lo, hi int) {
		r, t := q.cut.scratch(), gemm.Tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			q.part(t, &r, i)
		}
		gemm.ReleaseTile(t)
		r.give()
	})
}

// float16Args holds the arguments of a work item of an image.
type float16Args struct {
	c     *Float32
	img   []uint16
	frame []float32
	out   []uint16
	cut   planeCut
}

// part computes work item i.
func (a *float16Args) part(t *simd.Tile, r *panelScratch, i int) {
	c := a.c
	s, q, cols, e := &c.s, c.planes, c.f.Cols, simd.ElementKernels()
	area := s.OH * s.OW
	g, n0, n1, o0, o1 := a.cut.at(i)
	np, width := min(area-n0*cols, (n1-n0)*cols), (n1-n0)*cols
	workspace, sums := scratch.Borrow((o1 - o0) * width)
	spread := func(buf []float32, k0, steps int) {
		for k := range steps {
			from := a.img[(g*c.cg+k0+k)*area+n0*cols:][:np]
			for p0 := 0; p0 < np; p0 += cols {
				to := buf[p0*steps+k*cols:][:cols]
				row := from[p0:min(p0+cols, np)]
				e.FromHalves(to, row)
				clear(to[len(row):])
			}
		}
	}
	if q.frame {
		in := a.frame[g*c.cg*q.Size:]
		spread = func(buf []float32, k0, steps int) { *r.runs = c.gather(buf, *r.runs, in, k0, steps, n0, n1) }
	}
	c.planeBlock(t, r.buf, spread, sums, width, g, np, o0, o1)
	for o := range o1 - o0 {
		e.ToHalves(a.out[(g*c.og+o0+o)*area+n0*cols:][:np], sums[o*width:][:np])
	}
	scratch.Float32s.Put(workspace)
}

// float16Strips is RunFloat16 for a depthwise convolution in strips, one plane at a time.
func (c *Float32) float16Strips(p *workers.Pool, x, y []uint16) {
	s := &c.s
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, c.og*s.OH*s.OW*c.k)), float16Args{c: c, img: x, out: y}, func(a float16Args, lo, hi int) {
		s, e := &a.c.s, simd.ElementKernels()
		in, out := s.H*s.W, a.c.og*s.OH*s.OW
		t := stripPool.Get().(*simd.Strip)
		sp, plane := scratch.Borrow(in)
		sr, workspace := scratch.Borrow(out)
		for i := lo; i < hi; i++ {
			e.FromHalves(plane, a.img[i*in:][:in])
			a.c.stripsOfPlanes(t, plane, workspace, i%s.C, 1)
			e.ToHalves(a.out[i*out:][:out], workspace)
		}
		scratch.Float32s.Put(sr)
		scratch.Float32s.Put(sp)
		releaseStrip(t)
	})
}

// float16Windows is RunFloat16 for a depthwise convolution.
func (c *Float32) float16Windows(p *workers.Pool, x, y []uint16) {
	s := &c.s
	workers.Do(p, s.N*s.C, max(1, 1<<14/max(1, s.OH*s.OW*s.KH*s.KW*c.og)), float16WindowArgs{c, x, y}, float16WindowArgs.planes)
}

// float16WindowArgs holds the arguments of a work item of float16Windows.
type float16WindowArgs struct {
	c    *Float32
	x, y []uint16
}

// planes convolves planes lo to hi.
func (a float16WindowArgs) planes(lo, hi int) {
	c, s, q, e := a.c, &a.c.s, a.c.planes, simd.ElementKernels()
	taps, in, area := s.KH*s.KW, s.H*s.W, s.OH*s.OW
	places, n, together := s.walk(q, 16)
	r := windowPool.Get().(*windowScratch)
	r.offs = slices.Grow(r.offs[:0], taps)[:taps]
	for i := range r.offs {
		if r.offs[i] = 0; q.frame {
			r.offs[i] = 4 * int(q.offs[i])
		}
	}
	sf, frame := scratch.Borrow(q.Size + 16)
	sp, plane := scratch.Borrow(in)
	sr, workspace := scratch.Borrow(max(n, area))
	sd, dense := scratch.Borrow(area)
	if q.frame {
		s.frameBorders(q, func(at, n int) { clear(frame[at : at+n]) })
	}
	t := &r.floats
	t.StepSrc, t.StepDst = 4*q.w, 4*s.OW
	t.SetTaps(r.offs)
	for i := lo; i < hi; i++ {
		src := plane
		e.FromHalves(plane, a.x[i*in:][:in])
		if q.frame {
			frameFloats(s, q, c.windows, &r.copies, frame[:q.Size], plane)
			src = frame
		}
		t.Src, t.Dst = &src[0], &workspace[0]
		for o := i * c.og; o < (i+1)*c.og; o++ {
			ch := o % s.OC
			t.W, t.Bias = &c.weights[ch*c.k], &zeroBias
			if c.bias != nil {
				t.Bias = &c.bias[ch]
			}
			t.SetClamp(c.act.On, c.act.Min, c.act.Max)
			c.windows.Spread(t, places, n)
			res := workspace[:area]
			if together {
				c.windows.CopyLines(&r.copies, dense, s.OW, workspace, q.w, 1, s.OW, s.OH)
				res = dense
			}
			e.ToHalves(a.y[o*area:][:area], res)
		}
	}
	for _, workspace := range []*[]float32{sf, sp, sr, sd} {
		scratch.Float32s.Put(workspace)
	}
	r.give()
}
