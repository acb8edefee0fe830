package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
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
	conv.TransposedShape
	data, filt, bi int // input numbers
}

func shapeTConv(c *op.Call) (tconv, error) {
	t := tconv{data: 2, filt: 1, bi: 3}
	if err := t.geometry(c); err != nil {
		return t, err
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
	if slices.Min(shape) < 0 {
		return t, c.Errorf("output shape %v", shape)
	}
	t.OH, t.OW = shape[1], shape[2]
	if shape[0] != t.N || shape[3] != t.OC {
		return t, c.Errorf("output shape %v does not fit batch %d and %d channels", shape, t.N, t.OC)
	}
	t.pads(c)
	return t, nil
}

// shapeTConvBias derives the output size from the input: SAME gives in*stride.
func shapeTConvBias(c *op.Call) (tconv, error) {
	t := tconv{data: 0, filt: 1, bi: 2}
	if err := t.geometry(c); err != nil {
		return t, err
	}
	if t.same(c) {
		t.OH, t.OW = t.H*t.StrideH, t.W*t.StrideW
	} else {
		t.OH, t.OW = (t.H-1)*t.StrideH+t.KH, (t.W-1)*t.StrideW+t.KW
	}
	t.pads(c)
	return t, nil
}

func (t *tconv) same(c *op.Call) bool {
	if same, _, _, ok := customOptions(c); ok {
		return same
	}
	return layer.IsSame(c)
}

func (t *tconv) geometry(c *op.Call) (err error) {
	for _, i := range []int{min(t.data, t.filt), max(t.data, t.filt)} {
		if err := layer.NeedRank(c, i, 4); err != nil {
			return err
		}
	}
	x, w := c.In[t.data].Shape, c.In[t.filt].Shape
	t.N, t.H, t.W, t.C = x[0], x[1], x[2], x[3]
	t.OC, t.KH, t.KW = w[0], w[1], w[2]
	if w[3] != t.C {
		return c.Errorf("filter takes %d channels, input has %d", w[3], t.C)
	}
	if b := c.Input(t.bi); b != nil && b.Len() != t.OC {
		return c.Errorf("%d biases for %d channels", b.Len(), t.OC)
	}
	_, sh, sw, ok := customOptions(c)
	if !ok {
		sh, sw, err = layer.Strides(c)
	}
	t.StrideH, t.StrideW = sh, sw
	return err
}

// pads computes the padding of the forward convolution from output to input.
func (t *tconv) pads(c *op.Call) {
	if t.same(c) {
		t.PadT = max(0, (t.H-1)*t.StrideH+t.KH-t.OH) / 2
		t.PadL = max(0, (t.W-1)*t.StrideW+t.KW-t.OW) / 2
	}
}

// customOptions are the packed options of Convolution2DTransposeBias: three int32 (padding,
// stride width, stride height). ok is false for other operators, and for unusable options.
func customOptions(c *op.Call) (same bool, sh, sw int, ok bool) {
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	if c.Node.Op != "Convolution2DTransposeBias" || len(b) < 12 {
		return false, 0, 0, false
	}
	v := tensor.Of[int32](&tensor.Tensor{Type: tensor.Int32, Data: b[:12]})
	return v[0] == 1, int(v[2]), int(v[1]), v[1] > 0 && v[2] > 0
}

func inferTConv(c *op.Call, t tconv) {
	c.SetOut(0, layer.OutType(c, c.In[t.data].Type), []int{t.N, t.OH, t.OW, t.OC})
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
	workers.Each(p, t.OC, max(1, 1<<14/max(1, t.N*t.H*t.W*t.KH*t.KW*t.C)), t)
}

// Piece computes output channels lo to hi.
func (t scatter[X, W, A]) Piece(lo, hi int) {
	for p := range t.N * t.H * t.W {
		n, y, xx := p/t.W/t.H, p/t.W%t.H, p%t.W
		src := t.x[p*t.C:][:t.C]
		for ky := range t.KH {
			oy := y*t.StrideH - t.PadT + ky
			if uint(oy) >= uint(t.OH) {
				continue
			}
			for kx := range t.KW {
				ox := xx*t.StrideW - t.PadL + kx
				if uint(ox) >= uint(t.OW) {
					continue
				}
				at := ((n*t.OH+oy)*t.OW + ox) * t.OC
				for o := lo; o < hi; o++ {
					f := t.weights[((o*t.KH+ky)*t.KW+kx)*t.C:][:len(src)]
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

func prepareTConv(c *op.Call, t tconv) (op.Run, error) {
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
		if vec = conv.NewTransposed(t.TransposedShape, w); vec != nil {
			c.Kernel = vec.Name()
		}
	}
	finish, err := newFinish(c, t.N*t.OH*t.OW, t.OC, act)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		w, bias, err := layer.FloatPair(c, t.filt, t.bi)
		if err != nil {
			return err
		}
		y := tensor.Of[float32](c.Out[0])
		if x := tensor.Of[float32](c.In[t.data]); vec != nil {
			vec.Run(c.Pool, x, y)
		} else {
			scatter[float32, float32, float32]{t, x, w, 0, y}.run(c.Pool)
		}
		finish.run(c.Pool, y, bias)
		return nil
	}, nil
}

// recipe returns the layer's recipe.
func (t tconv) recipe(zero int32, s recipe.Sums) recipe.TransposeConv {
	return recipe.TransposeConv{TransposedShape: t.TransposedShape, Data: t.data, Filter: t.filt, Zero: zero, Sums: s}
}

// multipliers returns the multipliers of integer weights, which must be constant.
func (t tconv) multipliers(c *op.Call) ([]fixed.Multiplier, error) {
	if !c.Const(t.filt) {
		return nil, op.Unsupported("integer weights that are not constant")
	}
	return layer.ChannelMultipliers(c.In[t.data], c.In[t.filt], c.Out[0], t.OC)
}

func tconvInt[T int8 | uint8](c *op.Call, t tconv) (op.Run, error) {
	by, err := t.multipliers(c)
	if err != nil {
		return nil, err
	}
	_, zx, err := layer.ScaleOf(c.In[t.data])
	if err != nil {
		return nil, err
	}
	q, err := layer.Requant(c, by)
	if err != nil {
		return nil, err
	}
	b := c.Input(t.bi)
	if b == nil || c.Const(t.bi) {
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
		if b := c.Input(t.bi); b != nil && b.Type == tensor.Int32 {
			q.Bias = tensor.Of[int32](b)
		}
		y := tensor.Of[T](c.Out[0])
		scatter[T, int16, int32]{t, tensor.Of[T](c.In[t.data]), w, zx, acc}.run(c.Pool)
		for i, v := range acc {
			y[i] = T(q.One(v, i%t.OC))
		}
		return nil
	}, nil
}

// tconvVectors returns nil without SIMD.
func tconvVectors[T int8 | uint8](c *op.Call, t tconv, zero int32, q *quantise.Requant) (run op.Run, err error) {
	err = layer.ReadWeights(c.In[t.filt],
		func(w []int8, z int32) { run = tconvFast[T](c, t, w, z, zero, q) },
		func(w []uint8, z int32) { run = tconvFast[T](c, t, w, z, zero, q) },
		func(w []int16) { run = tconvFast[T](c, t, w, 0, zero, q) })
	return run, err
}

// tconvFast returns nil without SIMD.
func tconvFast[T int8 | uint8, W quantise.Weight](c *op.Call, t tconv, w []W, zeroW, zero int32, q *quantise.Requant) op.Run {
	if v := conv.NewTransposedInt8[T](t.TransposedShape, w, zeroW, zero, *q); v != nil {
		c.Kernel = v.Name()
		return on(t.data, v.Run)
	}
	var z T
	v := conv.NewTransposedSums(t.TransposedShape, w, zeroW, z-1 < z, zero)
	if v == nil {
		return nil
	}
	c.Kernel = v.Name()
	acc, workspace := op.ScratchOf[int32](c, c.Out[0].Len()), op.ScratchOf[int32](c, v.ScratchSize())
	return func(c *op.Call) error {
		v.Run(c.Pool, quantise.Bits(tensor.Of[T](c.In[t.data])), acc, workspace)
		quantise.RequantRows(c.Pool, tensor.Of[T](c.Out[0]), acc, t.OC, q)
		return nil
	}
}

func (t tconv) wide(c *op.Call) (op.Run, error) {
	by, err := t.multipliers(c)
	if err != nil {
		return nil, err
	}
	if b := c.Input(t.bi); b != nil && b.Len() > 0 && !c.Const(t.bi) {
		return nil, op.Unsupported("biases that are not constant")
	}
	q, err := layer.Requant16(c, by, t.bi)
	if err != nil {
		return nil, err
	}
	q.Narrow = false
	w, err := layer.Integers(c.In[t.filt])
	if err != nil {
		return nil, err
	}
	c.Recipe = t.recipe(0, layer.WideSumsOf(q))
	if run := t.split(c, w, q); run != nil {
		return run, nil
	}
	acc := op.ScratchOf[int64](c, c.Out[0].Len())
	return func(c *op.Call) error {
		y := tensor.Of[int16](c.Out[0])
		scatter[int16, int32, int64]{t, tensor.Of[int16](c.In[t.data]), w, 0, acc}.run(c.Pool)
		for i, v := range acc {
			y[i] = q.One(v, i%t.OC)
		}
		return nil
	}, nil
}

// finish adds a bias to the channels of all positions, and clamps.
type finish struct {
	add *element.Binary[float32, float32]
	act activation.Clamp
}

func newFinish(c *op.Call, positions, channels int, act activation.Clamp) (finish, error) {
	shape := []int{positions, channels}
	walk, err := broadcast.New(shape, shape, shape[1:])
	if err != nil {
		return finish{}, err
	}
	return finish{element.NewBinary(c.Pool, walk, element.Add[float32]()), act}, nil
}

// run finishes y; bias may be nil.
func (f finish) run(p *workers.Pool, y, bias []float32) {
	type args struct {
		y   []float32
		act activation.Clamp
	}
	if bias != nil {
		f.add.Run(p, y, y, bias)
	}
	if f.act.On {
		workers.Do(p, len(y), layer.Grain, args{y, f.act}, func(a args, lo, hi int) { element.Bound(a.y[lo:hi], a.act.Min, a.act.Max) })
	}
}

// split adds up the high and low bytes of 16-bit numbers in float32; nil if sums may be too long
// for that, and without SIMD.
func (t tconv) split(c *op.Call, w []int32, q *gemm.Requant16) op.Run {
	reach := func(k, stride int) int { return (k + stride - 1) / stride }
	if reach(t.KH, t.StrideH)*reach(t.KW, t.StrideW)*t.C > gemm.SplitSteps || !bytes(w) {
		return nil
	}
	vec := conv.NewTransposed(t.TransposedShape, reals(w))
	if vec == nil {
		return nil
	}
	c.Kernel = vec.Name()
	return halved(c, t.data, q, t.OC, vec.Run)
}
