package nn

import (
	"math"

	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// wide is what turns the 64-bit sums of int16 kernels into int16.
type wide struct {
	bias   []int64
	mul    []fixed.Multiplier
	lo, hi int32
	narrow bool // 32-bit biases and sums, scaled with two roundings
}

func (w *wide) one(acc int64, ch int) int16 {
	if w.bias != nil {
		acc += w.bias[ch]
	}
	m := w.mul[0]
	if len(w.mul) > 1 {
		m = w.mul[ch]
	}
	var v int32
	if w.narrow {
		v = m.Apply(int32(acc))
	} else {
		v = m.Apply64(acc)
	}
	return int16(min(max(v, w.lo), w.hi))
}

func newWide(c *op.Call, channels int) (*wide, error) {
	ms, err := channelMultipliers(c.In[0], c.In[1], c.Out[0], channels)
	if err != nil {
		return nil, err
	}
	lo, hi, err := clampOf(c.Node.Attrs.Str("fused_activation_function", "NONE"), c.Out[0])
	if err != nil {
		return nil, err
	}
	q := &wide{mul: ms, lo: lo, hi: hi}
	if c.Has(2) && c.In[2].Len() > 0 {
		if q.bias, q.narrow, err = wideBias(c.In[2]); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// wideBias reads a bias of 64 bits, or of 32, which also makes sums 32 bits wide.
func wideBias(t *tensor.Tensor) (b []int64, narrow bool, err error) {
	switch t.Type {
	case tensor.Int64:
		return tensor.Of[int64](t), false, nil
	case tensor.Int32:
		for _, v := range tensor.Of[int32](t) {
			b = append(b, int64(v))
		}
		return b, true, nil
	}
	return nil, false, op.Unsupported("%v biases", t.Type)
}

// wideConv is convolution over int16 activations with 8-bit or narrower weights.
func wideConv(c *op.Call, s kernel.ConvShape, depthwise bool) (op.Run, error) {
	if c.Out[0].Type != tensor.Int16 {
		return nil, op.Unsupported("int16 input with %v output", c.Out[0].Type)
	}
	q, err := newWide(c, s.OC)
	if err != nil {
		return nil, err
	}
	wv, err := integers(c.In[1])
	if err != nil {
		return nil, err
	}
	cg, og := s.C/s.Groups, s.OC/s.Groups
	// Element of the filter for output channel o, tap t, input channel i.
	so, st := s.KH*s.KW*cg, cg
	if depthwise {
		so, st = 1, s.OC
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		c.Pool.For(s.N*s.OH*s.OW, max(1, 4096/max(1, s.OC*s.KH*s.KW*cg)), func(lo, hi int) {
			for p := lo; p < hi; p++ {
				n, oy, ox := p/s.OW/s.OH, p/s.OW%s.OH, p%s.OW
				for o := range s.OC {
					var acc int64
					for ky := range s.KH {
						iy := oy*s.StrideH - s.PadT + ky*s.DilH
						if uint(iy) >= uint(s.H) {
							continue
						}
						for kx := range s.KW {
							ix := ox*s.StrideW - s.PadL + kx*s.DilW
							if uint(ix) >= uint(s.W) {
								continue
							}
							src := x[((n*s.H+iy)*s.W+ix)*s.C+o/og*cg:][:cg]
							w := wv[o*so+(ky*s.KW+kx)*st:][:cg]
							for i, v := range src {
								acc += int64(v) * int64(w[i])
							}
						}
					}
					y[p*s.OC+o] = q.one(acc, o)
				}
			}
		})
		return nil
	}, nil
}

// hybridConv has float activations and int8 weights: each batch is quantised
// symmetrically (or asymmetrically where the options say so), the sums are whole
// numbers, the result is scaled back.
func hybridConv(c *op.Call, s kernel.ConvShape) (op.Run, error) {
	act, err := activation(c)
	if err != nil {
		return nil, err
	}
	if !quantised(c.In[1]) {
		return nil, op.Unsupported("int8 weights without quantisation")
	}
	wq, err := integers(c.In[1])
	if err != nil {
		return nil, err
	}
	wf := make([]float32, len(wq))
	for i, v := range wq {
		wf[i] = float32(v)
	}
	var bias []float32
	if c.Has(2) && c.In[2].Len() > 0 {
		if !c.Const(2) {
			return nil, op.Unsupported("a bias that is not constant beside int8 weights")
		}
		if bias, err = floats(c.In[2]); err != nil {
			return nil, err
		}
	}
	one := s
	one.N = 1
	conv := kernel.NewConvNHWC(one, wf, nil, op.Activation{})
	c.Kernel = "hybrid"
	sw := c.In[1].Quant.Scale
	n := s.H * s.W * s.C
	q := op.ScratchOf[float32](c, n)
	asym := c.Node.Attrs.Bool("asymmetric_quantize_inputs", false)
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for b := range s.N {
			scale := quantizeRow(q, x[b*n:][:n], asym)
			out := y[b*s.OH*s.OW*s.OC:][:s.OH*s.OW*s.OC]
			conv.Run(c.Pool, q, out)
			for i, v := range out {
				o := i % s.OC
				f := sw[0]
				if len(sw) > 1 {
					f = sw[o]
				}
				v *= scale * f
				if bias != nil {
					v += bias[o]
				}
				if act.On {
					v = min(max(v, act.Min), act.Max)
				}
				out[i] = v
			}
		}
		return nil
	}, nil
}

// quantizeRow writes x as whole numbers (less their zero point) into q and
// returns the scale. Symmetric: scale max|x|/127. Asymmetric: the range of x and
// 0 over 255 steps.
func quantizeRow(q, x []float32, asym bool) (scale float32) {
	var lo, hi float32
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	if !asym {
		m := max(-lo, hi)
		if m == 0 {
			clear(q)
			return 1
		}
		inv := 127 / m
		for i, v := range x {
			q[i] = float32(min(max(round(v*inv), -127), 127))
		}
		return m / 127
	}
	if lo == hi {
		clear(q)
		return 1
	}
	// The zero point is nudged to a whole number within the type.
	s := (float64(hi) - float64(lo)) / 255
	fromMin, fromMax := -128-float64(lo)/s, 127-float64(hi)/s
	z := fromMin
	if 128+math.Abs(float64(lo)/s) >= 127+math.Abs(float64(hi)/s) {
		z = fromMax
	}
	zero := int32(min(max(math.Round(z), -128), 127))
	scale = float32(s)
	inv := 1 / scale
	for i, v := range x {
		q[i] = float32(min(max(zero+round(v*inv), -128), 127) - zero)
	}
	return scale
}
