package layer

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// ScaleOf returns the scale and zero point of a per-tensor quantised tensor.
func ScaleOf(t *tensor.Tensor) (scale float32, zero int32, err error) {
	if t == nil || t.Quant == nil || len(t.Quant.Scale) == 0 {
		return 0, 0, op.Unsupported("a %v tensor without quantisation", typeOf(t))
	}
	if len(t.Quant.Zero) > 0 {
		zero = int32(t.Quant.Zero[0])
	}
	return t.Quant.Scale[0], zero, nil
}

// ScalesOf is [ScaleOf] for several tensors.
func ScalesOf(ts ...*tensor.Tensor) (scales []float32, zeros []int32, err error) {
	scales, zeros = make([]float32, len(ts)), make([]int32, len(ts))
	for i, t := range ts {
		if scales[i], zeros[i], err = ScaleOf(t); err != nil {
			return nil, nil, err
		}
	}
	return scales, zeros, nil
}

func typeOf(t *tensor.Tensor) tensor.Type {
	if t == nil {
		return tensor.Invalid
	}
	return t.Type
}

// Quantised reports whether t has affine quantisation.
func Quantised(t *tensor.Tensor) bool {
	return t != nil && t.Quant != nil && len(t.Quant.Scale) > 0
}

// Limits returns the range of an integer type.
func Limits(t tensor.Type) (lo, hi int32) {
	if bits := t.Bits(); bits <= 16 && t.IsSigned() {
		return -1 << (bits - 1), 1<<(bits-1) - 1
	} else if bits <= 16 {
		return 0, 1<<bits - 1
	}
	return math.MinInt32, math.MaxInt32
}

// Round is C's round: to nearest, ties away from zero, in float32.
func Round(x float32) int32 {
	return int32(math.Round(float64(x)))
}

// ClampOf returns the range of output 0 after the fused activation.
func ClampOf(c *op.Call) (lo, hi int32, err error) {
	out, act := c.Out[0], c.Node.Attrs.Str("fused_activation_function", "NONE")
	lo, hi = Limits(out.Type)
	if act == "" || act == "NONE" {
		return lo, hi, nil
	}
	s, z, err := ScaleOf(out)
	if err != nil {
		return 0, 0, err
	}
	at := func(v float32) int32 { return z + Round(v/s) }
	switch act {
	case "RELU":
		return max(lo, at(0)), hi, nil
	case "RELU6":
		return max(lo, at(0)), min(hi, at(6)), nil
	case "RELU_N1_TO_1":
		return max(lo, at(-1)), min(hi, at(1)), nil
	}
	return 0, 0, op.Unsupported("fused activation %s of integers", act)
}

// Activation returns the float clamp of a fused activation, combined with the one that the engine
// has fused after it.
func Activation(c *op.Call) (activation.Clamp, error) {
	a := activation.Clamp{Min: float32(math.Inf(-1)), Max: float32(math.Inf(1))}
	switch act := c.Node.Attrs.Str("fused_activation_function", "NONE"); act {
	case "NONE", "":
	case "RELU":
		a.On, a.Min = true, 0
	case "RELU6":
		a.On, a.Min, a.Max = true, 0, 6
	case "RELU_N1_TO_1":
		a.On, a.Min, a.Max = true, -1, 1
	default:
		return a, op.Unsupported("fused activation %s", act)
	}
	if b := c.Activation; b.On {
		// First the operator's own clamp, then the fused one.
		a.Min, a.Max = min(max(a.Min, b.Min), b.Max), max(min(a.Max, b.Max), b.Min)
		a.On = true
	}
	return a, nil
}

// ChannelMultipliers returns the factors s_in*s_w[c]/s_out, one per channel. As in the reference
// kernels the product is computed in float64, for uint8 in float32.
func ChannelMultipliers(in, w, out *tensor.Tensor, channels int) ([]fixed.Multiplier, error) {
	scales, _, err := ScalesOf(in, out, w)
	if err != nil {
		return nil, err
	}
	si, so := scales[0], scales[1]
	sw := w.Quant.Scale
	if len(sw) != 1 && len(sw) != channels {
		return nil, op.Unsupported("%d scales for %d channels", len(sw), channels)
	}
	ms := make([]fixed.Multiplier, len(sw))
	for i, s := range sw {
		product := float64(si) * float64(s)
		if in.Type == tensor.Uint8 {
			product = float64(si * s)
		}
		ms[i] = fixed.FromReal(product / float64(so))
	}
	return ms, nil
}

// Requant returns the requantisation of sums to output 0, without a bias: the zero point, and the
// range after the fused activation.
func Requant(c *op.Call, by []fixed.Multiplier) (quantise.Requant, error) {
	_, zero, err := ScaleOf(c.Out[0])
	if err != nil {
		return quantise.Requant{}, err
	}
	lo, hi, err := ClampOf(c)
	return quantise.Requant{Mul: by, Zero: zero, Min: lo, Max: hi}, err
}

// Requant16 returns the requantisation of sums to an int16 output 0. Input bias, which may be
// absent or empty, has 64-bit elements, or 32-bit ones, which also make the sums 32 bits wide.
func Requant16(c *op.Call, by []fixed.Multiplier, bias int) (*gemm.Requant16, error) {
	lo, hi, err := ClampOf(c)
	if err != nil {
		return nil, err
	}
	q := &gemm.Requant16{Mul: by, Min: lo, Max: hi}
	t := c.Input(bias)
	switch {
	case t == nil || t.Len() == 0:
	case t.Type == tensor.Int64:
		q.Bias = tensor.Of[int64](t)
	case t.Type == tensor.Int32:
		q.Bias, q.Narrow = widened(tensor.Of[int32](t)), true
	default:
		return nil, op.Unsupported("%v biases", t.Type)
	}
	return q, nil
}

// widened converts a bias to 64 bits, nil if it is empty.
func widened(bias []int32) (out []int64) {
	for _, b := range bias {
		out = append(out, int64(b))
	}
	return out
}

// SumsOf converts a requantisation to a recipe.
func SumsOf(q quantise.Requant) recipe.Sums {
	return recipe.Sums{Bias: widened(q.Bias), Mul: q.Mul, Zero: q.Zero, Min: q.Min, Max: q.Max}
}

// WideSumsOf is [SumsOf] for int16 outputs.
func WideSumsOf(q *gemm.Requant16) recipe.Sums {
	return recipe.Sums{Bias: q.Bias, Mul: q.Mul, Min: q.Min, Max: q.Max, Wide: !q.Narrow}
}

// window is the geometry of a convolution or pooling along one axis.
type window struct{ Out, Pad int }

// Slide computes output size and leading padding; same selects SAME padding.
func Slide(in, k, stride, dil int, same bool) window {
	eff := (k-1)*dil + 1
	if !same {
		return window{Out: max(0, (in+stride-eff)/stride)}
	}
	out := (in + stride - 1) / stride
	return window{Out: out, Pad: max(0, (out-1)*stride+eff-in) / 2}
}

// IsSame reads the padding attribute.
func IsSame(c *op.Call) bool { return c.Node.Attrs.Str("padding", "SAME") == "SAME" }

// NeedRank fails unless input i has the rank.
func NeedRank(c *op.Call, i, rank int) error {
	if !c.Has(i) {
		return c.Errorf("input %d is missing", i)
	}
	if n := c.In[i].Rank(); n != rank {
		return c.Errorf("input %d has rank %d, %d was expected", i, n, rank)
	}
	return nil
}

// Strides reads the positive strides of the options.
func Strides(c *op.Call) (h, w int, err error) {
	h, w = c.Node.Attrs.Int("stride_h", 1), c.Node.Attrs.Int("stride_w", 1)
	if h < 1 || w < 1 {
		return 0, 0, c.Errorf("stride %dx%d is not positive", w, h)
	}
	return h, w, nil
}

// Dilations reads the dilation factors; files write 0 for 1.
func Dilations(c *op.Call) (h, w int) {
	return max(1, c.Node.Attrs.Int("dilation_h_factor", 1)), max(1, c.Node.Attrs.Int("dilation_w_factor", 1))
}

// OutType keeps the declared type of the output, or uses the input's.
func OutType(c *op.Call, t tensor.Type) tensor.Type {
	if c.Wants(0) && c.Out[0].Type != tensor.Invalid {
		return c.Out[0].Type
	}
	return t
}

// Floats returns a weight or bias tensor as float32: plain, 16-bit, or quantised per tensor, per
// channel along its axis, or in blocks. It copies only if necessary.
func Floats(t *tensor.Tensor) ([]float32, error) {
	if t == nil {
		return nil, nil
	}
	switch t.Type {
	case tensor.Float32:
		return tensor.Of[float32](t), nil
	case tensor.Float16, tensor.BFloat16:
		return tensor.All[float32](t)
	}
	q, err := Integers(t)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(q))
	err = dequantize(t, q, out)
	return out, err
}

// Integers reads an integer tensor of up to 32 bits, including packed ones.
func Integers(t *tensor.Tensor) ([]int32, error) {
	if !t.Type.IsInteger() || t.Type.Bits() > 16 && t.Type != tensor.Int32 {
		return nil, op.Unsupported("%v values", t.Type)
	}
	return tensor.All[int32](t)
}

// dequantize writes scale*(q-zero) for any granularity of scales.
func dequantize(t *tensor.Tensor, q []int32, out []float32) error {
	if !Quantised(t) {
		return op.Unsupported("a %v tensor without quantisation", t.Type)
	}
	eachRun(t, func(lo, hi int, s float32, z int32) {
		for i, v := range q[lo:hi] {
			out[lo+i] = s * float32(v-z)
		}
	})
	return nil
}

// eachRun calls f for runs of elements lo to hi that share a scale and zero point, in order.
func eachRun(t *tensor.Tensor, f func(lo, hi int, scale float32, zero int32)) {
	q, all, run := t.Quant, t.Len(), 1
	switch {
	case len(q.Scale) == 1 || q.Axis < 0 || q.Axis >= len(t.Shape):
		run = all
	case tensor.Strides(t.Shape)[q.Axis] > 1 && q.Block == 0:
		run = tensor.Strides(t.Shape)[q.Axis]
	case q.Axis == len(t.Shape)-1 && q.Block > 0 && t.Shape[q.Axis]%q.Block == 0:
		run = q.Block
	}
	at := Scales(t)
	for lo := 0; lo < all; lo += run {
		s, z := at(lo)
		f(lo, lo+run, s, z)
	}
}

// Scales returns a function from element to its scale and zero point.
func Scales(t *tensor.Tensor) func(i int) (float32, int32) {
	q := t.Quant
	zero := func(k int) int32 {
		if len(q.Zero) == 0 {
			return 0
		}
		return int32(q.Zero[min(k, len(q.Zero)-1)])
	}
	if len(q.Scale) == 1 || q.Axis < 0 || q.Axis >= len(t.Shape) {
		s, z := q.Scale[0], zero(0)
		return func(int) (float32, int32) { return s, z }
	}
	st := tensor.Strides(t.Shape)[q.Axis]
	n := t.Shape[q.Axis]
	if q.Block > 0 {
		// Blockwise: one scale for every block along the axis, the other axes plain.
		blocks := (n + q.Block - 1) / q.Block
		return func(i int) (float32, int32) {
			k := (i/st/n*blocks+i/st%n/q.Block)*st + i%st
			return q.Scale[min(k, len(q.Scale)-1)], zero(k)
		}
	}
	return func(i int) (float32, int32) {
		k := min(i/st%n, len(q.Scale)-1)
		return q.Scale[k], zero(k)
	}
}

// Lookup replaces each byte of an input by its entry in a table.
func Lookup(in int, table *[256]uint8) op.Run {
	type args struct {
		y, x  []uint8
		table *[256]uint8
	}
	return func(c *op.Call) error {
		workers.Do(c.Pool, len(c.Out[0].Data), element.LookupGrain(), args{c.Out[0].Data, c.In[in].Data, table}, func(a args, lo, hi int) {
			element.Lookup(a.y[lo:hi], a.x[lo:hi], a.table)
		})
		return nil
	}
}

// FloatPair returns inputs weights and bias as float32, nil for absent ones and an empty bias.
func FloatPair(c *op.Call, weights, bias int) (w, b []float32, err error) {
	if w, err = Floats(c.Input(weights)); err == nil {
		b, err = BiasOf(c, bias)
	}
	return w, b, err
}

// BiasOf returns bias input i as float32, nil if it is absent or empty.
func BiasOf(c *op.Call, i int) ([]float32, error) {
	if b := c.Input(i); b != nil && b.Len() > 0 {
		return Floats(b)
	}
	return nil, nil
}
