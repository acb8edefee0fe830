package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// sequence makes a sequence value of elements that are never written again.
func sequence(t tensor.Type, elems []*tensor.Tensor) *tensor.Tensor {
	return &tensor.Tensor{Type: tensor.Sequence, Elem: t, Elems: elems, Data: []byte{}}
}

// setSequence declares output 0 a sequence of elements of type t.
func setSequence(c *op.Call, t tensor.Type) {
	c.SetOut(0, tensor.Sequence, nil)
	if c.Wants(0) {
		c.Out[0].Elem = t
	}
}

// elemType returns the type of a sequence's elements.
func elemType(x *tensor.Tensor) tensor.Type {
	if len(x.Elems) > 0 {
		return x.Elems[0].Type
	}
	return x.Elem
}

func needSequence(c *op.Call) error {
	if c.In[0].Type != tensor.Sequence {
		return fmt.Errorf("input 0 is %v, not a sequence", c.In[0].Type)
	}
	return nil
}

func inferEmpty(c *op.Call) error {
	t := tensor.Float32
	if c.Node.Attrs.Has("dtype") {
		var err error
		if t, err = elem.FromCode(c.Node.Attrs.Int("dtype", 0)); err != nil {
			return err
		}
	}
	setSequence(c, t)
	return nil
}

func runEmpty(c *op.Call) error {
	c.Out[0].Elems = nil
	return nil
}

func inferConstruct(c *op.Call) error {
	if err := c.NeedInputs(max(1, len(c.In))); err != nil {
		return err
	}
	for i, x := range c.In {
		if x.Type.IsContainer() {
			return fmt.Errorf("input %d is a %v, and sequences hold tensors", i, x.Type)
		}
		if x.Type != c.In[0].Type {
			return fmt.Errorf("input %d is %v and input 0 is %v", i, x.Type, c.In[0].Type)
		}
	}
	setSequence(c, c.In[0].Type)
	return nil
}

func runConstruct(c *op.Call) error {
	elems := make([]*tensor.Tensor, len(c.In))
	for i, x := range c.In {
		elems[i] = own(x)
	}
	c.Out[0].Elems = elems
	return nil
}

// position reads the optional position of an element; limit is the largest allowed, def the
// default if it is absent.
func position(c *op.Call, input, n, limit, def int) (int, error) {
	if !c.Has(input) {
		return def, nil
	}
	v, err := op.Ints(c.In[input])
	if err != nil {
		return 0, err
	}
	if len(v) != 1 {
		return 0, fmt.Errorf("position has %d elements, not 1", len(v))
	}
	p := v[0]
	if p < 0 {
		p += n
	}
	if p < 0 || p > limit {
		return 0, fmt.Errorf("position %d is outside a sequence of %d", v[0], n)
	}
	return p, nil
}

func inferInsert(c *op.Call) error {
	if err := needSequence(c); err != nil {
		return err
	}
	if c.In[1].Type.IsContainer() {
		return fmt.Errorf("cannot insert a %v: sequences hold tensors", c.In[1].Type)
	}
	if t := elemType(c.In[0]); t != c.In[1].Type && t != tensor.Invalid {
		return fmt.Errorf("cannot insert %v into a sequence of %v", c.In[1].Type, t)
	}
	setSequence(c, c.In[1].Type)
	return nil
}

func runInsert(c *op.Call) error {
	old := c.In[0].Elems
	p, err := position(c, 2, len(old), len(old), len(old))
	if err != nil {
		return err
	}
	elems := make([]*tensor.Tensor, 0, len(old)+1)
	elems = append(elems, old[:p]...)
	elems = append(elems, own(c.In[1]))
	c.Out[0].Elems = append(elems, old[p:]...)
	return nil
}

func inferErase(c *op.Call) error {
	if err := needSequence(c); err != nil {
		return err
	}
	setSequence(c, elemType(c.In[0]))
	return nil
}

func runErase(c *op.Call) error {
	old := c.In[0].Elems
	p, err := position(c, 1, len(old), len(old)-1, len(old)-1)
	if err != nil {
		return err
	}
	if p < 0 {
		return errors.New("sequence is empty")
	}
	c.Out[0].Elems = slices.Concat(old[:p], old[p+1:])
	return nil
}

// element finds the element that SequenceAt selects, which must be known.
func element(c *op.Call) (*tensor.Tensor, error) {
	if !c.In[0].Known() || !c.In[1].Known() {
		return nil, op.ErrDynamic
	}
	n := len(c.In[0].Elems)
	p, err := position(c, 1, n, n-1, 0)
	if err != nil {
		return nil, err
	}
	return c.In[0].Elems[p], nil
}

func inferAt(c *op.Call) error {
	if err := needSequence(c); err != nil {
		return err
	}
	x, err := element(c)
	if err != nil {
		return err
	}
	return c.Result(x.Type, slices.Clone(x.Shape))
}

func runAt(c *op.Call) error {
	x, err := element(c)
	if err != nil {
		return err
	}
	layout.Copy(c.Pool, c.Out[0], x)
	return nil
}

func inferLength(c *op.Call) error {
	if err := needSequence(c); err != nil {
		return err
	}
	return c.Result(tensor.Int64, nil)
}

func runLength(c *op.Call) error {
	tensor.Of[int64](c.Out[0])[0] = int64(len(c.In[0].Elems))
	return nil
}

// declared parses the type attribute of an empty Optional, such as "seq(tensor(float32))".
func declared(s string) tensor.Type {
	switch {
	case strings.HasPrefix(s, "seq("):
		return tensor.Sequence
	case strings.HasPrefix(s, "optional("):
		return tensor.Optional
	case strings.HasPrefix(s, "tensor("):
		t, _ := tensor.ParseType(strings.TrimSuffix(strings.TrimPrefix(s, "tensor("), ")"))
		return t
	}
	return tensor.Invalid
}

func inferOptional(c *op.Call) error {
	t := declared(c.Node.Attrs.Str("type", ""))
	if c.Has(0) {
		t = c.In[0].Type
	} else if !c.Node.Attrs.Has("type") {
		return errors.New("neither an element nor a type is given")
	}
	c.SetOut(0, tensor.Optional, nil)
	if c.Wants(0) {
		c.Out[0].Elem = t
	}
	return nil
}

func runOptional(c *op.Call) error {
	c.Out[0].Elems = nil
	if c.Has(0) {
		c.Out[0].Elems = []*tensor.Tensor{own(c.In[0])}
	}
	return nil
}

// content returns the content of an optional, or the input itself if it is not an optional.
func content(c *op.Call) (*tensor.Tensor, error) {
	x := c.In[0]
	if x.Type != tensor.Optional {
		return x, nil
	}
	if !x.Known() {
		return nil, op.ErrDynamic
	}
	if len(x.Elems) == 0 {
		return nil, errors.New("optional has no element")
	}
	return x.Elems[0], nil
}

func inferGet(c *op.Call) error {
	x, err := content(c)
	if err != nil {
		return err
	}
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	if c.Wants(0) && x.Type.IsContainer() {
		c.Out[0].Elem = x.Elem
	}
	return nil
}

func runGet(c *op.Call) error {
	x, err := content(c)
	if err != nil {
		return err
	}
	layout.Copy(c.Pool, c.Out[0], x)
	return nil
}

func inferHas(c *op.Call) error { return c.Result(tensor.Bool, nil) }

func runHas(c *op.Call) error {
	c.Out[0].Data[0] = 0
	if c.Has(0) && (c.In[0].Type != tensor.Optional || len(c.In[0].Elems) > 0) {
		c.Out[0].Data[0] = 1
	}
	return nil
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
