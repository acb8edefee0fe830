package elementwise

import (
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func castDefs() []op.Def {
	return []op.Def{lite("CAST", inferCast, prepareCast)}
}

// inferCast takes the type that the file declares for the output; old converters
// leave the option at its default.
func inferCast(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	t := c.Out[0].Type
	if id := c.Node.Outputs[0]; id >= 0 && c.Graph.Values[id].Type != tensor.Invalid {
		t = c.Graph.Values[id].Type
	}
	if t == tensor.Invalid {
		return op.Unsupported("a cast to an undeclared type")
	}
	c.SetOut(0, t, c.In[0].Shape)
	return nil
}

func prepareCast(c *op.Call) (op.Run, error) {
	return Cast(c.In[0].Type, c.Out[0].Type)
}

// Cast returns the function that converts input 0 to output 0, element by
// element: fractions are cut off, values out of range saturate, anything but
// zero is true, and the imaginary part is dropped.
func Cast(from, to tensor.Type) (op.Run, error) {
	switch from {
	case tensor.Float32:
		return castFrom(tensor.Of[float32], to)
	case tensor.Float64:
		return castFrom(tensor.Of[float64], to)
	case tensor.Float16:
		return castFrom(halves, to)
	case tensor.BFloat16:
		return castFrom(brains, to)
	case tensor.Int8:
		return castFrom(tensor.Of[int8], to)
	case tensor.Int16:
		return castFrom(tensor.Of[int16], to)
	case tensor.Int32:
		return castFrom(tensor.Of[int32], to)
	case tensor.Int64:
		return castFrom(tensor.Of[int64], to)
	case tensor.Uint8, tensor.Bool:
		return castFrom(tensor.Of[uint8], to)
	case tensor.Uint16:
		return castFrom(tensor.Of[uint16], to)
	case tensor.Uint32:
		return castFrom(tensor.Of[uint32], to)
	case tensor.Uint64:
		return castFrom(tensor.Of[uint64], to)
	case tensor.Complex64:
		if to == tensor.Complex64 {
			return func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil }, nil
		}
		return castFrom(reals, to)
	default:
		return nil, op.Unsupported("from %v to %v", from, to)
	}
}

func brains(x *tensor.Tensor) []float32 {
	h := tensor.Of[uint16](x)
	y := make([]float32, len(h))
	for i, v := range h {
		y[i] = tensor.BF16ToF32(v)
	}
	return y
}

func reals(x *tensor.Tensor) []float32 {
	z := tensor.Of[complex64](x)
	y := make([]float32, len(z))
	for i, v := range z {
		y[i] = real(v)
	}
	return y
}

func castFrom[T tensor.Number](view func(*tensor.Tensor) []T, to tensor.Type) (op.Run, error) {
	switch to {
	case tensor.Float32:
		return convert(view, tensor.Of[float32], func(v T) float32 { return float32(v) }), nil
	case tensor.Float64:
		return convert(view, tensor.Of[float64], func(v T) float64 { return float64(v) }), nil
	case tensor.Float16:
		return convert(view, tensor.Of[uint16], func(v T) uint16 { return tensor.F32ToF16(float32(v)) }), nil
	case tensor.BFloat16:
		return convert(view, tensor.Of[uint16], func(v T) uint16 { return tensor.F32ToBF16(float32(v)) }), nil
	case tensor.Int8:
		return toInteger[T, int8](view, math.MinInt8, math.MaxInt8), nil
	case tensor.Int16:
		return toInteger[T, int16](view, math.MinInt16, math.MaxInt16), nil
	case tensor.Int32:
		return toInteger[T, int32](view, math.MinInt32, math.MaxInt32), nil
	case tensor.Int64:
		return toInteger[T, int64](view, math.MinInt64, math.MaxInt64), nil
	case tensor.Uint8:
		return toInteger[T, uint8](view, 0, math.MaxUint8), nil
	case tensor.Uint16:
		return toInteger[T, uint16](view, 0, math.MaxUint16), nil
	case tensor.Uint32:
		return toInteger[T, uint32](view, 0, math.MaxUint32), nil
	case tensor.Uint64:
		return toInteger[T, uint64](view, 0, math.MaxUint64), nil
	case tensor.Bool:
		return convert(view, tensor.Of[bool], func(v T) bool { return v != 0 }), nil
	case tensor.Complex64:
		return convert(view, tensor.Of[complex64], func(v T) complex64 { return complex(float32(v), 0) }), nil
	}
	return nil, op.Unsupported("to %v", to)
}

// toInteger saturates floats, and lets integers wrap around as two's complement
// does.
func toInteger[T tensor.Number, R integer](view func(*tensor.Tensor) []T, low, high R) op.Run {
	if half := 0.5; T(half) == 0 {
		return convert(view, tensor.Of[R], func(v T) R { return R(v) })
	}
	lo, hi := float64(low), float64(high)
	return convert(view, tensor.Of[R], func(v T) R {
		switch f := float64(v); {
		case f != f:
			return 0
		case f <= lo:
			return low
		case f >= hi:
			return high
		default:
			return R(f)
		}
	})
}

func convert[T, R any](in func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, f func(T) R) op.Run {
	return func(c *op.Call) error {
		x, y := in(c.In[0]), out(c.Out[0])
		c.Pool.For(len(y), 16384, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				y[i] = f(x[i])
			}
		})
		return nil
	}
}
