package pool

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/pooling"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// floats computes float32 pooling over up to three axes with SIMD kernels for two: the outermost
// of three axes first, with its planes as lines of an image.
type floats struct {
	depth     *pooling.Float32 // nil where windows are one plane high
	last      *pooling.Float32
	workspace []float32 // what depth gives
}

// vectors returns nil if there are no SIMD kernels.
func vectors(c *op.Call, w *window.Window) *floats {
	if len(w.Out) > 3 || c.In[0].Type != tensor.Float32 {
		return nil
	}
	v := &floats{last: &pooling.Float32{Shape: shape(c.In[0], w)}}
	if len(w.Out) == 3 {
		s := &v.last.Shape
		if w.Kernel[0] > 1 || w.Stride[0] > 1 || w.Begin[0] != 0 || w.Out[0] != w.In[0] {
			area := s.H * s.W
			v.depth = &pooling.Float32{Shape: conv.Shape{
				N: s.N, C: s.C, H: w.In[0], W: area, OH: w.Out[0], OW: area, KH: w.Kernel[0], KW: 1,
				StrideH: w.Stride[0], StrideW: 1, DilH: w.Dilation[0], DilW: 1, PadT: w.Begin[0],
			}}
			if !v.depth.Prepare() {
				return nil
			}
		}
		s.C *= w.Out[0]
	}
	if !v.last.Prepare() {
		return nil
	}
	if v.depth != nil {
		s := &v.last.Shape
		v.workspace = op.ScratchOf[float32](c, s.N*s.C*s.H*s.W)
	}
	c.Kernel = v.last.Name()
	return v
}

// largest selects the maximum of each window, or NaN if it contains one, within the limits of
// act.
func (v *floats) largest(act activation.Clamp) {
	if v.depth != nil {
		v.depth.Max, v.depth.NaN = true, true
	}
	v.last.Max, v.last.NaN, v.last.Clamp = true, true, act
}

func (v *floats) run(p *workers.Pool, x, y []float32) {
	if v.depth != nil {
		v.depth.Run(p, x, v.workspace)
		x = v.workspace
	}
	v.last.Run(p, x, y)
}

// shape returns the shape of a convolution with the windows w over x: of their last two axes, or
// of one axis in an image of one line.
func shape(x *tensor.Tensor, w *window.Window) conv.Shape {
	i := len(w.In) - 1
	s := conv.Shape{
		N: x.Shape[0], C: x.Shape[1], H: 1, W: w.In[i], OH: 1, OW: w.Out[i], KH: 1, KW: w.Kernel[i],
		StrideH: 1, StrideW: w.Stride[i], DilH: 1, DilW: w.Dilation[i], PadL: w.Begin[i],
	}
	if i--; i >= 0 {
		s.H, s.OH, s.KH, s.StrideH, s.DilH, s.PadT = w.In[i], w.Out[i], w.Kernel[i], w.Stride[i], w.Dilation[i], w.Begin[i]
	}
	return s
}

// sizes lists the divisors of the window sums of a channel.
func sizes(w *window.Window, include bool) []float32 {
	n := make([]float32, tensor.Elements(w.Out))
	at := make([]int, len(w.Out))
	for i := range n {
		cells := 1
		if include {
			cells = w.Cells(at)
		} else {
			for d, o := range at {
				_, lo, hi := w.Span(d, o)
				cells *= max(hi-lo, 0)
			}
		}
		n[i] = float32(max(cells, 1))
		tensor.Next(at, w.Out)
	}
	return n
}
