package math

import (
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/vecmath"
)

// inferMany broadcasts any number of inputs.
func inferMany(c *op.Call) error {
	if err := c.NeedInputs(max(1, len(c.In))); err != nil {
		return err
	}
	shapes := make([][]int, len(c.In))
	for i, x := range c.In {
		shapes[i] = x.Shape
	}
	out, err := tensor.Broadcast(shapes...)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

// prepareMany folds the inputs into the output, two at a time: Max, Min, Sum and
// Mean.
func prepareMany(c *op.Call, k arith, mean bool) (op.Run, error) {
	if err := sameTypes(c, 0); err != nil {
		return nil, err
	}
	switch c.In[0].Type {
	case tensor.Float32:
		return foldMany(c, realLoops[float32](k), realScale[float32](mean, len(c.In)))
	case tensor.Float64:
		return foldMany(c, realLoops[float64](k), realScale[float64](mean, len(c.In)))
	}
	if mean {
		return nil, badType(c, 0)
	}
	switch c.In[0].Type {
	case tensor.Int8:
		return foldMany(c, intLoops[int8](k), nil)
	case tensor.Int16:
		return foldMany(c, intLoops[int16](k), nil)
	case tensor.Int32:
		return foldMany(c, intLoops[int32](k), nil)
	case tensor.Int64:
		return foldMany(c, intLoops[int64](k), nil)
	case tensor.Uint8:
		return foldMany(c, intLoops[uint8](k), nil)
	case tensor.Uint16:
		return foldMany(c, intLoops[uint16](k), nil)
	case tensor.Uint32:
		return foldMany(c, intLoops[uint32](k), nil)
	case tensor.Uint64:
		return foldMany(c, intLoops[uint64](k), nil)
	}
	return nil, badType(c, 0)
}

// realScale returns the division that turns a sum of n into a mean.
func realScale[T real](mean bool, n int) func([]T) {
	if !mean {
		return nil
	}
	return func(v []T) {
		for i := range v {
			v[i] /= T(n)
		}
	}
}

func foldMany[T tensor.Number](c *op.Call, l loops[T, T], after func([]T)) (op.Run, error) {
	out := c.Out[0].Shape
	n := len(c.In)
	// The first step reads inputs 0 and 1 (a single input is copied), each further
	// one the output and an input.
	steps := make([]*binary[T, T], 0, n)
	for i := 1; i < n; i++ {
		first := out
		if i == 1 {
			first = c.In[0].Shape
		}
		plan, err := NewBroadcast(out, first, c.In[i].Shape)
		if err != nil {
			return nil, err
		}
		r := newBinary[T, T](c.Pool, plan, l.vec)
		r.vs, r.sv = l.vs, l.sv
		steps = append(steps, r)
	}
	return func(c *op.Call) error {
		dst := tensor.Of[T](c.Out[0])
		if len(steps) == 0 {
			copy(dst, tensor.Of[T](c.In[0]))
		}
		for i, r := range steps {
			a := dst
			if i == 0 {
				a = tensor.Of[T](c.In[0])
			}
			r.run(c.Pool, dst, a, tensor.Of[T](c.In[i+1]))
		}
		if after != nil {
			after(dst)
		}
		return nil
	}, nil
}

// inferSwiGLU wants equal shapes: the operator does not broadcast.
func inferSwiGLU(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	a, b := c.In[0].Shape, c.In[1].Shape
	if tensor.FormatShape(a) != tensor.FormatShape(b) {
		return c.Errorf("shapes %s and %s differ", tensor.FormatShape(a), tensor.FormatShape(b))
	}
	c.SetOut(0, c.In[0].Type, a)
	return nil
}

// prepareSwiGLU computes a·sigmoid(alpha·a)·b.
func prepareSwiGLU(c *op.Call) (op.Run, error) {
	if err := sameTypes(c, 0); err != nil {
		return nil, err
	}
	alpha := c.Node.Attrs.Float("alpha", 1)
	switch c.In[0].Type {
	case tensor.Float32:
		return prepareLoops(c, loops[float32, float32]{vec: func(dst, a, b []float32) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i, x := range a {
				dst[i] = x * vecmath.Sigmoid(alpha*x) * b[i]
			}
		}})
	case tensor.Float64:
		return prepareLoops(c, loops[float64, float64]{vec: func(dst, a, b []float64) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i, x := range a {
				dst[i] = x * sigmoid64(float64(alpha)*x) * b[i]
			}
		}})
	}
	return nil, badType(c, 0)
}
