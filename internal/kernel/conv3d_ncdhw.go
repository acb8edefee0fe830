package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// ConvDepth is the outermost of three axes of windows.
type ConvDepth struct {
	In, Out                       int // planes of the input and of the results
	Kernel, Stride, Dilation, Pad int // Pad counts planes before the first one
}

// volume makes convolutions over pictures of one over [N,C,D,H,W]: the planes of all channels of the results at one depth are a
// picture, whose channels in the input are the planes that the taps of the depth see of each channel. What is outside is blank.
type volume struct {
	ConvDepth
	channels int // of the input
	blank    []float32
}

// NewConv3DNCDHW prepares a convolution over [N,C,D,H,W] with weights [OC,C/Groups,D of the window,KH,KW], the two last axes as s says. It returns nil
// where there are no kernels in vectors.
func NewConv3DNCDHW(s ConvShape, d ConvDepth, w, bias []float32, act activation.Clamp) *Conv {
	if simd.FloatKernels() == nil {
		return nil
	}
	if s.KH*s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.PadT == 0 && s.PadL == 0 && s.OH == s.H && s.OW == s.W {
		// Planes are lines of a picture.
		s.H, s.W, s.OH, s.OW, s.KH, s.KW = d.In, s.H*s.W, d.Out, s.OH*s.OW, d.Kernel, 1
		s.StrideH, s.DilH, s.PadT = d.Stride, d.Dilation, d.Pad
		return newConv(s, nil, false, w, bias, act)
	}
	v := &volume{ConvDepth: d, channels: s.C, blank: make([]float32, s.H*s.W)}
	s.N, s.C = s.N*d.Out, s.C*d.Kernel
	if c := newConv(s, v, false, w, bias, act); c.planes != nil {
		return c
	}
	return nil
}

// plane is channel ch of picture n of the input.
func (c *Conv) plane(x []float32, n, ch int) []float32 {
	area, v := c.s.H*c.s.W, c.volume
	if v == nil {
		return x[(n*c.s.C+ch)*area:][:area]
	}
	at := n%v.Out*v.Stride - v.Pad + ch%v.Kernel*v.Dilation
	if uint(at) >= uint(v.In) {
		return v.blank
	}
	return x[((n/v.Out*v.channels+ch/v.Kernel)*v.In+at)*area:][:area]
}

// planesAt are the planes that depth d of the window sees of the channels of picture n, each step values after the one before; nil where that is
// outside.
func (c *Conv) planesAt(x []float32, n, d int) (planes []float32, step int) {
	area, v := c.s.H*c.s.W, c.volume
	if v == nil {
		return x[n*c.s.C*area:], area
	}
	at := n%v.Out*v.Stride - v.Pad + d*v.Dilation
	if uint(at) >= uint(v.In) {
		return nil, 0
	}
	return x[(n/v.Out*v.channels*v.In+at)*area:], v.In * area
}

// results are those of picture n from channel o on; channels are [Conv.step] apart.
func (c *Conv) results(y []float32, n, o int) []float32 {
	area, v := c.s.OH*c.s.OW, c.volume
	if v == nil {
		return y[(n*c.s.OC+o)*area:]
	}
	return y[((n/v.Out*c.s.OC+o)*v.Out+n%v.Out)*area:]
}

// step is the number of values from a channel of the results to the next.
func (c *Conv) step() int {
	if c.volume == nil {
		return c.s.OH * c.s.OW
	}
	return c.s.OH * c.s.OW * c.volume.Out
}
