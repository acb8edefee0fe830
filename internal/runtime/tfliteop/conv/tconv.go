package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// tconv is a transposed convolution. Inputs: output shape, filter [OC,KH,KW,C], data [N,H,W,C],
// bias; the custom operator Convolution2DTransposeBias has data, filter, bias and no shape.
type tconv struct {
	n, h, w, c     int
	oc, oh, ow     int
	kh, kw         int
	sh, sw         int
	padT, padL     int
	data, filt, bi int // input numbers
}

func shapeTConv(c *op.Call) (tconv, error) {
	t := tconv{data: 2, filt: 1, bi: 3}
	for _, i := range []int{1, 2} {
		if err := layer.NeedRank(c, i, 4); err != nil {
			return t, err
		}
	}
	if !c.Has(0) {
		return t, c.Errorf("input 0 (the output shape) is missing")
	}
	shape, err := op.Ints(c.In[0])
	if err != nil {
		return t, err
	}
	if len(shape) != 4 {
		return t, c.Errorf("output shape has %d dimensions, 4 were expected", len(shape))
	}
	for _, d := range shape {
		if d < 0 {
			return t, c.Errorf("output shape %v", shape)
		}
	}
	if err := t.geometry(c); err != nil {
		return t, err
	}
	t.oh, t.ow = shape[1], shape[2]
	if shape[0] != t.n || shape[3] != t.oc {
		return t, c.Errorf("output shape %v does not fit batch %d and %d channels", shape, t.n, t.oc)
	}
	t.pads(c)
	return t, nil
}

// shapeTConvBias derives the output size from the input: SAME gives in*stride.
func shapeTConvBias(c *op.Call) (tconv, error) {
	t := tconv{data: 0, filt: 1, bi: 2}
	for _, i := range []int{0, 1} {
		if err := layer.NeedRank(c, i, 4); err != nil {
			return t, err
		}
	}
	if err := t.geometry(c); err != nil {
		return t, err
	}
	if t.same(c) {
		t.oh, t.ow = t.h*t.sh, t.w*t.sw
	} else {
		t.oh, t.ow = (t.h-1)*t.sh+t.kh, (t.w-1)*t.sw+t.kw
	}
	t.pads(c)
	return t, nil
}

func (t *tconv) same(c *op.Call) bool {
	if p, ok := customPadding(c); ok {
		return p.same
	}
	return layer.IsSame(c)
}

func (t *tconv) geometry(c *op.Call) error {
	x, w := c.In[t.data].Shape, c.In[t.filt].Shape
	t.n, t.h, t.w, t.c = x[0], x[1], x[2], x[3]
	t.oc, t.kh, t.kw = w[0], w[1], w[2]
	if w[3] != t.c {
		return c.Errorf("filter takes %d channels, input has %d", w[3], t.c)
	}
	if b := c.Input(t.bi); b != nil && b.Len() != t.oc {
		return c.Errorf("%d biases for %d channels", b.Len(), t.oc)
	}
	if p, ok := customPadding(c); ok {
		t.sh, t.sw = p.sh, p.sw
		return nil
	}
	var err error
	t.sh, t.sw, err = layer.Strides(c)
	return err
}

// pads computes the padding of the forward convolution from output to input.
func (t *tconv) pads(c *op.Call) {
	if t.same(c) {
		t.padT = max(0, (t.h-1)*t.sh+t.kh-t.oh) / 2
		t.padL = max(0, (t.w-1)*t.sw+t.kw-t.ow) / 2
	}
}

// customOptions are the packed options of Convolution2DTransposeBias: three int32 (padding,
// stride width, stride height).
type customOptions struct {
	same   bool
	sh, sw int
}

func customPadding(c *op.Call) (customOptions, bool) {
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	if c.Node.Op != "Convolution2DTransposeBias" || len(b) < 12 {
		return customOptions{}, false
	}
	v := tensor.Of[int32](&tensor.Tensor{Type: tensor.Int32, Data: b[:12]})
	o := customOptions{same: v[0] == 1, sw: int(v[1]), sh: int(v[2])}
	return o, o.sh > 0 && o.sw > 0
}

func inferTConv(shape func(*op.Call) (tconv, error)) func(c *op.Call) error {
	return func(c *op.Call) error {
		t, err := shape(c)
		if err != nil {
			return err
		}
		c.SetOut(0, layer.OutType(c, c.In[t.data].Type), []int{t.n, t.oh, t.ow, t.oc})
		return nil
	}
}

// scatter adds every input element's contribution to the output, in the order of the reference
// kernels: by input position, then by input channel.
type scatter[X tensor.Number, W tensor.Number, A int32 | int64 | float32] struct {
	tconv
	x       []X
	weights []W
	zero    A
	acc     []A
}

// run divides output channels among workers, so that no two write the same sum.
func (t scatter[X, W, A]) run(p *workers.Pool) {
	clear(t.acc)
	workers.Each(p, t.oc, max(1, 1<<14/max(1, t.n*t.h*t.w*t.kh*t.kw*t.c)), t)
}

// Piece computes output channels lo to hi.
func (t scatter[X, W, A]) Piece(lo, hi int) {
	for p := range t.n * t.h * t.w {
		n, y, xx := p/t.w/t.h, p/t.w%t.h, p%t.w
		src := t.x[p*t.c:][:t.c]
		for ky := range t.kh {
			oy := y*t.sh - t.padT + ky
			if uint(oy) >= uint(t.oh) {
				continue
			}
			for kx := range t.kw {
				ox := xx*t.sw - t.padL + kx
				if uint(ox) >= uint(t.ow) {
					continue
				}
				at := ((n*t.oh+oy)*t.ow + ox) * t.oc
				for o := lo; o < hi; o++ {
					f := t.weights[((o*t.kh+ky)*t.kw+kx)*t.c:][:len(src)]
					s := t.acc[at+o] // every product is added by itself, as the reference does
					for i, v := range src {
						s += (A(v) - t.zero) * A(f[i])
					}
					t.acc[at+o] = s
				}
			}
		}
	}
}

func prepareTConv(shape func(*op.Call) (tconv, error)) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		t, err := shape(c)
		if err != nil {
			return nil, err
		}
		x, w := c.In[t.data], c.In[t.filt]
		switch {
		case x.Type == tensor.Float32 && w.Type == tensor.Int8 && c.Const(t.filt) && c.Node.Op == "TRANSPOSE_CONV" && layer.Quantised(w):
			return t.hybrid(c)
		case x.Type == tensor.Float32:
			return t.float(c)
		case x.Type == tensor.Int8 && w.Type == tensor.Int8:
			return tconvInt[int8](c, t)
		case x.Type == tensor.Uint8 && w.Type == tensor.Uint8:
			return tconvInt[uint8](c, t)
		case x.Type == tensor.Int16 && w.Type == tensor.Int8:
			return t.wide(c)
		}
		return nil, op.Unsupported("%v input with %v weights", x.Type, w.Type)
	}
}

func (t tconv) float(c *op.Call) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	var vec *conv.Transposed
	if c.Const(t.filt) {
		w, err := layer.Floats(c.In[t.filt])
		if err != nil {
			return nil, err
		}
		if vec = conv.NewTransposed(t.shape(), w); vec != nil {
			c.Kernel = vec.Name()
		}
	}
	add, err := newBiasAdd(c, t.n*t.oh*t.ow, t.oc)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		w, err := layer.Floats(c.In[t.filt])
		if err != nil {
			return err
		}
		bias, err := layer.Floats(c.Input(t.bi))
		if err != nil {
			return err
		}
		y := tensor.Of[float32](c.Out[0])
		if x := tensor.Of[float32](c.In[t.data]); vec != nil {
			vec.Run(c.Pool, x, y)
		} else {
			scatter[float32, float32, float32]{t, x, w, 0, y}.run(c.Pool)
		}
		if bias != nil {
			add.Run(c.Pool, y, y, bias)
		}
		clampAll(c.Pool, y, act)
		return nil
	}, nil
}

// shape returns the layer's shape for kernels.
func (t tconv) shape() conv.TransposedShape {
	return conv.TransposedShape{
		N: t.n, H: t.h, W: t.w, C: t.c, OC: t.oc, OH: t.oh, OW: t.ow, KH: t.kh, KW: t.kw,
		StrideH: t.sh, StrideW: t.sw, PadT: t.padT, PadL: t.padL,
	}
}

// recipe returns the layer's recipe.
func (t tconv) recipe(zero int32, s recipe.Sums) recipe.TransposeConv {
	return recipe.TransposeConv{
		N: t.n, H: t.h, W: t.w, C: t.c, OC: t.oc, OH: t.oh, OW: t.ow, KH: t.kh, KW: t.kw, StrideH: t.sh, StrideW: t.sw,
		PadT: t.padT, PadL: t.padL, Data: t.data, Filter: t.filt, Zero: zero, Sums: s,
	}
}

func (t tconv) multipliers(c *op.Call) ([]fixed.Multiplier, error) {
	return layer.ChannelMultipliers(c.In[t.data], c.In[t.filt], c.Out[0], t.oc)
}

func tconvInt[T int8 | uint8](c *op.Call, t tconv) (op.Run, error) {
	if !c.Const(t.filt) {
		return nil, op.Unsupported("integer weights that are not constant")
	}
	ms, err := t.multipliers(c)
	if err != nil {
		return nil, err
	}
	_, zx, err := layer.ScaleOf(c.In[t.data])
	if err != nil {
		return nil, err
	}
	_, zo, _ := layer.ScaleOf(c.Out[0])
	lo, hi, err := layer.ClampOf(c.Node.Attrs.Str("fused_activation_function", "NONE"), c.Out[0])
	if err != nil {
		return nil, err
	}
	if b := c.Input(t.bi); b == nil || c.Const(t.bi) {
		q := quantise.Requant{Mul: ms, Zero: zo, Min: lo, Max: hi}
		if b != nil && b.Type == tensor.Int32 {
			q.Bias = tensor.Of[int32](b)
		}
		c.Recipe = t.recipe(zx, layer.SumsOf(q))
		if b == nil || q.Bias != nil {
			if run, err := tconvVectors[T](c, t, zx, &q); run != nil || err != nil {
				return run, err
			}
		}
	}
	acc := op.ScratchOf[int32](c, c.Out[0].Len())
	w, err := layer.Weights(c.In[t.filt])
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		var bias []int32
		if b := c.Input(t.bi); b != nil && b.Type == tensor.Int32 {
			bias = tensor.Of[int32](b)
		}
		y := tensor.Of[T](c.Out[0])
		scatter[T, int16, int32]{t, tensor.Of[T](c.In[t.data]), w, zx, acc}.run(c.Pool)
		for i, v := range acc {
			o := i % t.oc
			if bias != nil {
				v += bias[o]
			}
			y[i] = T(min(max(ms[min(o, len(ms)-1)].Apply(v)+zo, lo), hi))
		}
		return nil
	}, nil
}

// tconvVectors reads an 8-bit filter in place, others as differences to their zero points; it
// returns nil without SIMD.
func tconvVectors[T int8 | uint8](c *op.Call, t tconv, zero int32, q *quantise.Requant) (op.Run, error) {
	filter := c.In[t.filt]
	zeroW, one := layer.WeightZero(filter)
	switch {
	case !one:
	case filter.Type == tensor.Int8:
		return tconvFast[T](c, t, tensor.Of[int8](filter), zeroW, zero, q), nil
	case filter.Type == tensor.Uint8:
		return tconvFast[T](c, t, tensor.Of[uint8](filter), zeroW, zero, q), nil
	}
	w, err := layer.Weights(filter)
	if err != nil {
		return nil, err
	}
	return tconvFast[T](c, t, w, 0, zero, q), nil
}

// tconvFast returns nil without SIMD.
func tconvFast[T int8 | uint8, W quantise.Weight](c *op.Call, t tconv, w []W, zeroW, zero int32, q *quantise.Requant) op.Run {
	if v := conv.NewTransposedInt8[T](t.shape(), w, zeroW, zero, *q); v != nil {
		c.Kernel = v.Name()
		return func(c *op.Call) error {
			v.Run(c.Pool, tensor.Of[T](c.In[t.data]), tensor.Of[T](c.Out[0]))
			return nil
		}
	}
	var z T
	v := conv.NewTransposedSums(t.shape(), w, zeroW, z-1 < z, zero)
	if v == nil {
		return nil
	}
	c.Kernel = v.Name()
	acc, workspace := op.ScratchOf[int32](c, c.Out[0].Len()), op.ScratchOf[int32](c, v.ScratchSize())
	return func(c *op.Call) error {
		v.Run(c.Pool, quantise.Bits(tensor.Of[T](c.In[t.data])), acc, workspace)
		quantise.RequantRows(c.Pool, tensor.Of[T](c.Out[0]), acc, t.oc, q)
		return nil
	}
}

func (t tconv) wide(c *op.Call) (op.Run, error) {
	if !c.Const(t.filt) {
		return nil, op.Unsupported("integer weights that are not constant")
	}
	ms, err := t.multipliers(c)
	if err != nil {
		return nil, err
	}
	lo, hi, err := layer.ClampOf(c.Node.Attrs.Str("fused_activation_function", "NONE"), c.Out[0])
	if err != nil {
		return nil, err
	}
	q := &gemm.Requant16{Mul: ms, Min: lo, Max: hi}
	if b := c.Input(t.bi); b != nil && b.Len() > 0 {
		if !c.Const(t.bi) {
			return nil, op.Unsupported("biases that are not constant")
		}
		if q.Bias, _, err = WideBias(b); err != nil {
			return nil, err
		}
	}
	w, err := layer.Integers(c.In[t.filt])
	if err != nil {
		return nil, err
	}
	c.Recipe = t.recipe(0, WideSums(q))
	if run := t.split(c, w, q); run != nil {
		return run, nil
	}
	acc := op.ScratchOf[int64](c, c.Out[0].Len())
	return func(c *op.Call) error {
		y := tensor.Of[int16](c.Out[0])
		scatter[int16, int32, int64]{t, tensor.Of[int16](c.In[t.data]), w, 0, acc}.run(c.Pool)
		for i, v := range acc {
			y[i] = q.One(v, i%t.oc)
		}
		return nil
	}, nil
}

// newBiasAdd adds a bias to the channels of all positions.
func newBiasAdd(c *op.Call, positions, channels int) (*element.Binary[float32, float32], error) {
	shape := []int{positions, channels}
	walk, err := broadcast.New(shape, shape, shape[1:])
	if err != nil {
		return nil, err
	}
	return element.NewBinary(c.Pool, walk, element.Add[float32]()), nil
}

// split adds up the high and low bytes of 16-bit numbers in float32; nil if sums may be too long
// for that, and without SIMD.
func (t tconv) split(c *op.Call, w []int32, q *gemm.Requant16) op.Run {
	reach := func(k, stride int) int { return (k + stride - 1) / stride }
	if reach(t.kh, t.sh)*reach(t.kw, t.sw)*t.c > gemm.SplitSteps || !bytes(w) {
		return nil
	}
	vec := conv.NewTransposed(t.shape(), reals(w))
	if vec == nil {
		return nil
	}
	c.Kernel = vec.Name()
	return halved(c, t.data, q, t.oc, vec.Run)
}
