package layout

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Sortable reports whether [Keys] supports the type.
func Sortable(t tensor.Type) bool {
	switch t {
	case tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Bool, tensor.String:
		return true
	}
	return t.IsInteger() && t.Bits() >= 8
}

// Keys returns integers that sort in the order of the elements of x; buf may be nil.
func Keys(buf []uint64, x *tensor.Tensor) ([]uint64, error) {
	n := x.Len()
	if cap(buf) < n {
		buf = make([]uint64, n)
	}
	k := buf[:n]
	switch {
	case x.Type == tensor.String:
		order.StringKeys(k, x.Strings)
	case x.Type == tensor.Float64:
		for i, v := range tensor.Of[float64](x) {
			k[i] = order.FloatKey(v)
		}
	case x.Type == tensor.Int64:
		for i, v := range tensor.Of[int64](x) {
			k[i] = order.SignedKey(v)
		}
	case x.Type == tensor.Int32:
		for i, v := range tensor.Of[int32](x) {
			k[i] = order.SignedKey(int64(v))
		}
	case x.Type.IsFloat():
		readKeys(k, x, func(v float64) uint64 { return order.FloatKey(v) })
	case x.Type.IsSigned():
		readKeys(k, x, func(v int64) uint64 { return order.SignedKey(v) })
	case x.Type.IsNumber():
		readKeys(k, x, func(v uint64) uint64 { return v })
	default:
		return nil, op.Unsupported("order of %v", x.Type)
	}
	return k, nil
}

// readKeys computes keys in blocks; T must represent every element.
func readKeys[T tensor.Number](k []uint64, x *tensor.Tensor, key func(T) uint64) {
	var block [256]T
	for lo := 0; lo < len(k); lo += len(block) {
		b := block[:min(len(block), len(k)-lo)]
		tensor.Read(b, x, lo)
		for i, v := range b {
			k[lo+i] = key(v)
		}
	}
}

// LinesOf returns the one-dimensional lines of a shape along an axis.
func LinesOf(shape []int, axis int) order.Lines {
	return order.Lines{Outer: Outer(shape, axis), N: shape[axis], Inner: Inner(shape, axis)}
}

// TopK writes the smallest (or largest) elements along an axis of input 0, which has the given
// shape, to output 0 and their indices to output 1. Either output may be absent.
func TopK(shape []int, axis int, largest bool) (op.Run, error) {
	l := LinesOf(shape, axis)
	var keys []uint64
	var at []int
	b := &move.Blocks{Rows: 1, Len: 1} // allocated once: a run must not allocate
	return func(c *op.Call) (err error) {
		out := c.Out[0]
		if out == nil && c.Wants(1) {
			out = c.Out[1]
		}
		if out == nil {
			return nil
		}
		if cap(at) < out.Len() {
			at = make([]int, out.Len())
		}
		at = at[:out.Len()]
		if k := out.Shape[axis]; c.In[0].Type == tensor.Float32 && uint64(l.N) <= math.MaxUint32 {
			l.TopFloats(c.Pool, at, tensor.Of[float32](c.In[0]), k, largest)
		} else {
			if keys, err = Keys(keys, c.In[0]); err != nil {
				return err
			}
			l.TopK(c.Pool, at, keys, k, largest)
		}
		if c.Wants(0) {
			b.At = at
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
