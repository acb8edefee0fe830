package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func gatherDefs() []op.Def {
	return []op.Def{
		lite("GATHER", inferGather, prepareGather),
		lite("GATHER_ND", inferGatherND, prepareGatherND),
	}
}

// gatherAxes resolves the options: axis of the parameters, leading batch axes.
func gatherAxes(c *op.Call) (axis, batch int, err error) {
	x, idx := c.In[0], c.In[1]
	if axis, err = op.Axis(c.Node.Attrs.Int("axis", 0), x.Rank()); err != nil {
		return 0, 0, err
	}
	if batch = c.Node.Attrs.Int("batch_dims", 0); batch < 0 {
		batch += idx.Rank()
	}
	if batch < 0 || batch > axis || batch > idx.Rank() || !slices.Equal(x.Shape[:batch], idx.Shape[:batch]) {
		return 0, 0, fmt.Errorf("%d batch axes of shapes %s and %s, axis %d", batch, tensor.FormatShape(x.Shape), tensor.FormatShape(idx.Shape), axis)
	}
	return axis, batch, nil
}

func inferGather(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	axis, batch, err := gatherAxes(c)
	if err != nil {
		return err
	}
	x := c.In[0].Shape
	c.SetOut(0, c.In[0].Type, slices.Concat(x[:axis], c.In[1].Shape[batch:], x[axis+1:]))
	return nil
}

func prepareGather(c *op.Call) (op.Run, error) {
	axis, batch, err := gatherAxes(c)
	if err != nil {
		return nil, err
	}
	x, idx := c.In[0], c.In[1]
	store, err := storeFor(x.Type)
	if err != nil {
		return nil, err
	}
	batches := tensor.Elements(x.Shape[:batch])
	rows := tensor.Elements(x.Shape[batch:axis])
	n, run := x.Shape[axis], inner(x.Shape, axis)
	picks := tensor.Elements(idx.Shape[batch:])
	read, err := indexReader(idx)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		at := read(c.In[1])
		for _, i := range at {
			if i < 0 || i >= n {
				return fmt.Errorf("index %d is outside 0 to %d", i, n-1)
			}
		}
		// One job a result row of `run` elements.
		c.Pool.For(batches*rows*picks, max(1, 16384/max(1, run)), func(lo, hi int) {
			for o := lo; o < hi; o++ {
				r, k := o/picks, o%picks
				store.Copy(c.Out[0], c.In[0], o*run, (r*n+at[r/rows*picks+k])*run, run)
			}
		})
		return nil
	}, nil
}

// indexReader returns a function that reads integers into the same memory again
// and again.
func indexReader(x *tensor.Tensor) (func(x *tensor.Tensor) []int, error) {
	at := make([]int, x.Len())
	switch x.Type {
	case tensor.Int64:
		return func(x *tensor.Tensor) []int { return widen(at, tensor.Of[int64](x)) }, nil
	case tensor.Int32:
		return func(x *tensor.Tensor) []int { return widen(at, tensor.Of[int32](x)) }, nil
	case tensor.Int16:
		return func(x *tensor.Tensor) []int { return widen(at, tensor.Of[int16](x)) }, nil
	case tensor.Int8:
		return func(x *tensor.Tensor) []int { return widen(at, tensor.Of[int8](x)) }, nil
	case tensor.Uint8:
		return func(x *tensor.Tensor) []int { return widen(at, tensor.Of[uint8](x)) }, nil
	}
	return nil, op.Unsupported("indices of type %v", x.Type)
}

func widen[T tensor.Number](dst []int, v []T) []int {
	for i, x := range v {
		dst[i] = int(x)
	}
	return dst
}

func inferGatherND(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	x, idx := c.In[0].Shape, c.In[1].Shape
	if len(idx) == 0 || idx[len(idx)-1] > len(x) {
		return fmt.Errorf("indices %s for shape %s", tensor.FormatShape(idx), tensor.FormatShape(x))
	}
	last := len(idx) - 1
	c.SetOut(0, c.In[0].Type, slices.Concat(idx[:last], x[idx[last]:]))
	return nil
}

func prepareGatherND(c *op.Call) (op.Run, error) {
	x, idx := c.In[0], c.In[1]
	store, err := storeFor(x.Type)
	if err != nil {
		return nil, err
	}
	depth := idx.Shape[idx.Rank()-1]
	run := tensor.Elements(x.Shape[depth:])
	read, err := indexReader(idx)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		at := read(c.In[1])
		rows := tensor.Elements(idx.Shape[:idx.Rank()-1])
		for r := range rows {
			from, err := flatIndex(at[r*depth:][:depth], x.Shape)
			if err != nil {
				return err
			}
			store.Copy(c.Out[0], c.In[0], r*run, from*run, run)
		}
		return nil
	}, nil
}

// flatIndex turns coordinates of the leading axes into a row number.
func flatIndex(at, shape []int) (int, error) {
	n := 0
	for i, a := range at {
		if a < 0 || a >= shape[i] {
			return 0, fmt.Errorf("index %v is outside %s", at, tensor.FormatShape(shape))
		}
		n = n*shape[i] + a
	}
	return n, nil
}
