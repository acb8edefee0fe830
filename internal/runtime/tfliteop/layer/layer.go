package layer

import (
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

// Map applies f to every element.
func Map[X, Y tensor.Number](f func(X) Y) op.Run {
	// Allocated once: a run must not allocate.
	var x []X
	var y []Y
	work := func(lo, hi int) {
		for i, v := range x[lo:hi] {
			y[lo+i] = f(v)
		}
	}
	return func(c *op.Call) error {
		x, y = tensor.Of[X](c.In[0]), tensor.Of[Y](c.Out[0])
		c.Pool.For(len(y), Grain, work)
		return nil
	}
}

// MapRows is Map with a function on slices.
func MapRows[X, Y tensor.Number](f func(dst []Y, src []X)) op.Run {
	var x []X
	var y []Y
	work := func(lo, hi int) { f(y[lo:hi], x[lo:hi]) }
	return func(c *op.Call) error {
		x, y = tensor.Of[X](c.In[0]), tensor.Of[Y](c.Out[0])
		c.Pool.For(len(y), 1<<14, work)
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
