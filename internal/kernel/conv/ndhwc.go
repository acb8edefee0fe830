package conv

import (
	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// NDHWC is a prepared convolution over [N,D,H,W,C] with a filter [KD,KH,KW,C,OC]. Each
// output plane is the sum of 2-D convolutions of input planes, in order. Sums equal plain loops
// by tap, then by channel, with the bias at the end.
type NDHWC struct {
	Float32
	d     Depth
	depth int  // planes of what is read: the padded copy, or the input
	frame bool // the input is copied with padding
}

// NewNDHWC prepares a convolution of s.N volumes; s describes the last two axes. It returns
// nil without SIMD GEMM kernels and if there is nothing to compute.
func NewNDHWC(s Shape, d Depth, w, bias []float32, act activation.Clamp) *NDHWC {
	f := simd.FloatKernels()
	s.Groups = 1
	if f == nil || s.Outputs()*d.Out == 0 || s.C*d.Kernel*s.KH*s.KW == 0 {
		return nil
	}
	c := &NDHWC{d: d, depth: d.In}
	c.s, c.nhwc, c.f, c.cg, c.og, c.bias, c.act = s, true, f, s.C, s.OC, bias, act
	c.k = d.Kernel * s.KH * s.KW * s.C
	l := s.planNHWC(s.C, s.OC, f.Cols, gemm.KBlock)
	if deep := (d.Out-1)*d.Stride + (d.Kernel-1)*d.Dilation + 1; l.frame || d.Pad != 0 || deep > d.In {
		// Padding on one side requires a padded copy on all sides.
		h, w := (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1, (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1
		framed := s
		framed.H, framed.W, framed.PadT, framed.PadL = h, w, 0, 0
		l = framed.planNHWC(s.C, s.OC, f.Cols, gemm.KBlock)
		c.frame, c.depth = true, deep
	}
	if l.images == 1 && l.n == 1 && !l.turned {
		// Positions are GEMM rows; planes stay separate.
		l.n, l.count = s.OH, s.OW
	}
	taps := l.passes
	l.passes = nil
	for kd := range d.Kernel {
		for _, q := range taps {
			q.A += kd * d.Dilation * l.imageA
			q.B += kd * s.KH * s.KW * s.C
			l.passes = append(l.passes, q)
		}
	}
	l.images = d.Out
	c.lines = l
	c.weights = hugepages.Make[float32](scratch.RoundUp(c.og, f.Cols) * c.k)
	gemm.Pack(c.weights, w, c.og, c.k, f.Cols, 1, c.og)
	return c
}

// Name returns the kernel name.
func (c *NDHWC) Name() string { return gemm.ISAName("direct", c.f) }

// Run convolves x into y.
func (c *NDHWC) Run(p *workers.Pool, x, y []float32) {
	l, s := c.lines, &c.s
	picture, out := s.H*s.W*s.C, c.d.Out*l.imageC
	step := c.d.Stride * l.imageA
	if !c.frame {
		for n := range s.N {
			c.planes3D(p, x[n*c.d.In*picture:], y[n*out:], step)
		}
		return
	}
	sc, frame := scratch.Borrow(c.depth * l.imageA)
	for n := range s.N {
		workers.Do(p, c.depth, max(1, scratch.CopyGrain/l.imageA), volumeArgs{c, frame, x[n*c.d.In*picture:]}, func(q volumeArgs, lo, hi int) {
			for d := lo; d < hi; d++ {
				q.padPlane(d)
			}
		})
		c.planes3D(p, frame, y[n*out:], step)
	}
	scratch.Float32s.Put(sc)
}

// volumeArgs holds the arguments of a work item that pads the input.
type volumeArgs struct {
	c         *NDHWC
	frame, in []float32
}

// padPlane writes plane d of the padded copy.
func (q volumeArgs) padPlane(d int) {
	l, s, depth := q.c.lines, &q.c.s, &q.c.d
	to, from := q.frame[d*l.imageA:][:l.imageA], d-depth.Pad
	if uint(from) >= uint(depth.In) {
		clear(to)
		return
	}
	picture := s.H * s.W * s.C
	a := frameArgs{s, to, q.in[from*picture:][:picture], l.w}
	frameLines(a.s, to, 1, l.w, l.w, 0, l.h, 0, a.copy)
}

// planes3D computes all planes of an output; their inputs are step values apart.
func (c *NDHWC) planes3D(p *workers.Pool, x, y []float32, step int) {
	cut := c.lines.cut(p, &c.s, c.lines.images, c.k, c.f.Rows, c.f.Rate()/2)
	workers.Do(p, cut.jobs, 1, planes3DArgs{c, x, y, step, cut}, func(q planes3DArgs, lo, hi int) {
		t := gemm.Tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			n, part := q.cut.at(i)
			q.c.lineBlock(t, q.x[n*q.step:], q.y[n*q.c.lines.imageC:], part)
		}
		gemm.ReleaseTile(t)
	})
}

// planes3DArgs holds the arguments of a work item of planes3D.
type planes3DArgs struct {
	c    *NDHWC
	x, y []float32
	step int
	cut  lineCut
}
