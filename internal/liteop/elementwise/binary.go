package elementwise

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	var all []op.Def
	for _, l := range [][]op.Def{compareDefs(), mathDefs(), selectDefs(), castDefs()} {
		all = append(all, l...)
	}
	for i := range all {
		all[i].Types = types[all[i].Name]
	}
	return all
}

// types lists the element types of operators that do not take all numbers.
var types = func() map[string][]tensor.Type {
	signed := []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	divided := append([]tensor.Type{tensor.Float32, tensor.Uint8}, signed...)
	shifted := append([]tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}, signed...)
	truth := []tensor.Type{tensor.Bool}
	return map[string][]tensor.Type{
		"LOGICAL_AND": truth, "LOGICAL_OR": truth, "LOGICAL_NOT": truth, "SELECT": truth, "SELECT_V2": truth, "FLOOR_DIV": divided, "FLOOR_MOD": divided,
		"POW": {tensor.Float32, tensor.Int32}, "ATAN2": {tensor.Float32, tensor.Float64}, "RIGHT_SHIFT": shifted, "BITWISE_XOR": append(truth, shifted...),
	}
}()

func lite(name string, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) op.Def {
	return op.Def{Domain: graph.TFLite, Name: name, Infer: infer, Prepare: layout.Widened(prepare)}
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

// rowFunc computes one row; steps of a and b are 1 or 0.
type rowFunc[T, R any] func(y []R, a, b []T, as, bs int)

// grain is the number of elements below which another thread does not pay.
const grain = 1 << 14

// overRows runs a row function over the broadcast of the inputs.
func overRows[T, R any](c *op.Call, in [2]func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, f rowFunc[T, R]) (op.Run, error) {
	rows, err := broadcast.New(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		a, b, y := in[0](c.In[0]), in[1](c.In[1]), out(c.Out[0])
		rows.Each(c.Pool, grain, func(o int, at [3]int, n int) {
			f(y[o:o+n], a[at[0]:], b[at[1]:], rows.Step[0], rows.Step[1])
		})
		return nil
	}, nil
}

// by makes a row function of a function of two elements, for operators whose
// own cost makes the call unimportant.
func by[T, R any](f func(a, b T) R) rowFunc[T, R] {
	return func(y []R, a, b []T, as, bs int) {
		i, j := 0, 0
		for k := range y {
			y[k] = f(a[i], b[j])
			i += as
			j += bs
		}
	}
}

// numbers prepares an operator on elements of type T with results of type T.
func numbers[T tensor.Number](c *op.Call, f rowFunc[T, T]) (op.Run, error) {
	return overRows(c, both(tensor.Of[T]), tensor.Of[T], f)
}

// both looks at the two inputs in the same way.
func both[T any](view func(*tensor.Tensor) []T) [2]func(*tensor.Tensor) []T {
	return [2]func(*tensor.Tensor) []T{view, view}
}
