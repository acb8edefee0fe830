// Package layer contains code that TFLite's layers share: definitions, parallel runs, scales and
// zero points, ranges of integers, fused activations, kernel geometry, and reading of weights.
package layer

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Grain is the number of elements from which another thread pays off.
const Grain = 1 << 13

// Groups of element types for definitions.
var (
	FloatOnly = []tensor.Type{tensor.Float32}
	LstmTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}
	ByteTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8}
	ConvTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16}
	Numbers   = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64}
)

// InTFLite assigns definitions without a domain to TFLite's.
func InTFLite(defs []op.Def) []op.Def {
	for i := range defs {
		if defs[i].Domain == "" {
			defs[i].Domain = graph.TFLite
		}
	}
	return defs
}

// InferSame gives the output the shape of input 0 and its declared type.
func InferSame(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, OutType(c, c.In[0].Type), c.In[0].Shape)
	return nil
}

// LastAxis divides x into rows.
func LastAxis(x *tensor.Tensor) (rows, depth int) {
	if x.Rank() == 0 {
		return 1, 1
	}
	depth = x.Shape[x.Rank()-1]
	if depth == 0 {
		return 0, 0
	}
	return x.Len() / depth, depth
}

// InOut returns the scales and zero points of input 0 and output 0.
func InOut(c *op.Call) (si, so float32, zi, zo int32, err error) {
	if si, zi, err = ScaleOf(c.In[0]); err == nil {
		so, zo, err = ScaleOf(c.Out[0])
	}
	return
}

// Shaped completes a definition whose Infer and Prepare need the same parameters: shape reads and
// checks them, infer sets the outputs, prepare makes the run.
func Shaped[S any](d op.Def, shape func(c *op.Call) (S, error), infer func(c *op.Call, s S), prepare func(c *op.Call, s S) (op.Run, error)) op.Def {
	d.Infer = func(c *op.Call) error {
		s, err := shape(c)
		if err == nil {
			infer(c, s)
		}
		return err
	}
	d.Prepare = func(c *op.Call) (op.Run, error) {
		s, err := shape(c)
		if err != nil {
			return nil, err
		}
		return prepare(c, s)
	}
	return d
}

// Direct runs f on the elements of input 0 and output 0.
func Direct[X, Y tensor.Number](f func(p *workers.Pool, x []X, y []Y)) op.Run {
	return func(c *op.Call) error {
		f(c.Pool, tensor.Of[X](c.In[0]), tensor.Of[Y](c.Out[0]))
		return nil
	}
}

// Ranges runs f on the elements of output 0 and input 0, for ranges that cover [0, n), see
// [workers.Pool.For].
func Ranges[X, Y tensor.Number](n, grain int, f func(y []Y, x []X, lo, hi int)) op.Run {
	return RangesWorker(n, grain, func(y []Y, x []X, _, lo, hi int) { f(y, x, lo, hi) })
}

// RangesWorker is [Ranges] with the number of the worker, see [workers.Pool.ForWorker].
func RangesWorker[X, Y tensor.Number](n, grain int, f func(y []Y, x []X, worker, lo, hi int)) op.Run {
	// Allocated once: a run must not allocate.
	var x []X
	var y []Y
	work := func(worker, lo, hi int) { f(y, x, worker, lo, hi) }
	return func(c *op.Call) error {
		x, y = tensor.Of[X](c.In[0]), tensor.Of[Y](c.Out[0])
		c.Pool.ForWorker(n, grain, work)
		return nil
	}
}

// Map applies f to every element.
func Map[X, Y tensor.Number](f func(X) Y) op.Run {
	return mapRanges(Grain, func(y []Y, x []X) {
		for i, v := range x {
			y[i] = f(v)
		}
	})
}

// MapRows is Map with a function on slices.
func MapRows[X, Y tensor.Number](f func(dst []Y, src []X)) op.Run { return mapRanges(1<<14, f) }

// mapRanges applies f to ranges of at least grain elements.
func mapRanges[X, Y tensor.Number](grain int, f func(y []Y, x []X)) op.Run {
	var x []X
	var y []Y
	work := func(lo, hi int) { f(y[lo:hi], x[lo:hi]) }
	return func(c *op.Call) error {
		x, y = tensor.Of[X](c.In[0]), tensor.Of[Y](c.Out[0])
		c.Pool.For(len(y), grain, work)
		return nil
	}
}

// WeightZero returns the common zero point of all weights of an 8-bit filter; ok is false if they
// differ.
func WeightZero(t *tensor.Tensor) (zero int32, ok bool) {
	if t.Quant == nil || len(t.Quant.Zero) == 0 {
		return 0, true
	}
	for _, z := range t.Quant.Zero {
		if z != t.Quant.Zero[0] {
			return 0, false
		}
	}
	return int32(t.Quant.Zero[0]), true
}

// ReadWeights passes the weights of a filter to one of three functions: 8-bit and narrower ones to
// i8 or u8, with their zero point, if all have the same; others to i16, as differences to their
// zero points. 8-bit weights are not copied.
func ReadWeights(t *tensor.Tensor, i8 func(w []int8, zero int32), u8 func(w []uint8, zero int32), i16 func(w []int16)) error {
	if zero, one := WeightZero(t); one {
		switch t.Type {
		case tensor.Int8:
			i8(tensor.Of[int8](t), zero)
			return nil
		case tensor.Uint8:
			u8(tensor.Of[uint8](t), zero)
			return nil
		case tensor.Int4, tensor.Int2:
			w, err := tensor.All[int8](t)
			if err == nil {
				i8(w, zero)
			}
			return err
		}
	}
	w, err := Weights(t)
	if err == nil {
		i16(w)
	}
	return err
}

// Weights reads the filter as differences to its zero points.
func Weights(t *tensor.Tensor) ([]int16, error) {
	w := make([]int16, t.Len())
	switch t.Type {
	case tensor.Int8:
		differences(w, tensor.Of[int8](t), t)
	case tensor.Uint8:
		differences(w, tensor.Of[uint8](t), t)
	default:
		q, err := Integers(t)
		if err != nil {
			return nil, err
		}
		differences(w, q, t)
	}
	return w, nil
}

// differences computes the differences of the integers q of t to their zero points.
func differences[T int8 | uint8 | int32](w []int16, q []T, t *tensor.Tensor) {
	part := func(lo, hi int, _ float32, z int32) {
		for i, v := range q[lo:hi] {
			w[lo+i] = int16(int32(v) - z)
		}
	}
	if z, ok := WeightZero(t); ok {
		part(0, len(w), 1, z) // whatever the scales are
		return
	}
	eachRun(t, part)
}

// Options parses a custom operator's options.
func Options(c *op.Call) (flexbuffer.Value, error) {
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	v, err := flexbuffer.Parse(b)
	if err != nil {
		return flexbuffer.Value{}, fmt.Errorf("custom options: %w", err)
	}
	return v, nil
}
