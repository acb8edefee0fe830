package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func splitDefs() []op.Def {
	return slices.Concat(
		op.Versions(op.Def{Name: "SplitToSequence", Infer: op.Needs(1, inferSplit), Prepare: op.Simple(runSplit)}, 11, 24),
		op.Versions(op.Def{Name: "ConcatFromSequence", Infer: op.Needs(1, inferConcat), Prepare: op.Simple(runConcat)}, 11),
	)
}

func inferSplit(c *op.Call) error {
	if _, err := op.Axis(c.Node.Attrs.Int("axis", 0), c.In[0].Rank()); err != nil {
		return err
	}
	if c.Has(1) && c.In[1].Rank() > 1 {
		return fmt.Errorf("split has rank %d", c.In[1].Rank())
	}
	setSequence(c, c.In[0].Type)
	return nil
}

// lengths resolves how an axis of n is split.
func lengths(c *op.Call, n int) ([]int, error) {
	size := 1
	if c.Has(1) {
		v, err := op.Ints(c.In[1])
		if err != nil {
			return nil, err
		}
		if c.In[1].Rank() == 1 {
			sum := 0
			for _, k := range v {
				if k < 0 || k > n {
					return nil, fmt.Errorf("cannot split %d into %v", n, v)
				}
				sum += k
			}
			if sum != n {
				return nil, fmt.Errorf("cannot split %d into %v", n, v)
			}
			return v, nil
		}
		size = v[0]
	}
	if size <= 0 {
		return nil, fmt.Errorf("cannot split into parts of %d", size)
	}
	var out []int
	for at := 0; at < n; at += min(size, n-at) {
		out = append(out, min(size, n-at))
	}
	return out, nil
}

func runSplit(c *op.Call) error {
	x := c.In[0]
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), x.Rank())
	if err != nil {
		return err
	}
	sizes, err := lengths(c, x.Shape[axis])
	if err != nil {
		return err
	}
	drop := !c.Has(1) && !c.Node.Attrs.Bool("keepdims", true)
	elems, err := cut(c.Pool, x, axis, sizes)
	if err != nil {
		return err
	}
	for _, e := range elems {
		if drop {
			e.Shape = slices.Delete(e.Shape, axis, axis+1)
		}
	}
	c.Out[0].Elems = elems
	return nil
}

func inferConcat(c *op.Call) error {
	if err := needSequence(c); err != nil {
		return err
	}
	if !c.In[0].Known() {
		return op.ErrDynamic
	}
	items := c.In[0].Elems
	if len(items) == 0 {
		return errors.New("sequence is empty")
	}
	g, err := joined(c, items)
	if err != nil {
		return err
	}
	return c.Result(items[0].Type, g.Shape)
}

// joined stacks or concatenates the items.
func joined(c *op.Call, items []*tensor.Tensor) (g layout.Geometry, err error) {
	axis := c.Node.Attrs.Int("axis", 0)
	if c.Node.Attrs.Bool("new_axis", false) {
		return layout.Stack(items, axis)
	}
	if axis, err = op.Axis(axis, items[0].Rank()); err != nil {
		return g, err
	}
	return layout.Concat(items, axis)
}

func runConcat(c *op.Call) error {
	items := c.In[0].Elems
	g, err := joined(c, items)
	if err != nil {
		return err
	}
	return collect(c.Pool, c.Out[0], items, g)
}
