package index

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func inferOneHot(c *op.Call) error {
	if c.In[2].Len() != 2 {
		return fmt.Errorf("values have %d elements, not 2", c.In[2].Len())
	}
	if c.In[1].Len() != 1 {
		return fmt.Errorf("depth has %d elements, not 1", c.In[1].Len())
	}
	if !c.In[0].Type.IsNumber() {
		return op.Unsupported("indices of type %v", c.In[0].Type)
	}
	a, err := op.Axis(c.Node.Attrs.Int("axis", -1), c.In[0].Rank()+1)
	if err != nil {
		return err
	}
	if !c.In[1].Known() {
		return op.ErrDynamic
	}
	d, err := tensor.All[float64](c.In[1])
	if err != nil {
		return err
	}
	if !(d[0] >= 0 && d[0] <= tensor.MaxBytes) {
		return fmt.Errorf("depth is %g", d[0])
	}
	return c.Result(c.In[2].Type, slices.Insert(slices.Clone(c.In[0].Shape), a, int(d[0])))
}

func prepareOneHot(c *op.Call) (op.Run, error) {
	a := op.Must(op.Axis(c.Node.Attrs.Int("axis", -1), c.In[0].Rank()+1))
	version := c.Node.Version
	var numbers []float64 // kept: a run must not allocate
	var at []int
	return func(c *op.Call) error {
		if !c.In[0].Type.IsNumber() {
			_, err := tensor.All[float64](c.In[0])
			return err
		}
		numbers = slices.Grow(numbers[:0], c.In[0].Len())[:c.In[0].Len()]
		tensor.Read(numbers, c.In[0], 0)
		at = hot(at[:0], numbers, c.Out[0].Shape[a], layout.Inner(c.Out[0].Shape, a), version)
		v := layout.Of(c.In[2]) // off, on
		return layout.OneHot(c, v.From(1), v, at)
	}, nil
}

// hot appends the output offsets that get the "on" value. Indices outside the depth have none;
// before version 11 neither do negative ones.
func hot(at []int, v []float64, depth, inner, version int) []int {
	for i, f := range v {
		if !(f > -1-float64(depth) && f < float64(depth)) {
			continue
		}
		k := int(f)
		if k < 0 && version >= 11 {
			k += depth
		}
		if k >= 0 {
			at = append(at, layout.OneHotOffset(i, k, depth, inner))
		}
	}
	return at
}

func inferNonZero(c *op.Call) error {
	n, err := layout.CountNonZero(c.In[0])
	if err != nil {
		return err
	}
	// A scalar has no coordinates, but its count is still visible in the shape.
	return c.Result(tensor.Int64, []int{c.In[0].Rank(), n})
}

func runNonZero(c *op.Call) error {
	return layout.NonZeroCoordinates(tensor.Of[int64](c.Out[0]), c.In[0], 1, c.Out[0].Shape[1])
}

// chosen lists the true positions of Compress's condition below n.
func chosen(c *op.Call, buf []int, n int) ([]int, error) {
	buf = buf[:0]
	if c.In[1].Type == tensor.Bool { // without branches on what cannot be foretold
		truths := tensor.Of[uint8](c.In[1])
		truths = truths[:min(n, len(truths))]
		buf = slices.Grow(buf, len(truths)+1)[:len(truths)+1]
		k := 0
		for i, v := range truths {
			buf[k] = i
			k += int(tensor.Truth(v != 0))
		}
		return buf[:k], nil
	}
	err := layout.EachNonZero(c.In[1], func(i int) {
		if i < n {
			buf = append(buf, i)
		}
	})
	return buf, err
}

func inferCompress(c *op.Call) error {
	if c.In[1].Rank() != 1 {
		return errors.New("condition is not a list")
	}
	out, a, n := []int{0}, 0, c.In[0].Len()
	if c.Node.Attrs.Has("axis") {
		var err error
		if a, err = axisOf(c, 0); err != nil {
			return err
		}
		out = slices.Clone(c.In[0].Shape)
		n = out[a]
	}
	if c.In[1].Len() > n {
		return fmt.Errorf("condition has %d elements for %d", c.In[1].Len(), n)
	}
	if !c.In[1].Known() {
		return op.ErrDynamic
	}
	at, err := chosen(c, nil, n)
	if err != nil {
		return err
	}
	out[a] = len(at)
	return c.Result(c.In[0].Type, out)
}

func prepareCompress(c *op.Call) (op.Run, error) {
	n, inner, outer := c.In[0].Len(), 1, 1
	if c.Node.Attrs.Has("axis") {
		a := op.Must(axisOf(c, 0))
		s := c.In[0].Shape
		n, inner, outer = s[a], tensor.Elements(s[a+1:]), tensor.Elements(s[:a])
	}
	var at []int
	return func(c *op.Call) (err error) {
		if at, err = chosen(c, at, n); err != nil {
			return err
		}
		b := move.Blocks{Rows: outer, SrcRow: n * inner, At: at, Len: inner}
		b.Gather(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]))
		return nil
	}, nil
}

func inferTopK(c *op.Call) error {
	x := c.In[0]
	if !layout.Sortable(x.Type) {
		return op.Unsupported("TopK of %v", x.Type)
	}
	if x.Rank() == 0 {
		return fmt.Errorf("input has rank 0")
	}
	a, err := axisOf(c, -1)
	if err != nil {
		return err
	}
	k := c.Node.Attrs.Int("k", -1)
	if c.Node.Version >= 10 {
		if err := c.NeedInputs(2); err != nil {
			return err
		}
		if k, err = layout.Scalar(c.In[1]); err != nil {
			return err
		}
	}
	if k < 0 || k > x.Shape[a] {
		return fmt.Errorf("k is %d of %d elements", k, x.Shape[a])
	}
	out := slices.Clone(x.Shape)
	out[a] = k
	c.SetOut(0, x.Type, out)
	c.SetOut(1, tensor.Int64, slices.Clone(out))
	return nil
}

func prepareTopK(c *op.Call) (op.Run, error) {
	a := op.Must(axisOf(c, -1))
	return layout.TopK(c.In[0].Shape, a, c.Node.Attrs.Bool("largest", true))
}

// inferUnique never knows the count: finding it is the whole work.
func inferUnique(c *op.Call) error {
	if c.Node.Attrs.Has("axis") {
		if _, err := axisOf(c, 0); err != nil {
			return err
		}
	}
	if !layout.Sortable(c.In[0].Type) {
		return op.Unsupported("Unique of %v", c.In[0].Type)
	}
	return op.ErrDynamic
}

func runUnique(c *op.Call) error {
	x := c.In[0]
	lines, shape, axis := order.Lines{Outer: 1, N: x.Len(), Inner: 1}, []int{0}, 0
	if c.Node.Attrs.Has("axis") {
		var err error
		if axis, err = axisOf(c, 0); err != nil {
			return err
		}
		lines, shape = layout.LinesOf(x.Shape, axis), slices.Clone(x.Shape)
	}
	keys, err := layout.Keys(nil, x)
	if err != nil {
		return err
	}
	g := lines.Unique(keys, c.Node.Attrs.Bool("sorted", true))
	if c.Wants(0) {
		shape[axis] = len(g.First)
		y, err := c.Make(0, x.Type, shape)
		if err != nil {
			return err
		}
		b := move.Blocks{Rows: lines.Outer, SrcRow: lines.N * lines.Inner, At: g.First, Len: lines.Inner}
		b.Gather(c.Pool, layout.Of(y), layout.Of(x))
	}
	for i, v := range [][]int{g.First, g.Of, g.Count} {
		if !c.Wants(i + 1) {
			continue
		}
		y, err := c.Make(i+1, tensor.Int64, []int{len(v)})
		if err != nil {
			return err
		}
		if err := layout.PutInts(y, v); err != nil {
			return err
		}
	}
	return nil
}
