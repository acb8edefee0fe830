package array

import (
	"fmt"
	"slices"
	"sort"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// indexType returns the integer type of an index output: the declared type, because converters do
// not always set the option.
func indexType(c *op.Call, out int) (tensor.Type, error) {
	if out >= len(c.Out) || c.Out[out] == nil {
		return tensor.Int32, nil
	}
	switch t := declared(c, out); t {
	case tensor.Int32, tensor.Int64:
		return t, nil
	case tensor.Invalid:
		return tensor.Int32, nil
	default:
		return 0, op.Unsupported("result of type %v", t)
	}
}

func inferArg(c *op.Call) error {
	t, err := indexType(c, 0)
	if err != nil {
		return err
	}
	x := c.In[0]
	axis, err := axisOf(c, 1, x.Rank())
	if err != nil {
		return err
	}
	if x.Shape[axis] == 0 {
		return fmt.Errorf("axis %d of %s is empty", axis, tensor.FormatShape(x.Shape))
	}
	c.SetOut(0, t, slices.Delete(like(x.Shape), axis, axis+1))
	return nil
}

func prepareArg(least bool) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		shape, t := c.In[0].Shape, c.In[0].Type
		axis, err := axisOf(c, 1, len(shape))
		if err != nil {
			return nil, err
		}
		if t == tensor.Bool {
			t = tensor.Uint8
		}
		make := tensor.PickNumber(t, runArg[float32], runArg[float64], runArg[int8], runArg[int16], runArg[int32], runArg[int64], runArg[uint8], nil, nil, nil)
		if make == nil {
			return nil, op.Unsupported("elements of type %v", t)
		}
		arg := recipe.Arg{Outer: layout.Outer(shape, axis), N: shape[axis], Inner: layout.Inner(shape, axis), Least: least}
		if c.Const(1) {
			c.Recipe = arg
		}
		return make(arg), nil
	}
}

// runArg finds the first of the largest (or smallest) elements along an axis.
func runArg[T tensor.Number](a recipe.Arg) op.Run {
	var x []T // made once, as the closure below: a run must not allocate
	best, n, in := make([]int, a.Outer*a.Inner), a.N, a.Inner
	f := simd.ArgMaxKernels()
	work := func(lo, hi int) {
		if in == 1 && !a.Least && f != nil && largestOfRows(f, best[lo:hi], x[lo*n:hi*n], n) {
			return
		}
		for o := lo; o < hi; o++ {
			at := o/in*n*in + o%in
			v := x[at]
			best[o] = 0
			for k := 1; k < n; k++ {
				at += in
				if w := x[at]; a.Least && w < v || !a.Least && w > v {
					best[o], v = k, w
				}
			}
		}
	}
	return func(c *op.Call) error {
		x = tensor.Of[T](c.In[0])
		c.Pool.For(len(best), max(1, 16384/n), work)
		return layout.PutInts(c.Out[0], best)
	}
}

// largestOfRows finds the largest elements of rows with SIMD; false if it has no kernel for the
// type.
func largestOfRows[T tensor.Number](f *simd.ArgMax, best []int, x []T, n int) bool {
	switch x := any(x).(type) {
	case []float32:
		f.Floats(best, x, n)
	case []int8:
		f.Bytes(best, quantise.Bits(x), n, true)
	case []uint8:
		f.Bytes(best, x, n, false)
	default:
		return false
	}
	return true
}

func inferTopK(c *op.Call, k int) error {
	shape := like(c.In[0].Shape)
	last := len(shape) - 1
	if last < 0 || k < 0 || k > shape[last] {
		return fmt.Errorf("%d largest of shape %s", k, tensor.FormatShape(shape))
	}
	t := tensor.Int32
	if len(c.Out) > 1 && c.Out[1] != nil && declared(c, 1) == tensor.Int16 {
		t = tensor.Int16
	}
	shape[last] = k
	c.SetOut(0, c.In[0].Type, shape)
	c.SetOut(1, t, like(shape))
	return nil
}

func prepareTopK(c *op.Call) (op.Run, error) {
	if t := c.In[0].Type; !layout.Sortable(t) {
		return nil, op.Unsupported("elements of type %v", t)
	}
	return layout.TopK(c.In[0].Shape, c.In[0].Rank()-1, true)
}

// inferUnique cannot know the number of distinct elements.
func inferUnique(c *op.Call) error {
	if c.In[0].Rank() != 1 {
		return fmt.Errorf("shape %s is not a vector", tensor.FormatShape(c.In[0].Shape))
	}
	if _, err := indexType(c, 1); err != nil {
		return err
	}
	return op.ErrDynamic
}

// runUnique lists each distinct element in order of first occurrence, and for every element its
// index in that list.
func runUnique(c *op.Call) error {
	keys, err := layout.Keys(nil, c.In[0])
	if err != nil {
		return err
	}
	g := order.Lines{Outer: 1, N: len(keys), Inner: 1}.Unique(keys, false)
	y, err := c.Make(0, c.In[0].Type, []int{len(g.First)})
	if err != nil {
		return err
	}
	b := move.Blocks{Rows: 1, At: g.First, Len: 1}
	b.Gather(c.Pool, layout.Of(y), layout.Of(c.In[0]))
	if !c.Wants(1) {
		return nil
	}
	t, err := indexType(c, 1)
	if err != nil {
		return err
	}
	idx, err := c.Make(1, t, []int{len(g.Of)})
	if err != nil {
		return err
	}
	return layout.PutInts(idx, g.Of)
}

func inferWhere(c *op.Call) error {
	n, err := layout.CountNonZero(c.In[0])
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Int64, []int{n, c.In[0].Rank()})
	return nil
}

func runWhere(c *op.Call) error {
	return layout.NonZeroCoordinates(tensor.Of[int64](c.Out[0]), c.In[0], c.In[0].Rank(), 1)
}

// prepareBucketize counts the boundaries that are not above each element.
func prepareBucketize(c *op.Call) (op.Run, error) {
	bounds := c.Node.Attrs.Floats("boundaries")
	if !slices.IsSorted(bounds) {
		return nil, fmt.Errorf("boundaries are not in order")
	}
	make := tensor.PickNumber(c.In[0].Type, runBucketize[float32], runBucketize[float64], nil, nil, runBucketize[int32], runBucketize[int64], nil, nil, nil, nil)
	if make == nil {
		return nil, op.Unsupported("elements of type %v", c.In[0].Type)
	}
	return make(bounds), nil
}

func runBucketize[T tensor.Number](bounds []float32) op.Run {
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[int32](c.Out[0])
		for i, v := range x {
			y[i] = int32(sort.Search(len(bounds), func(k int) bool { return float64(v) < float64(bounds[k]) }))
		}
		return nil
	}
}
