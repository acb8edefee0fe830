package pool

import (
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/pooling"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// maxBytesApart computes 8-bit max pooling over one or three axes with kernels for two: the
// outermost of three axes first, with its planes as lines of an image. It returns nil if there
// are not kernels.
func maxBytesApart(c *op.Call) (op.Run, error) {
	w := op.Must(NewPool(c))
	i, signed := len(w.In)-1, c.In[0].Type == tensor.Int8
	if c.Wants(1) || i != 0 && i != 2 {
		return nil, nil
	}
	// Windows of the last two axes over planes, or of one in lines.
	last := &pooling.MaxInt8{Signed: signed, Shape: conv.Shape{
		N: c.In[0].Shape[0], C: c.In[0].Shape[1], H: 1, OH: 1, KH: 1, StrideH: 1, DilH: 1,
		W: w.In[i], OW: w.Out[i], KW: w.Kernel[i], StrideW: w.Stride[i], DilW: w.Dilation[i], PadL: w.Begin[i],
	}}
	if i == 0 {
		if !last.Prepare() {
			return nil, nil
		}
		c.Kernel = last.Name()
		return func(c *op.Call) error {
			last.Run(c.Pool, c.In[0].Data, c.Out[0].Data)
			return nil
		}, nil
	}
	s, area := &last.Shape, w.In[1]*w.In[2]
	depth := &pooling.MaxInt8{Signed: signed, Shape: conv.Shape{
		N: s.N, C: s.C, H: w.In[0], OH: w.Out[0], KH: w.Kernel[0], StrideH: w.Stride[0], DilH: w.Dilation[0], PadT: w.Begin[0],
		W: area, OW: area, KW: 1, StrideW: 1, DilW: 1,
	}}
	s.C *= w.Out[0]
	s.H, s.OH, s.KH, s.StrideH, s.DilH, s.PadT = w.In[1], w.Out[1], w.Kernel[1], w.Stride[1], w.Dilation[1], w.Begin[1]
	if !depth.Prepare() || !last.Prepare() {
		return nil, nil
	}
	workspace := c.Scratch(s.N * s.C * area)
	c.Kernel = last.Name()
	return func(c *op.Call) error {
		depth.Run(c.Pool, c.In[0].Data, workspace)
		last.Run(c.Pool, workspace, c.Out[0].Data)
		return nil
	}, nil
}
