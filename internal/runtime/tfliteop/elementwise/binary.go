package elementwise

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	signed := []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	divided := slices.Concat([]tensor.Type{tensor.Float32, tensor.Uint8}, signed)
	shifted := slices.Concat([]tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}, signed)
	truth := []tensor.Type{tensor.Bool}
	var all []op.Def
	add := func(name string, types []tensor.Type, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) {
		all = append(all, op.Def{Domain: graph.TFLite, Name: name, Types: types, Infer: infer, Prepare: layout.WithUnpacked(prepare)})
	}
	for _, name := range []string{"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"} {
		add(name, nil, inferBinary(tensor.Bool), prepareCompare)
	}
	same := inferBinary(tensor.Invalid)
	add("LOGICAL_AND", truth, inferBinary(tensor.Bool), prepareLogical(element.And[uint8]()))
	add("LOGICAL_OR", truth, inferBinary(tensor.Bool), prepareLogical(element.Or[uint8]()))
	add("LOGICAL_NOT", truth, inferNot, prepareNot)
	add("FLOOR_DIV", divided, same, prepareFloorDiv)
	add("FLOOR_MOD", divided, same, prepareFloorMod)
	add("POW", []tensor.Type{tensor.Float32, tensor.Int32}, same, preparePow)
	add("ATAN2", []tensor.Type{tensor.Float32, tensor.Float64}, same, prepareAtan2)
	add("BITWISE_XOR", slices.Concat(truth, shifted), same, prepareXor)
	add("RIGHT_SHIFT", shifted, same, prepareRightShift)
	add("SELECT", truth, inferSelect, prepareSelect)
	add("SELECT_V2", truth, inferSelect, prepareSelect)
	add("CAST", nil, inferCast, func(c *op.Call) (op.Run, error) { return Cast(c.In[0].Type, c.Out[0].Type) })
	return all
}

// inferBinary broadcasts two inputs of one type. The result has the type t, or
// that of the inputs when t is Invalid.
func inferBinary(t tensor.Type) func(c *op.Call) error {
	return func(c *op.Call) error {
		if err := c.NeedInputs(2); err != nil {
			return err
		}
		a, b := c.In[0], c.In[1]
		if a.Type != b.Type {
			return fmt.Errorf("inputs of types %v and %v", a.Type, b.Type)
		}
		shape, err := tensor.Broadcast(a.Shape, b.Shape)
		if err != nil {
			return err
		}
		r := t
		if r == tensor.Invalid {
			r = a.Type
		}
		c.SetOut(0, r, shape)
		return nil
	}
}

// overRows runs loops over the broadcast of the inputs.
func overRows[T, R any](c *op.Call, in [2]func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, l element.Loops[T, R]) (op.Run, error) {
	walk, err := broadcast.New(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, walk, l)
	return func(c *op.Call) error {
		r.Run(c.Pool, out(c.Out[0]), in[0](c.In[0]), in[1](c.In[1]))
		return nil
	}, nil
}

// numbers prepares an operator on elements of type T with results of type T.
func numbers[T tensor.Number](c *op.Call, l element.Loops[T, T]) (op.Run, error) {
	return overRows(c, both(tensor.Of[T]), tensor.Of[T], l)
}

// both looks at the two inputs in the same way.
func both[T any](view func(*tensor.Tensor) []T) [2]func(*tensor.Tensor) []T {
	return [2]func(*tensor.Tensor) []T{view, view}
}

func badType(c *op.Call) error { return op.Unsupported("elements of type %v", c.In[0].Type) }
