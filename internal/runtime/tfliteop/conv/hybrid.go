package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
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
	if b := c.Input(2); b != nil && b.Len() > 0 && !c.Const(2) {
		return nil, op.Unsupported("a bias that is not constant beside %v weights", c.In[1].Type)
	}
	bias, err := layer.BiasOf(c, 2)
	if err != nil {
		return nil, err
	}
	w, err := layer.HybridWeights(c.In[1])
	if err != nil {
		return nil, err
	}
	c.Kernel = "hybrid"
	batches, in, out := s.N, s.H*s.W*s.C, s.OH*s.OW*s.OC
	s.N = 1
	scales := &quantise.FloatScale{Weights: sw, Bias: bias, Act: act}
	if len(sw) == 1 {
		scales.Weights = slices.Repeat(sw, s.OC)
	}
	one := hybridDense
	if depthwise {
		one = hybridDepthwise
	}
	run := one(c, s, w, op.ScratchOf[float32](c, in), scales, depthwise || len(sw) > 1)
	return layer.Direct(func(p *workers.Pool, x, y []float32) {
		for b := range batches {
			run(p, x[b*in:][:in], y[b*out:][:out])
		}
	}), nil
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

// hybridDepthwise returns the depthwise convolution of one batch entry. float32 represents the
// integer sums of its few taps exactly. q is scratch memory for the quantised input.
func hybridDepthwise(c *op.Call, s conv.Shape, w []int8, q []float32, scales *quantise.FloatScale, asym bool) func(p *workers.Pool, x, y []float32) {
	sums := conv.NewDepthwiseNHWC(s, reals(w), nil, activation.Clamp{})
	factors := op.ScratchOf[float32](c, s.OC) // of the channels, with the scale of the batch
	mul, add := element.Mul[float32](), element.Add[float32]()
	var out []float32 // of a batch, set by each run; the closure is allocated once
	back := func(lo, hi int) {
		rows := out[lo*s.OC : hi*s.OC]
		eachRow(&mul, rows, factors)
		if scales.Bias != nil {
			eachRow(&add, rows, scales.Bias)
		}
		if scales.Act.On {
			element.Bound(rows, scales.Act.Min, scales.Act.Max)
		}
	}
	return func(p *workers.Pool, x, y []float32) {
		scale, _ := layer.QuantiseRow(q, x, asym)
		for o, w := range scales.Weights {
			factors[o] = scale * w
		}
		out = y
		sums.Run(p, q, out)
		p.For(s.OH*s.OW, max(1, layer.Grain/s.OC), back)
		out = nil
	}
}

// hybridDense returns the convolution of one batch entry that is not depthwise.
func hybridDense(c *op.Call, s conv.Shape, w []int8, q []float32, scales *quantise.FloatScale, asym bool) func(p *workers.Pool, x, y []float32) {
	conv := conv.NewInt8[int8](s, w, 0, 0, quantise.Requant{})
	stored := op.ScratchOf[int8](c, len(q))
	// With a zero point the reference multiplies by the channel's scale first, then by that of
	// the activations.
	scales.Together = !asym
	return func(p *workers.Pool, x, y []float32) {
		scale, zero := layer.QuantiseBytes(quantise.Bits(stored), q, x, asym, 0)
		conv.Floats(p, stored, zero, y, scales, scale)
	}
}

// hybridTConv is a transposed convolution of floats by 8-bit weights. As in the reference kernel
// a batch entry is quantised with a zero point, and each product of integers is scaled, by the
// channel and then by the batch entry, before it is added.
type hybridTConv struct {
	tconv
	weights []float32 // integers, [C,KH,KW,OC]
	scales  []float32 // of the weights, a filter's row [KH,KW,OC] of them
	q       []float32 // a batch in integers
	// for each worker: products of an input and a line of taps, and a position's numbers that are
	// not zero
	workspace []float32
	places    []int32 // for each worker: where these are
	all       bool    // zeros count: a scale is infinite or no number
	mul       element.Loops[float32, float32]
	add       element.Loops[float32, float32]
}

func (t tconv) hybrid(c *op.Call) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	filter := c.In[t.filt]
	wq, err := layer.HybridWeights(filter)
	if err != nil {
		return nil, err
	}
	if n := len(filter.Quant.Scale); n != 1 && n != t.OC {
		return nil, op.Unsupported("%d scales for %d channels", n, t.OC)
	}
	taps := t.KH * t.KW
	h := &hybridTConv{
		tconv: t, weights: make([]float32, len(wq)), scales: make([]float32, taps*t.OC),
		q: op.ScratchOf[float32](c, t.H*t.W*t.C), workspace: op.ScratchOf[float32](c, (t.KW*t.OC+t.C+simd.NonzerosPadding)*c.Pool.Threads()),
		places: op.ScratchOf[int32](c, (t.C+simd.NonzerosPadding)*c.Pool.Threads()),
		mul:    element.Mul[float32](), add: element.Add[float32](),
	}
	for o := range t.OC {
		for k := range taps {
			h.scales[k*t.OC+o] = filter.Quant.Scale[min(o, len(filter.Quant.Scale)-1)]
			for i := range t.C {
				h.weights[(i*taps+k)*t.OC+o] = float32(wq[(o*taps+k)*t.C+i])
			}
		}
	}
	c.Kernel = "hybrid"
	infinite := slices.ContainsFunc(h.scales, func(v float32) bool { return v-v != 0 })
	var out, bias []float32 // of a batch, set by each run; the closure is allocated once
	var scale float32
	work := func(worker, lo, hi int) {
		rows := out[lo*t.OW*t.OC : hi*t.OW*t.OC]
		clear(rows)
		h.lines(out, worker, lo, hi, scale)
		for at := 0; bias != nil && at < len(rows); at += t.OC {
			h.add.Vec(rows[at:][:t.OC], rows[at:][:t.OC], bias)
		}
		if act.On {
			element.Bound(rows, act.Min, act.Max)
		}
	}
	return func(c *op.Call) (err error) {
		if bias, err = layer.Floats(c.Input(t.bi)); err != nil {
			return err
		}
		x, y := tensor.Of[float32](c.In[t.data]), tensor.Of[float32](c.Out[0])
		size := t.OH * t.OW * t.OC
		for b := range t.N {
			scale, _ = layer.QuantiseRow(h.q, x[b*len(h.q):][:len(h.q)], true)
			h.all = infinite || scale-scale != 0
			out = y[b*size:][:size]
			c.Pool.ForWorker(t.OH, 1+t.OH*(1<<14)/max(1, len(h.q)*len(h.scales)), work)
		}
		return nil
	}, nil
}

// lines adds the contributions of all inputs to lines lo to hi of the output, in the order of the
// inputs.
func (h *hybridTConv) lines(out []float32, worker, lo, hi int, scale float32) {
	line, each := h.KW*h.OC, h.C+simd.NonzerosPadding
	workspace, places := h.workspace[worker*(line+each):][:line+each], h.places[worker*each:][:each]
	workspace, values := workspace[:line], workspace[line:]
	for y := range h.H {
		top := y*h.StrideH - h.PadT
		first, last := max(0, lo-top), min(h.KH, hi-top)
		if first >= last {
			continue
		}
		for x := range h.W {
			left := x*h.StrideW - h.PadL
			k0, k1 := max(0, -left), min(h.KW, h.OW-left)
			if k0 >= k1 {
				continue
			}
			n := h.numbers(values, places, h.q[(y*h.W+x)*h.C:][:h.C])
			for k := first; k < last; k++ {
				at := k*line + k0*h.OC
				dst := out[((top+k)*h.OW+left+k0)*h.OC:][:(k1-k0)*h.OC]
				h.addScaled(dst, h.weights[at:], h.scales[at:], workspace, values[:n], places, scale)
			}
		}
	}
}

// numbers writes the non-zero values of a position and their indices: a zero adds nothing to a
// sum, which is never -0.
func (h *hybridTConv) numbers(values []float32, places []int32, q []float32) int {
	if !h.all {
		return simd.ElementKernels().Nonzeros(values, places, q)
	}
	for i := range q {
		places[i] = int32(i)
	}
	return copy(values, q)
}

// addScaled adds the products of a position's values with one line of taps.
func (h *hybridTConv) addScaled(dst, w, scales, workspace, values []float32, places []int32, scale float32) {
	if simd.ElementKernels().AddScaled(dst, w, len(h.scales), values, places, scales, scale) {
		return
	}
	workspace = workspace[:len(dst)]
	for i, v := range values {
		h.mul.VectorScalar(workspace, w[int(places[i])*len(h.scales):][:len(dst)], v)
		h.mul.Vec(workspace, workspace, scales[:len(dst)])
		h.mul.VectorScalar(workspace, workspace, scale)
		h.add.Vec(dst, dst, workspace)
	}
}
