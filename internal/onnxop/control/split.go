package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func splitDefs() []op.Def {
	return slices.Concat(
		op.Versions(op.Def{Name: "SplitToSequence", Infer: inferSplit, Prepare: op.Simple(runSplit)}, 11, 24),
		op.Versions(op.Def{Name: "ConcatFromSequence", Infer: inferConcat, Prepare: op.Simple(runConcat)}, 11),
	)
}

func inferSplit(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	if _, err := op.Axis(c.Node.Attrs.Int("axis", 0), c.In[0].Rank()); err != nil {
		return err
	}
	if c.Has(1) && c.In[1].Rank() > 1 {
		return fmt.Errorf("split has rank %d", c.In[1].Rank())
	}
	setSequence(c, c.In[0].Type)
	return nil
}

// lengths resolves how an axis of n is cut.
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
	src := move.Unpack(x)
	outer, inner := tensor.Elements(x.Shape[:axis]), tensor.Elements(x.Shape[axis+1:])
	var p move.Plan
	elems := make([]*tensor.Tensor, len(sizes))
	at := 0
	for i, n := range sizes {
		shape := slices.Clone(x.Shape)
		shape[axis] = n
		part := tensor.New(src.Type, shape...)
		p.Set([]int{outer, n * inner}, []int{n * inner, 1}, []int{x.Shape[axis] * inner, 1}, 0, at*inner)
		p.Run(c.Pool, part, src)
		at += n
		if move.Packed(x) {
			y := tensor.New(x.Type, shape...)
			move.Pack(y, part)
			part = y
		}
		if drop {
			part.Shape = slices.Delete(shape, axis, axis+1)
		}
		elems[i] = part
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
	stacked := c.Node.Attrs.Bool("new_axis", false)
	out := slices.Clone(items[0].Shape)
	rank := len(out)
	if stacked {
		rank++
	}
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), rank)
	if err != nil {
		return err
	}
	for i, x := range items {
		if x.Type != items[0].Type || x.Rank() != items[0].Rank() {
			return fmt.Errorf("element %d differs from element 0 in type or rank", i)
		}
		for k, d := range x.Shape {
			if (stacked || k != axis) && d != items[0].Shape[k] {
				return fmt.Errorf("element %d is %s and element 0 is %s", i, tensor.FormatShape(x.Shape), tensor.FormatShape(items[0].Shape))
			}
		}
		if !stacked && i > 0 {
			out[axis] += x.Shape[axis]
		}
	}
	if stacked {
		out = slices.Insert(out, axis, len(items))
	}
	c.SetOut(0, items[0].Type, out)
	return nil
}

func runConcat(c *op.Call) error {
	y, items := c.Out[0], c.In[0].Elems
	stacked := c.Node.Attrs.Bool("new_axis", false)
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), y.Rank())
	if err != nil {
		return err
	}
	if stacked {
		return join(c.Pool, y, items, axis, false)
	}
	dst := y
	if move.Packed(y) {
		dst = tensor.New(tensor.Uint8, y.Shape...)
	}
	outer, inner := tensor.Elements(y.Shape[:axis]), tensor.Elements(y.Shape[axis+1:])
	var p move.Plan
	at := 0
	for _, x := range items {
		n := x.Shape[axis] * inner
		p.Set([]int{outer, n}, []int{y.Shape[axis] * inner, 1}, []int{n, 1}, at, 0)
		p.Run(c.Pool, dst, move.Unpack(x))
		at += n
	}
	if dst != y {
		move.Pack(y, dst)
	}
	return nil
}
