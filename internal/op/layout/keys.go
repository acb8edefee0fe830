package layout

import (
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Ordered reports whether [Keys] takes elements of the type.
func Ordered(t tensor.Type) bool {
	switch t {
	case tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Bool, tensor.String:
		return true
	}
	return t.IsInteger() && t.Bits() >= 8
}

// Keys returns numbers that sort as the elements of x do; buf may be nil.
func Keys(buf []uint64, x *tensor.Tensor) ([]uint64, error) {
	n := x.Len()
	if cap(buf) < n {
		buf = make([]uint64, n)
	}
	k := buf[:n]
	switch x.Type {
	case tensor.Float32:
		floats(k, tensor.Of[float32](x))
	case tensor.Float64:
		floats(k, tensor.Of[float64](x))
	case tensor.Float16:
		halves(k, tensor.Of[uint16](x), tensor.F16ToF32)
	case tensor.BFloat16:
		halves(k, tensor.Of[uint16](x), tensor.BF16ToF32)
	case tensor.Int8:
		signed(k, tensor.Of[int8](x))
	case tensor.Int16:
		signed(k, tensor.Of[int16](x))
	case tensor.Int32:
		signed(k, tensor.Of[int32](x))
	case tensor.Int64:
		signed(k, tensor.Of[int64](x))
	case tensor.Uint8, tensor.Bool:
		unsigned(k, tensor.Of[uint8](x))
	case tensor.Uint16:
		unsigned(k, tensor.Of[uint16](x))
	case tensor.Uint32:
		unsigned(k, tensor.Of[uint32](x))
	case tensor.Uint64:
		unsigned(k, tensor.Of[uint64](x))
	case tensor.String:
		order.Strings(k, x.Strings)
	default:
		return nil, op.Unsupported("order of %v", x.Type)
	}
	return k, nil
}

func floats[T float32 | float64](k []uint64, v []T) {
	for i, f := range v {
		k[i] = order.Float(float64(f))
	}
}

func halves(k []uint64, v []uint16, wide func(uint16) float32) {
	for i, h := range v {
		k[i] = order.Float(float64(wide(h)))
	}
}

func signed[T int8 | int16 | int32 | int64](k []uint64, v []T) {
	for i, n := range v {
		k[i] = order.Signed(int64(n))
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64](k []uint64, v []T) {
	for i, n := range v {
		k[i] = uint64(n)
	}
}

// LinesOf are the lines of a shape along an axis.
func LinesOf(shape []int, axis int) order.Lines {
	return order.Lines{Outer: Outer(shape, axis), N: shape[axis], Inner: Inner(shape, axis)}
}

// TopK fills output 0 with the least elements along an axis of input 0, of the
// shape, or the largest, and output 1 with their places; either may be absent.
func TopK(shape []int, axis int, largest bool) (op.Run, error) {
	l := LinesOf(shape, axis)
	var keys []uint64
	return func(c *op.Call) (err error) {
		out := c.Out[0]
		if out == nil && c.Wants(1) {
			out = c.Out[1]
		}
		if out == nil {
			return nil
		}
		if keys, err = Keys(keys, c.In[0]); err != nil {
			return err
		}
		at := make([]int, out.Len())
		l.TopK(c.Pool, at, keys, out.Shape[axis], largest)
		if c.Wants(0) {
			b := move.Blocks{Rows: 1, At: at, Len: 1}
			b.Gather(c.Pool, Of(c.Out[0]), Of(c.In[0]))
		}
		if !c.Wants(1) {
			return nil
		}
		for i, a := range at {
			at[i] = a / l.Inner % l.N
		}
		return PutInts(c.Out[1], at)
	}, nil
}
