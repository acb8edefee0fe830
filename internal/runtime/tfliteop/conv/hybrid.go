package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// hybridConv has float activations and integer weights: each batch entry is quantised, the sums
// are integers, the result is dequantised. As in the reference kernels the weights determine the
// quantisation: with per-channel scales, and in depthwise convolutions, the activations have a
// zero point; with one scale for all they have none.
func hybridConv(c *op.Call, s conv.Shape, depthwise bool) (op.Run, error) {
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
	if !depthwise {
		return hybridDense(c, s, q, asym, bias, act)
	}
	sums, err := hybridDepthwise(c, s)
	if err != nil {
		return nil, err
	}
	factors := op.ScratchOf[float32](c, s.OC) // of the channels, with the scale of the batch
	mul, add := element.Mul[float32](), element.Add[float32]()
	var out []float32 // of a batch of the run, whose loop is made once
	back := func(lo, hi int) {
		rows := out[lo*s.OC : hi*s.OC]
		eachRow(&mul, rows, factors)
		if bias != nil {
			eachRow(&add, rows, bias)
		}
		if act.On {
			element.Bound(rows, act.Min, act.Max)
		}
	}
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		area := s.OH * s.OW
		for b := range s.N {
			scale, _ := layer.QuantizeRow(q, x[b*n:][:n], asym)
			for o := range factors {
				factors[o] = scale * sw[min(o, len(sw)-1)]
			}
			out = y[b*area*s.OC:][:area*s.OC]
			sums.Run(c.Pool, q, out)
			c.Pool.For(area, max(1, layer.Grain/s.OC), back)
		}
		out = nil
		return nil
	}, nil
}

// eachRow combines rows with v.
func eachRow(l *element.Loops[float32, float32], rows, v []float32) {
	n := len(v)
	if l.Rows != nil {
		l.Rows(rows, rows, v, n, n, 0, 0)
		return
	}
	for at := 0; at < len(rows); at += n {
		l.Vec(rows[at:][:n], rows[at:][:n], v)
	}
}

// hybridDepthwise convolves one batch entry of integers, minus their zero point, into sums that
// are integers as well: float32 represents the sums of few taps exactly.
func hybridDepthwise(c *op.Call, s conv.Shape) (*conv.Float32, error) {
	wq, err := layer.HybridWeights(c.In[1])
	if err != nil {
		return nil, err
	}
	s.N = 1
	w := make([]float32, len(wq))
	for i, v := range wq {
		w[i] = float32(v)
	}
	return conv.NewDepthwiseNHWC(s, w, nil, activation.Clamp{}), nil
}

// hybridDense is a convolution that is not depthwise; q is scratch memory for a batch entry of
// integers.
func hybridDense(c *op.Call, s conv.Shape, q []float32, asym bool, bias []float32, act activation.Clamp) (op.Run, error) {
	wq, err := layer.HybridWeights(c.In[1])
	if err != nil {
		return nil, err
	}
	batches := s.N
	s.N = 1
	conv := conv.NewInt8[int8](s, wq, 0, 0, quantise.Requant{})
	stored := op.ScratchOf[int8](c, s.H*s.W*s.C)
	// With a zero point the reference multiplies by the channel's scale first, then by that of
	// the activations.
	scales := &quantise.FloatScale{Weights: c.In[1].Quant.Scale, Bias: bias, Act: act, Together: !asym}
	if len(scales.Weights) == 1 {
		scales.Weights = slices.Repeat(scales.Weights, s.OC)
	}
	size := s.OH * s.OW * s.OC
	return func(c *op.Call) error {
		x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
		for b := range batches {
			scale, zero := layer.QuantizeCodes(quantise.Bits(stored), q, x[b*len(q):][:len(q)], asym, 0)
			conv.Floats(c.Pool, stored, zero, y[b*size:][:size], scales, scale)
		}
		return nil
	}, nil
}
