// Package elementwise implements TFLite's comparisons, logic, selection, conversion and the less
// common arithmetic (integer division, powers, shifts). ADD, MUL and the like are in
// internal/runtime/tfliteop/arith.
package elementwise

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
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
		add(name, nil, InferBinary(tensor.Bool), prepareCompare)
	}
	same := InferBinary(tensor.Invalid)
	add("LOGICAL_AND", truth, InferBinary(tensor.Bool), prepareLogical(element.And[uint8]()))
	add("LOGICAL_OR", truth, InferBinary(tensor.Bool), prepareLogical(element.Or[uint8]()))
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

// InferBinary broadcasts two inputs of one type. The result has the type t, or that of the inputs
// when t is Invalid.
func InferBinary(t tensor.Type) func(c *op.Call) error {
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

// Over runs kernels over the broadcast of inputs 0 and 1. in and out return their elements and
// those of output 0.
func Over[T, R any](c *op.Call, in [2]func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, l element.Loops[T, R]) (op.Run, error) {
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
	return Over(c, both(tensor.Of[T]), tensor.Of[T], l)
}

// both reads the two inputs in the same way.
func both[T any](view func(*tensor.Tensor) []T) [2]func(*tensor.Tensor) []T {
	return [2]func(*tensor.Tensor) []T{view, view}
}

func badType(c *op.Call) error { return op.Unsupported("elements of type %v", c.In[0].Type) }

// choose prepares with the function for the type of input 0, nil for types that are not supported.
func choose(c *op.Call, prepare func(c *op.Call) (op.Run, error)) (op.Run, error) {
	if prepare == nil {
		return nil, badType(c)
	}
	return prepare(c)
}

// conditionShape returns the condition's shape for broadcasting. For SELECT a vector chooses rows
// of the first axis.
func conditionShape(c *op.Call) []int {
	s, x := c.In[0].Shape, c.In[1].Shape
	if c.Node.Op == "SELECT" && len(s) == 1 && len(x) > 1 && s[0] == x[0] {
		rows := slices.Repeat([]int{1}, len(x))
		rows[0] = s[0]
		return rows
	}
	return s
}

func inferSelect(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	cond, x, y := c.In[0], c.In[1], c.In[2]
	if cond.Type != tensor.Bool || x.Type != y.Type {
		return fmt.Errorf("condition of type %v, choices of types %v and %v", cond.Type, x.Type, y.Type)
	}
	shape, err := tensor.Broadcast(conditionShape(c), x.Shape, y.Shape)
	if err != nil {
		return err
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func prepareSelect(c *op.Call) (op.Run, error) {
	rows, err := broadcast.New(c.Out[0].Shape, conditionShape(c), c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return nil, err
	}
	return layout.Select(rows, element.Grain), nil
}

// inferCast uses the type that the file declares for the output, because old converters leave the
// option at its default.
func inferCast(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	t := c.Out[0].Type
	if id := c.Node.Outputs[0]; id >= 0 && c.Graph.Values[id].Type != tensor.Invalid {
		t = c.Graph.Values[id].Type
	}
	if t == tensor.Invalid {
		return op.Unsupported("a cast to an undeclared type")
	}
	c.SetOut(0, t, c.In[0].Shape)
	return nil
}

// Cast returns the function that converts input 0 to output 0, element by element: fractions are
// truncated, values out of range saturate, non-zero values are true, and the imaginary part is
// dropped. Integers wrap around as in two's complement.
func Cast(from, to tensor.Type) (op.Run, error) {
	complexes := from == tensor.Complex64 || to == tensor.Complex64
	if !complexes && (!from.IsNumber() || !to.IsNumber()) || complexes && from != to && !from.IsNumber() && !to.IsNumber() {
		return nil, op.Unsupported("from %v to %v", from, to)
	}
	return func(c *op.Call) error {
		x, y := c.In[0], c.Out[0]
		switch {
		case from == to:
			copy(y.Data, x.Data)
		case from == tensor.Complex64:
			z := tensor.Of[complex64](x)
			re := tensor.New(tensor.Float32, len(z))
			for i, v := range z {
				tensor.Of[float32](re)[i] = real(v)
			}
			castAll(c, y, re)
		case to == tensor.Complex64:
			re := tensor.New(tensor.Float32, x.Len())
			castAll(c, re, x)
			z := tensor.Of[complex64](y)
			for i, v := range tensor.Of[float32](re) {
				z[i] = complex(v, 0)
			}
		default:
			castAll(c, y, x)
		}
		return nil
	}, nil
}

func castAll(c *op.Call, y, x *tensor.Tensor) {
	workers.Do(c.Pool, x.Len(), 16384, [2]*tensor.Tensor{y, x}, func(a [2]*tensor.Tensor, lo, hi int) {
		tensor.Cast(a[0], a[1], lo, hi, tensor.Conversion{Clamp: true})
	})
}
