package nn

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// integer is a stored quantised element.
type integer interface{ int8 | uint8 | int16 }

// element is every type that TFLite's arithmetic operators compute in.
type element interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | float32
}

// limits is the range of a quantised type.
func limits(t tensor.Type) (lo, hi int32) {
	switch t {
	case tensor.Uint8:
		return 0, math.MaxUint8
	case tensor.Int16:
		return math.MinInt16, math.MaxInt16
	case tensor.Int4:
		return -8, 7
	}
	return math.MinInt8, math.MaxInt8
}

// quantised reports whether x holds integers with a scale.
func quantised(x *tensor.Tensor) bool {
	if x == nil || x.Quant == nil || len(x.Quant.Scale) == 0 {
		return false
	}
	switch x.Type {
	case tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int4:
		return true
	}
	return false
}

// affine returns a per-tensor scale and zero point.
func affine(x *tensor.Tensor, what string) (scale float32, zero int32, err error) {
	if x.Quant == nil || len(x.Quant.Scale) == 0 {
		return 0, 0, op.Unsupported("%s of type %v has no scale", what, x.Type)
	}
	s := x.Quant.Scale[0]
	if !(s > 0) || math.IsInf(float64(s), 0) {
		return 0, 0, fmt.Errorf("%s has scale %v", what, s)
	}
	if len(x.Quant.Zero) > 0 {
		zero = int32(x.Quant.Zero[0])
	}
	return s, zero, nil
}

// affines is affine for several tensors at once.
type affines struct {
	s []float32
	z []int32
}

func affineAll(names []string, xs ...*tensor.Tensor) (a affines, err error) {
	for i, x := range xs {
		s, z, err := affine(x, names[i])
		if err != nil {
			return a, err
		}
		a.s, a.z = append(a.s, s), append(a.z, z)
	}
	return a, nil
}

// fused returns the bounds of fused_activation_function in real numbers.
func fused(c *op.Call) (lo, hi float32, err error) {
	inf := float32(math.Inf(1))
	switch a := c.Node.Attrs.Str("fused_activation_function", "NONE"); a {
	case "NONE", "":
		return -inf, inf, nil
	case "RELU":
		return 0, inf, nil
	case "RELU6":
		return 0, 6, nil
	case "RELU_N1_TO_1":
		return -1, 1, nil
	default:
		return 0, 0, op.Unsupported("fused activation %s", a)
	}
}

// floatActivation joins the model's fused activation with the one that the
// engine has fused.
func floatActivation(c *op.Call) (op.Activation, error) {
	lo, hi, err := fused(c)
	a := op.Activation{On: !math.IsInf(float64(lo), -1) || !math.IsInf(float64(hi), 1), Min: lo, Max: hi}
	if c.Activation.On {
		a.On = true
		// The engine's clamp comes after the model's.
		a.Min = max(c.Activation.Min, min(a.Min, c.Activation.Max))
		a.Max = min(c.Activation.Max, max(a.Max, c.Activation.Min))
	}
	return a, err
}

func clampFloats(v []float32, a op.Activation) {
	if !a.On {
		return
	}
	for i, x := range v {
		if x < a.Min {
			v[i] = a.Min
		} else if x > a.Max {
			v[i] = a.Max
		}
	}
}

// quantActivation returns the bounds of the fused activation in stored integers.
func quantActivation(c *op.Call, out *tensor.Tensor) (lo, hi int32, err error) {
	lo, hi = limits(out.Type)
	rlo, rhi, err := fused(c)
	if err != nil {
		return 0, 0, err
	}
	s, z, err := affine(out, "output")
	if err != nil {
		return 0, 0, err
	}
	if !math.IsInf(float64(rlo), 0) {
		lo = max(lo, z+int32(fixed.RoundHalfAway(rlo/s)))
	}
	if !math.IsInf(float64(rhi), 0) {
		hi = min(hi, z+int32(fixed.RoundHalfAway(rhi/s)))
	}
	return lo, hi, nil
}

// requant turns accumulators into stored integers, channel by channel.
type requant struct {
	mult   []fixed.Multiplier // one a channel
	bias   []int64            // one a channel; holds the folded input offset as well
	zero   int32
	lo, hi int32
	wide   bool // 64-bit accumulators
}

func (r *requant) one(o int, acc int64) int32 {
	acc += r.bias[o]
	var v int32
	if r.wide {
		v = r.mult[o].Apply64(acc)
	} else {
		v = r.mult[o].Apply(int32(acc))
	}
	return max(r.lo, min(v+r.zero, r.hi))
}

// row stores the accumulators of channels from o0 on.
func row[O integer, A int32 | int64](r *requant, dst []O, o0 int, acc []A) {
	dst = dst[:len(acc)]
	for i, a := range acc {
		dst[i] = O(r.one(o0+i, int64(a)))
	}
}

// store returns a function that writes accumulators of one output row.
func (r *requant) store(out *tensor.Tensor) (func(at, o0 int, acc []int64), error) {
	switch out.Type {
	case tensor.Int8:
		return func(at, o0 int, acc []int64) { row(r, tensor.Of[int8](out)[at:], o0, acc) }, nil
	case tensor.Uint8:
		return func(at, o0 int, acc []int64) { row(r, tensor.Of[uint8](out)[at:], o0, acc) }, nil
	case tensor.Int16:
		return func(at, o0 int, acc []int64) { row(r, tensor.Of[int16](out)[at:], o0, acc) }, nil
	}
	return nil, op.Unsupported("quantised output of type %v", out.Type)
}

// channelMultipliers are s_in·s_w[o]/s_out in double precision.
func channelMultipliers(n int, in, w, out *tensor.Tensor) ([]fixed.Multiplier, error) {
	a, err := affineAll([]string{"input", "output"}, in, out)
	if err != nil {
		return nil, err
	}
	ws, err := channelScales(w, n)
	if err != nil {
		return nil, err
	}
	m := make([]fixed.Multiplier, n)
	for o := range m {
		m[o] = fixed.FromReal(float64(a.s[0]) * float64(ws[o]) / float64(a.s[1]))
	}
	return m, nil
}

// channelScales expands a filter's scales to one a channel.
func channelScales(w *tensor.Tensor, n int) ([]float32, error) {
	if w.Quant == nil || len(w.Quant.Scale) == 0 {
		return nil, op.Unsupported("filter of type %v has no scale", w.Type)
	}
	s := make([]float32, n)
	switch have := w.Quant.Scale; len(have) {
	case 1:
		for i := range s {
			s[i] = have[0]
		}
	case n:
		copy(s, have)
	default:
		return nil, fmt.Errorf("filter has %d scales for %d channels", len(have), n)
	}
	return s, nil
}

// biases reads an optional bias vector of n integers.
func biases(b *tensor.Tensor, n int) ([]int64, error) {
	out := make([]int64, n)
	if b == nil {
		return out, nil
	}
	if b.Len() != n {
		return nil, fmt.Errorf("bias has %d elements, want %d", b.Len(), n)
	}
	switch b.Type {
	case tensor.Int32:
		for i, v := range tensor.Of[int32](b) {
			out[i] = int64(v)
		}
	case tensor.Int64:
		copy(out, tensor.Of[int64](b))
	default:
		return nil, op.Unsupported("bias of type %v", b.Type)
	}
	return out, nil
}

// weights widens a constant or computed filter to int16 and takes its zero point off.
func weights(w *tensor.Tensor) ([]int16, error) {
	n := w.Len()
	out := make([]int16, n)
	var z int16
	if w.Type == tensor.Uint8 && w.Quant != nil && len(w.Quant.Zero) > 0 {
		z = int16(w.Quant.Zero[0])
	}
	switch w.Type {
	case tensor.Int8:
		for i, v := range tensor.Of[int8](w) {
			out[i] = int16(v)
		}
	case tensor.Uint8:
		for i, v := range tensor.Of[uint8](w) {
			out[i] = int16(v) - z
		}
	case tensor.Int4:
		for i := range out {
			b := w.Data[i/2] >> (4 * uint(i&1)) & 15
			out[i] = int16(int8(b<<4) >> 4)
		}
	case tensor.Int2:
		for i := range out {
			b := w.Data[i/4] >> (2 * uint(i&3)) & 3
			out[i] = int16(int8(b<<6) >> 6)
		}
	default:
		return nil, op.Unsupported("filter of type %v", w.Type)
	}
	return out, nil
}

// smallInt reports whether t is a filter type that weights takes.
func smallInt(t tensor.Type) bool {
	return t == tensor.Int8 || t == tensor.Uint8 || t == tensor.Int4 || t == tensor.Int2
}

// view reads scratch bytes as elements.
func view[T tensor.Number](b []byte, t tensor.Type) []T {
	return tensor.Of[T](&tensor.Tensor{Type: t, Data: b})
}
