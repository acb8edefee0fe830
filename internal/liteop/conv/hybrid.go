package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/liteop/layer"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// hybridConv has float activations and integer weights: each batch is quantised, the
// sums are whole numbers, the result is scaled back. As in the reference kernels the
// weights decide how: with a scale a channel, and in depthwise convolutions, the
// activations have a zero point, with one scale for all they have none.
func hybridConv(c *op.Call, s kernel.ConvShape, depthwise bool) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	sw := c.In[1].Quant.Scale
	if len(sw) != 1 && len(sw) != s.OC {
		return nil, op.Unsupported("%d scales for %d channels", len(sw), s.OC)
	}
	var bias []float32
	if c.Has(2) && c.In[2].Len() > 0 {
		if !c.Const(2) {
			return nil, op.Unsupported("a bias that is not constant beside %v weights", c.In[1].Type)
		}
		if bias, err = layer.Floats(c.In[2]); err != nil {
			return nil, err
		}
	}
	asym := depthwise || len(sw) > 1
	c.Kernel = "hybrid"
	n := s.H * s.W * s.C
	q := op.ScratchOf[float32](c, n)
	scales := channelScales{sw, bias, act, element.Mul[float32](), element.Add[float32]()}
	if !depthwise {
		return hybridDense(c, s, q, asym, &scales)
	}
	sums, err := hybridDepthwise(c, s)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		size := s.OH * s.OW * s.OC
		for b := range s.N {
			scale, _ := layer.QuantizeRow(q, x[b*n:][:n], asym)
			out := y[b*size:][:size]
			sums.Run(c.Pool, q, out)
			for at := 0; at < len(out); at += s.OC {
				layer.ScaleBack(out[at:][:s.OC], scale, sw, bias, act)
			}
		}
		return nil
	}, nil
}

// channelScales is layer.ScaleBack in the order in which the reference multiplies here:
// first by the channel's scale, then by that of the activations.
type channelScales struct {
	weights, bias []float32
	act           activation.Clamp
	mul, add      element.Loops[float32, float32]
}

func (s *channelScales) row(y []float32, scale float32) {
	s.mul.Vec(y, y, s.weights)
	s.mul.VectorScalar(y, y, scale)
	if s.bias != nil {
		s.add.Vec(y, y, s.bias)
	}
	if s.act.On {
		element.Bound(y, s.act.Min, s.act.Max)
	}
}

// hybridDepthwise convolves one batch of whole numbers, which are those less their zero
// point, into sums that are whole numbers as well: a few taps, whose sums float32 holds exactly.
func hybridDepthwise(c *op.Call, s kernel.ConvShape) (*kernel.Conv, error) {
	wq, err := layer.HybridWeights(c.In[1])
	if err != nil {
		return nil, err
	}
	s.N = 1
	w := make([]float32, len(wq))
	for i, v := range wq {
		w[i] = float32(v)
	}
	return kernel.NewDepthwiseNHWC(s, w, nil, activation.Clamp{}), nil
}

// hybridDense is a convolution that is none of single channels; q has room for a batch of whole numbers.
func hybridDense(c *op.Call, s kernel.ConvShape, q []float32, asym bool, scales *channelScales) (op.Run, error) {
	wq, err := layer.HybridWeights(c.In[1])
	if err != nil {
		return nil, err
	}
	batches := s.N
	s.N = 1
	conv := kernel.NewConvQ[int8](s, wq, 0, 0, kernel.Requant{})
	stored := op.ScratchOf[int8](c, s.H*s.W*s.C)
	sums := op.ScratchOf[int32](c, s.OH*s.OW*s.OC)
	each := scales.weights
	if len(each) == 1 {
		each = slices.Repeat(each, s.OC)
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for b := range batches {
			scale, zero := layer.QuantizeCodes(kernel.Bits(stored), q, x[b*len(q):][:len(q)], asym, 0)
			conv.Sums(c.Pool, stored, zero, sums)
			out := y[b*len(sums):][:len(sums)]
			if e := simd.ElementKernels(); e != nil && e.ScaleRows(out, sums, each, scales.bias, scale, !asym) {
				if scales.act.On {
					element.Bound(out, scales.act.Min, scales.act.Max)
				}
				continue
			}
			element.Floats(out, sums)
			for at := 0; at < len(out); at += s.OC {
				if asym {
					scales.row(out[at:][:s.OC], scale)
				} else {
					layer.ScaleBack(out[at:][:s.OC], scale, scales.weights, scales.bias, scales.act)
				}
			}
		}
		return nil
	}, nil
}
