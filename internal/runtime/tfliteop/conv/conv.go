package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// layer2D is the geometry of CONV_2D and DEPTHWISE_CONV_2D. The filter is [OC,KH,KW,C/groups], or
// [1,KH,KW,OC] when depthwise.
type layer2D struct {
	conv.Shape
	depthwise bool
}

func convShape(c *op.Call) (layer2D, error) {
	s := layer2D{depthwise: c.Node.Op == "DEPTHWISE_CONV_2D"}
	for i := range 2 {
		if err := layer.NeedRank(c, i, 4); err != nil {
			return s, err
		}
	}
	x, w := c.In[0].Shape, c.In[1].Shape
	sh, sw, err := layer.Strides(c)
	if err != nil {
		return s, err
	}
	dh, dw := layer.Dilations(c)
	s.Shape = conv.Shape{N: x[0], H: x[1], W: x[2], C: x[3], OC: w[0], KH: w[1], KW: w[2], StrideH: sh, StrideW: sw, DilH: dh, DilW: dw, Groups: 1}
	switch {
	case s.depthwise && w[0] != 1:
		return s, c.Errorf("depthwise filter %s does not begin with 1", tensor.FormatShape(w))
	case s.depthwise:
		s.OC = w[3]
		if s.C < 1 || s.OC%s.C != 0 {
			return s, c.Errorf("%d output channels are not a multiple of %d input channels", s.OC, s.C)
		}
		s.Groups = s.C
	case w[3] < 1 || s.C%w[3] != 0:
		return s, c.Errorf("filter takes %d channels, input has %d", w[3], s.C)
	default:
		if s.Groups = s.C / w[3]; s.Groups < 1 || s.OC%s.Groups != 0 {
			return s, c.Errorf("%d output channels in %d groups", s.OC, s.Groups)
		}
	}
	if s.KH < 1 || s.KW < 1 {
		return s, c.Errorf("filter of %dx%d", s.KW, s.KH)
	}
	var pads [4]int
	copy(pads[:], c.Node.Attrs.Ints(op.AttrPads))
	h, v := layer.Slide(pads[0]+s.H+pads[2], s.KH, sh, dh, layer.IsSame(c)), layer.Slide(pads[1]+s.W+pads[3], s.KW, sw, dw, layer.IsSame(c))
	s.OH, s.PadT, s.OW, s.PadL = h.Out, pads[0]+h.Pad, v.Out, pads[1]+v.Pad
	if c.Has(2) && c.In[2].Len() != s.OC && c.In[2].Len() != 0 {
		return s, c.Errorf("%d biases for %d output channels", c.In[2].Len(), s.OC)
	}
	return s, nil
}

func inferConv(c *op.Call, s layer2D) {
	c.SetOut(0, layer.OutType(c, c.In[0].Type), []int{s.N, s.OH, s.OW, s.OC})
}

func prepareConv(c *op.Call, s layer2D) (op.Run, error) {
	x, w := c.In[0].Type, c.In[1].Type
	switch integers := c.Const(1) && (!c.Has(2) || c.Const(2)); {
	case x == tensor.Float32 && layer.IsHybrid(w) && c.Const(1) && layer.Quantised(c.In[1]):
		return hybridConv(c, s.Shape, s.depthwise)
	case x == tensor.Float32:
		return floatConv(c, s.Shape, s.depthwise)
	case !integers:
		return nil, op.Unsupported("integer weights that are not constant")
	case x == tensor.Int8 && (w == tensor.Int8 || w == tensor.Int4 || w == tensor.Int2):
		return intConv[int8](c, s.Shape, s.depthwise)
	case x == tensor.Uint8 && w == tensor.Uint8:
		return intConv[uint8](c, s.Shape, s.depthwise)
	case x == tensor.Int16 && (w == tensor.Int8 || w == tensor.Int4):
		return wideConv(c, s.Shape, s.depthwise)
	}
	return nil, op.Unsupported("%v input with %v weights", x, w)
}

// floatConv runs in float32; weights of other types are converted once.
func floatConv(c *op.Call, s conv.Shape, depthwise bool) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	make := conv.NewNHWC
	if depthwise {
		make = conv.NewDepthwiseNHWC
	}
	if c.Const(1) && (!c.Has(2) || c.Const(2)) {
		w, b, err := layer.FloatPair(c, 1, 2)
		if err != nil {
			return nil, err
		}
		conv := make(s, w, b, act)
		c.Kernel = conv.Name()
		if !depthwise {
			c.Copied(1)
		}
		return layer.Direct(conv.Run), nil
	}
	c.Kernel = "unpacked"
	var conv *conv.Float32
	return func(c *op.Call) error {
		w, b, err := layer.FloatPair(c, 1, 2)
		if err != nil {
			return err
		}
		if conv == nil {
			conv = make(s, w, b, act)
		} else {
			conv.SetWeights(w, b)
		}
		conv.Run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

// requant returns the requantisation of 32-bit sums to the output's type.
func requant(c *op.Call, channels int) (quantise.Requant, error) {
	by, err := layer.ChannelMultipliers(c.In[0], c.In[1], c.Out[0], channels)
	if err != nil {
		return quantise.Requant{}, err
	}
	q, err := layer.Requant(c, by)
	if err == nil && c.Has(2) && c.In[2].Len() > 0 {
		if c.In[2].Type != tensor.Int32 {
			return q, op.Unsupported("%v biases", c.In[2].Type)
		}
		q.Bias = tensor.Of[int32](c.In[2])
	}
	return q, err
}

func intConv[T int8 | uint8](c *op.Call, s conv.Shape, depthwise bool) (op.Run, error) {
	if c.Out[0].Type != c.In[0].Type {
		return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
	}
	q, err := requant(c, s.OC)
	if err != nil {
		return nil, err
	}
	_, zero, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	c.Recipe = recipe.Conv{Shape: s, Depthwise: depthwise, Zero: zero, Sums: layer.SumsOf(q)}
	conv, err := packConv[T](c.In[1], s, depthwise, zero, q)
	if err != nil {
		return nil, err
	}
	c.Kernel = conv.Name()
	return layer.Direct(conv.Run), nil
}

// packConv packs an 8-bit filter in place if all zero points are equal, others as differences to
// their zero points.
func packConv[T int8 | uint8](filter *tensor.Tensor, s conv.Shape, depthwise bool, zero int32, q quantise.Requant) (k *conv.Int8[T], err error) {
	if depthwise {
		w, err := layer.Weights(filter)
		if err != nil {
			return nil, err
		}
		return conv.NewDepthwiseInt8[T](s, w, zero, q), nil
	}
	err = layer.ReadWeights(filter,
		func(w []int8, z int32) { k = conv.NewInt8[T](s, w, z, zero, q) },
		func(w []uint8, z int32) { k = conv.NewInt8[T](s, w, z, zero, q) },
		func(w []int16) { k = conv.NewInt8[T](s, w, 0, zero, q) })
	return k, err
}
