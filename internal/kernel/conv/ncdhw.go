package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Depth describes the outermost of three window axes.
type Depth struct {
	In, Out                       int // input and output planes
	Kernel, Stride, Dilation, Pad int // Pad counts planes before the first one
}

// volume maps a 3-D convolution over [N,C,D,H,W] to 2-D convolutions. The output planes of all
// channels at one depth form an image. Its input channels are the planes that the depth taps read
// of each channel. Padding is blank.
type volume struct {
	Depth
	channels int // of the input
	zeros    []float32
}

// NewNCDHW prepares a convolution over [N,C,D,H,W] with weights [OC,C/Groups,KD,KH,KW]; s
// describes the last two axes. It returns nil without SIMD kernels.
func NewNCDHW(s Shape, d Depth, w, bias []float32, act activation.Clamp) *Float32 {
	if simd.FloatKernels() == nil {
		return nil
	}
	if s.KH*s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.PadT == 0 && s.PadL == 0 && s.OH == s.H && s.OW == s.W {
		// Planes become rows of an image.
		s.H, s.W, s.OH, s.OW, s.KH, s.KW = d.In, s.H*s.W, d.Out, s.OH*s.OW, d.Kernel, 1
		s.StrideH, s.DilH, s.PadT = d.Stride, d.Dilation, d.Pad
		return newFloat32(s, nil, false, w, bias, act)
	}
	v := &volume{Depth: d, channels: s.C, zeros: make([]float32, s.H*s.W)}
	s.N, s.C = s.N*d.Out, s.C*d.Kernel
	if c := newFloat32(s, v, false, w, bias, act); c.planes != nil {
		return c
	}
	return nil
}

// plane returns channel ch of input image n.
func (c *Float32) plane(x []float32, n, ch int) []float32 {
	area, v := c.s.H*c.s.W, c.volume
	if v == nil {
		return x[(n*c.s.C+ch)*area:][:area]
	}
	at := n%v.Out*v.Stride - v.Pad + ch%v.Kernel*v.Dilation
	if uint(at) >= uint(v.In) {
		return v.zeros
	}
	return x[((n/v.Out*v.channels+ch/v.Kernel)*v.In+at)*area:][:area]
}

// planesAt returns the planes that depth tap d reads of the channels of image n, step values
// apart; nil if they are padding.
func (c *Float32) planesAt(x []float32, n, d int) (planes []float32, step int) {
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

// results returns the outputs of image n from channel o; channels are [Float32.step] apart.
func (c *Float32) results(y []float32, n, o int) []float32 {
	area, v := c.s.OH*c.s.OW, c.volume
	if v == nil {
		return y[(n*c.s.OC+o)*area:]
	}
	return y[((n/v.Out*c.s.OC+o)*v.Out+n%v.Out)*area:]
}

// step returns the number of values between output channels.
func (c *Float32) step() int {
	if c.volume == nil {
		return c.s.OH * c.s.OW
	}
	return c.s.OH * c.s.OW * c.volume.Out
}
