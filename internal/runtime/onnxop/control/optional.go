package control

import (
	"errors"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func optionalDefs() []op.Def {
	return slices.Concat(
		op.Versions(op.Def{Name: "Optional", Infer: inferOptional, Prepare: op.Simple(runOptional)}, 15, 28),
		op.Versions(op.Def{Name: "OptionalGetElement", Infer: op.Needs(1, inferGet), Prepare: op.Simple(runGet)}, 15, 18, 28),
		op.Versions(op.Def{Name: "OptionalHasElement", Infer: inferHas, Prepare: op.Simple(runHas)}, 15, 18, 28),
	)
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

func inferHas(c *op.Call) error {
	return c.Result(tensor.Bool, nil)
}

func runHas(c *op.Call) error {
	c.Out[0].Data[0] = 0
	if c.Has(0) && (c.In[0].Type != tensor.Optional || len(c.In[0].Elems) > 0) {
		c.Out[0].Data[0] = 1
	}
	return nil
}
