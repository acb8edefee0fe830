package array

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func orderDefs() []op.Def {
	return []op.Def{
		lite("ARG_MAX", inferArg, planned(prepareArg(false), 1)),
		lite("ARG_MIN", inferArg, planned(prepareArg(true), 1)),
		lite("TOPK_V2", inferTopK, prepareTopK),
		lite("UNIQUE", inferUnique, prepareUnique),
		lite("WHERE", inferWhere, prepareWhere),
		lite("BUCKETIZE", inferBucketize, prepareBucketize),
	}
}

// indexType is the integer type of an output that holds places: the declared
// type, since converters do not always set the option.
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
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	t, err := indexType(c, 0)
	if err != nil {
		return err
	}
	a, err := scalarOf(c.In[1])
	if err != nil {
		return err
	}
	x := c.In[0]
	axis, err := op.Axis(a, x.Rank())
	if err != nil {
		return err
	}
	if x.Shape[axis] == 0 {
		return fmt.Errorf("axis %d of %s is empty", axis, tensor.FormatShape(x.Shape))
	}
	c.SetOut(0, t, slices.Delete(like(x.Shape), axis, axis+1))
	return nil
}

func prepareArg(least bool) prepare {
	return func(c *op.Call) (op.Run, error) {
		a, err := scalarOf(c.In[1])
		if err != nil {
			return nil, err
		}
		axis, err := op.Axis(a, c.In[0].Rank())
		if err != nil {
			return nil, err
		}
		switch t := c.In[0].Type; t {
		case tensor.Float32:
			return runArg[float32](axis, least), nil
		case tensor.Float64:
			return runArg[float64](axis, least), nil
		case tensor.Int8:
			return runArg[int8](axis, least), nil
		case tensor.Uint8, tensor.Bool:
			return runArg[uint8](axis, least), nil
		case tensor.Int16:
			return runArg[int16](axis, least), nil
		case tensor.Int32:
			return runArg[int32](axis, least), nil
		case tensor.Int64:
			return runArg[int64](axis, least), nil
		default:
			return nil, op.Unsupported("elements of type %v", t)
		}
	}
}

// runArg finds the first of the largest (or least) elements along an axis.
func runArg[T tensor.Number](axis int, least bool) op.Run {
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), c.Out[0]
		n, in := c.In[0].Shape[axis], inner(c.In[0].Shape, axis)
		put := func(i, k int) { tensor.Of[int32](y)[i] = int32(k) }
		if y.Type == tensor.Int64 {
			put = func(i, k int) { tensor.Of[int64](y)[i] = int64(k) }
		}
		c.Pool.For(y.Len(), max(1, 16384/n), func(lo, hi int) {
			for o := lo; o < hi; o++ {
				at := o/in*n*in + o%in
				best, v := 0, x[at]
				for k := 1; k < n; k++ {
					at += in
					if w := x[at]; least && w < v || !least && w > v {
						best, v = k, w
					}
				}
				put(o, best)
			}
		})
		return nil
	}
}

func inferTopK(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	k, err := scalarOf(c.In[1])
	if err != nil {
		return err
	}
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
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return runTopK[float32](c), nil
	case tensor.Int8:
		return runTopK[int8](c), nil
	case tensor.Uint8:
		return runTopK[uint8](c), nil
	case tensor.Int16:
		return runTopK[int16](c), nil
	case tensor.Int32:
		return runTopK[int32](c), nil
	case tensor.Int64:
		return runTopK[int64](c), nil
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

// runTopK keeps the k best of each row in a heap whose root is the worst, then
// sorts them. Of equal elements the earlier one is better.
func runTopK[T tensor.Number](c *op.Call) op.Run {
	heap := make([]int32, 0, c.In[0].Shape[c.In[0].Rank()-1])
	return func(c *op.Call) error {
		n := c.In[0].Shape[c.In[0].Rank()-1]
		k := c.Out[0].Shape[c.Out[0].Rank()-1]
		if k == 0 {
			return nil
		}
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for r := range len(y) / k {
			row := x[r*n:][:n]
			worse := func(a, b int32) bool { return row[a] < row[b] || row[a] == row[b] && a > b }
			heap = heap[:0]
			for i := range row {
				i := int32(i)
				if len(heap) < k {
					heap = append(heap, i)
					for j := len(heap) - 1; j > 0 && worse(heap[j], heap[(j-1)/2]); j = (j - 1) / 2 {
						heap[j], heap[(j-1)/2] = heap[(j-1)/2], heap[j]
					}
					continue
				}
				if !worse(heap[0], i) {
					continue
				}
				heap[0] = i
				sink(heap, worse)
			}
			slices.SortFunc(heap, func(a, b int32) int {
				return cmp.Or(cmp.Compare(row[b], row[a]), cmp.Compare(a, b))
			})
			for j, i := range heap {
				y[r*k+j] = row[i]
				switch {
				case !c.Wants(1):
				case c.Out[1].Type == tensor.Int16:
					tensor.Of[int16](c.Out[1])[r*k+j] = int16(i)
				default:
					tensor.Of[int32](c.Out[1])[r*k+j] = i
				}
			}
		}
		return nil
	}
}

// sink restores the heap after its root was exchanged.
func sink(heap []int32, worse func(a, b int32) bool) {
	for i := 0; ; {
		m := 2*i + 1
		if m >= len(heap) {
			return
		}
		if m+1 < len(heap) && worse(heap[m+1], heap[m]) {
			m++
		}
		if !worse(heap[m], heap[i]) {
			return
		}
		heap[i], heap[m] = heap[m], heap[i]
		i = m
	}
}

// inferUnique cannot know how many different elements there are.
func inferUnique(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	if c.In[0].Rank() != 1 {
		return fmt.Errorf("shape %s is not a vector", tensor.FormatShape(c.In[0].Shape))
	}
	if _, err := indexType(c, 1); err != nil {
		return err
	}
	return op.ErrDynamic
}

func prepareUnique(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return runUnique[float32], nil
	case tensor.Int8:
		return runUnique[int8], nil
	case tensor.Uint8, tensor.Bool:
		return runUnique[uint8], nil
	case tensor.Int16:
		return runUnique[int16], nil
	case tensor.Int32:
		return runUnique[int32], nil
	case tensor.Int64:
		return runUnique[int64], nil
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

// runUnique lists each element at its first place, and for every element its
// place in that list.
func runUnique[T tensor.Number](c *op.Call) error {
	x := tensor.Of[T](c.In[0])
	place := map[T]int{}
	var list []T
	at := make([]int, len(x))
	for i, v := range x {
		p, ok := place[v]
		if !ok {
			p = len(list)
			place[v] = p
			list = append(list, v)
		}
		at[i] = p
	}
	y, err := c.Make(0, c.In[0].Type, []int{len(list)})
	if err != nil {
		return err
	}
	copy(tensor.Of[T](y), list)
	if !c.Wants(1) {
		return nil
	}
	t, err := indexType(c, 1)
	if err != nil {
		return err
	}
	idx, err := c.Make(1, t, []int{len(at)})
	if err != nil {
		return err
	}
	if t == tensor.Int64 {
		return putInts(tensor.Of[int64](idx), at)
	}
	return putInts(tensor.Of[int32](idx), at)
}

func inferWhere(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	x := c.In[0]
	if !x.Known() {
		return op.ErrDynamic
	}
	n := 0
	if err := eachTrue(x, func(int) { n++ }); err != nil {
		return err
	}
	c.SetOut(0, tensor.Int64, []int{n, x.Rank()})
	return nil
}

// eachTrue calls f for the place of every element that is not zero.
func eachTrue(x *tensor.Tensor, f func(i int)) error {
	switch x.Type {
	case tensor.Bool, tensor.Uint8, tensor.Int8:
		each(tensor.Of[uint8](x), f)
	case tensor.Float32:
		each(tensor.Of[float32](x), f)
	case tensor.Int32, tensor.Uint32:
		each(tensor.Of[int32](x), f)
	case tensor.Int64:
		each(tensor.Of[int64](x), f)
	default:
		return op.Unsupported("elements of type %v", x.Type)
	}
	return nil
}

func each[T tensor.Number](v []T, f func(i int)) {
	for i, e := range v {
		if e != 0 {
			f(i)
		}
	}
}

func prepareWhere(*op.Call) (op.Run, error) {
	return func(c *op.Call) error {
		x, y := c.In[0], tensor.Of[int64](c.Out[0])
		rank, row := x.Rank(), 0
		return eachTrue(x, func(i int) {
			for k := rank - 1; k >= 0; k-- {
				y[row*rank+k] = int64(i % x.Shape[k])
				i /= x.Shape[k]
			}
			row++
		})
	}, nil
}

func inferBucketize(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Int32, like(c.In[0].Shape))
	return nil
}

// prepareBucketize counts the boundaries that are not above each element.
func prepareBucketize(c *op.Call) (op.Run, error) {
	bounds := c.Node.Attrs.Floats("boundaries")
	if !slices.IsSorted(bounds) {
		return nil, fmt.Errorf("boundaries are not in order")
	}
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return runBucketize[float32](bounds), nil
	case tensor.Float64:
		return runBucketize[float64](bounds), nil
	case tensor.Int32:
		return runBucketize[int32](bounds), nil
	case tensor.Int64:
		return runBucketize[int64](bounds), nil
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
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
