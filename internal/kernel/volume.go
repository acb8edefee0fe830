package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// VolumeShape describes a convolution over [N,D,H,W,C]: that of its pictures and what the third axis has beyond that.
type VolumeShape struct {
	ConvShape               // N is the number of volumes
	D, OD, KD               int
	StrideD, DilD, PadFront int
}

// Volume is a prepared convolution over [N,D,H,W,C] by a filter [KD,KH,KW,C,OC]. Each picture of the output is the sum of convolutions of
// pictures of the input, in their order: the sums are those of plain loops by tap, then by channel, the bias at the end.
type Volume struct {
	Conv
	v     VolumeShape
	depth int  // of what is read: with borders, or the input
	frame bool // the input is copied into a frame
}

// NewVolume returns nil where there is no product in vectors, and where there is nothing to compute.
func NewVolume(v VolumeShape, w, bias []float32, act activation.Clamp) *Volume {
	f := simd.FloatKernels()
	v.Groups = 1
	if f == nil || v.outputs()*v.OD == 0 || v.C*v.KD*v.KH*v.KW == 0 {
		return nil
	}
	c := &Volume{v: v, depth: v.D}
	c.s, c.nhwc, c.f, c.cg, c.og, c.bias, c.act = v.ConvShape, true, f, v.C, v.OC, bias, act
	c.k = v.KD * v.KH * v.KW * v.C
	l := v.planLines(v.C, v.OC, f.Cols, kBlock)
	if d := (v.OD-1)*v.StrideD + (v.KD-1)*v.DilD + 1; l.frame || v.PadFront != 0 || d > v.D {
		// Borders on one side mean a frame on all.
		h, w := (v.OH-1)*v.StrideH+(v.KH-1)*v.DilH+1, (v.OW-1)*v.StrideW+(v.KW-1)*v.DilW+1
		s := v.ConvShape
		s.H, s.W, s.PadT, s.PadL = h, w, 0, 0
		l = s.planLines(v.C, v.OC, f.Cols, kBlock)
		c.frame, c.depth = true, d
	}
	if l.images == 1 && l.n == 1 && !l.turned {
		// Positions that are rows of a product; pictures stay apart.
		l.n, l.count = v.OH, v.OW
	}
	taps := l.passes
	l.passes = nil
	for kd := range v.KD {
		for _, q := range taps {
			q.a += kd * v.DilD * l.imageA
			q.b += kd * v.KH * v.KW * v.C
			l.passes = append(l.passes, q)
		}
	}
	l.images = v.OD
	c.lines = l
	c.weights = make([]float32, roundUp(c.og, f.Cols)*c.k)
	pack(c.weights, w, c.og, c.k, f.Cols, 1, c.og)
	return c
}

// Run convolves x into y.
func (c *Volume) Run(p *workers.Pool, x, y []float32) {
	l, v := c.lines, &c.v
	picture, out := v.H*v.W*v.C, v.OD*l.imageC
	step := v.StrideD * l.imageA
	if !c.frame {
		for n := range v.N {
			c.pictures(p, x[n*v.D*picture:], y[n*out:], step)
		}
		return
	}
	sc, frame := borrow(c.depth * l.imageA)
	for n := range v.N {
		workers.Do(p, c.depth, max(1, copyGrain/l.imageA), volumeArgs{c, frame, x[n*v.D*picture:]}, func(q volumeArgs, lo, hi int) {
			for d := lo; d < hi; d++ {
				q.frameOf(d)
			}
		})
		c.pictures(p, frame, y[n*out:], step)
	}
	scratch.Put(sc)
}

// volumeArgs is what a piece of a frame needs.
type volumeArgs struct {
	c         *Volume
	frame, in []float32
}

// frameOf writes picture d of the frame.
func (q volumeArgs) frameOf(d int) {
	l, v := q.c.lines, &q.c.v
	to, from := q.frame[d*l.imageA:][:l.imageA], d-v.PadFront
	if uint(from) >= uint(v.D) {
		clear(to)
		return
	}
	picture := v.H * v.W * v.C
	a := frameArgs{&v.ConvShape, to, q.in[from*picture:][:picture], l.w}
	frameLines(a.s, to, 1, l.w, 0, l.h, 0, a.copy)
}

// pictures computes all pictures of an output, which read the input step values apart.
func (c *Volume) pictures(p *workers.Pool, x, y []float32, step int) {
	cut := c.lines.cut(p, &c.s, c.lines.images, c.k, c.f.Rows, c.f.Rate()/2)
	workers.Do(p, cut.jobs, 1, pictureArgs{c, x, y, step, cut}, func(q pictureArgs, lo, hi int) {
		t := tiles.Get().(*simd.Tile)
		for i := lo; i < hi; i++ {
			n, part := q.cut.at(i)
			q.c.lineBlock(t, q.x[n*q.step:], q.y[n*q.c.lines.imageC:], part)
		}
		giveTile(t)
	})
}

// pictureArgs is what a piece of the output needs.
type pictureArgs struct {
	c    *Volume
	x, y []float32
	step int
	cut  lineCut
}
