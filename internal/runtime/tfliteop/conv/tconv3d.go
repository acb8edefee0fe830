package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// transposedPictures is a 3D transposed convolution with SIMD: each plane of the input adds 2D
// transposed convolutions to planes of the output, in order. nil without SIMD, and for dilated
// taps.
func (v *conv3D) transposedPictures(c *op.Call, act activation.Clamp) (op.Run, error) {
	if v.d[1] != 1 || v.d[2] != 1 {
		return nil, nil
	}
	w, err := layer.Floats(c.In[1])
	if err != nil {
		return nil, err
	}
	bias, err := layer.Floats(c.Input(3))
	if err != nil {
		return nil, err
	}
	taps, s := v.k[1]*v.k[2], conv.TransposedShape{
		N: 1, H: v.in[1], W: v.in[2], C: v.c, OC: v.oc, OH: v.out[1], OW: v.out[2], KH: v.k[1], KW: v.k[2],
		StrideH: v.s[1], StrideW: v.s[2], PadT: v.p[1], PadL: v.p[2],
	}
	// The filter has the output channels after the taps.
	turned := make([]float32, taps*v.oc*v.c)
	pictures := make([]*conv.Transposed, v.k[0])
	for kd := range pictures {
		for i := range taps * v.oc {
			copy(turned[(i%v.oc*taps+i/v.oc)*v.c:][:v.c], w[(kd*taps*v.oc+i)*v.c:])
		}
		if pictures[kd] = conv.NewTransposed(s, turned); pictures[kd] == nil {
			return nil, nil
		}
	}
	add, err := newBiasAdd(c, v.n*v.out[0]*v.out[1]*v.out[2], v.oc)
	if err != nil {
		return nil, err
	}
	c.Copied(1)
	c.Kernel = pictures[0].Name()
	in, out := v.in[1]*v.in[2]*v.c, v.out[1]*v.out[2]*v.oc
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])
		clear(y)
		for i := range v.n * v.in[0] {
			for kd, t := range pictures {
				d := i%v.in[0]*v.s[0] - v.p[0] + kd*v.d[0]
				if uint(d) < uint(v.out[0]) {
					t.Add(c.Pool, x[i*in:][:in], y[(i/v.in[0]*v.out[0]+d)*out:][:out])
				}
			}
		}
		if bias != nil {
			add.Run(c.Pool, y, y, bias)
		}
		clampAll(c.Pool, y, act)
		return nil
	}, nil
}
