package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// inferReshape takes the shape from the second input if it is a list, else from the options. One
// dimension may be -1.
func inferReshape(c *op.Call) error {
	x := c.In[0]
	want := c.Node.Attrs.Ints("new_shape")
	if s := c.Input(1); s != nil && s.Rank() == 1 && s.Type.IsInteger() {
		var err error
		if want, err = op.Ints(s); err != nil {
			return err
		}
	} else if len(want) == 1 && want[0] == 0 {
		want = []int{} // how old converters wrote a scalar
	}
	shape := like(want)
	n, free := 1, -1
	for i, d := range shape {
		switch {
		case d >= 0:
			n *= d
		case d == -1 && free < 0:
			free = i
		default:
			return fmt.Errorf("new shape %s has more than one free dimension", tensor.FormatShape(want))
		}
	}
	if free >= 0 {
		if n == 0 {
			return fmt.Errorf("new shape %s has a free dimension beside a zero", tensor.FormatShape(want))
		}
		shape[free] = x.Len() / n
		n *= shape[free]
	}
	if n != x.Len() {
		return fmt.Errorf("shape %s cannot become %s", tensor.FormatShape(x.Shape), tensor.FormatShape(want))
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func inferSqueeze(c *op.Call) error {
	x := c.In[0]
	drop := make([]bool, x.Rank())
	dims := c.Node.Attrs.Ints("squeeze_dims")
	for _, d := range dims {
		a, err := op.Axis(d, x.Rank())
		if err != nil {
			return err
		}
		if x.Shape[a] != 1 {
			return fmt.Errorf("axis %d of shape %s is not 1", d, tensor.FormatShape(x.Shape))
		}
		drop[a] = true
	}
	shape := make([]int, 0, x.Rank())
	for i, d := range x.Shape {
		if !drop[i] && (d != 1 || len(dims) > 0) {
			shape = append(shape, d)
		}
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func inferExpandDims(c *op.Call) error {
	x := c.In[0]
	a, err := axisOf(c, 1, x.Rank()+1)
	if err != nil {
		return err
	}
	c.SetOut(0, x.Type, slices.Insert(like(x.Shape), a, 1))
	return nil
}

// inferBitcast keeps the bytes: a smaller result type adds a last axis, a larger one removes it.
func inferBitcast(c *op.Call) error {
	x, t := c.In[0], declared(c, 0)
	from, to := x.Type.Bits(), t.Bits()
	if from < 8 || to < 8 {
		return op.Unsupported("from %v to %v", x.Type, t)
	}
	shape := like(x.Shape)
	switch {
	case to < from:
		shape = append(shape, from/to)
	case to > from:
		if n := len(shape); n == 0 || shape[n-1] != to/from {
			return fmt.Errorf("shape %s of %v does not fit %v", tensor.FormatShape(shape), x.Type, t)
		}
		shape = shape[:len(shape)-1]
	}
	c.SetOut(0, t, shape)
	return nil
}

func inferShape(c *op.Call) error {
	t, err := indexType(c, 0)
	if err != nil {
		return err
	}
	c.SetOut(0, t, []int{c.In[0].Rank()})
	return nil
}

func inferRank(c *op.Call) error {
	c.SetOut(0, tensor.Int32, []int{})
	return nil
}
