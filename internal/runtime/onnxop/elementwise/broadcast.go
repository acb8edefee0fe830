package elementwise

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Broadcast is the walk over operands and a result.
type Broadcast = broadcast.Walk

// NewBroadcast plans the walk over operands of the given shapes; it returns an unsupported error
// if the walk cannot handle them.
func NewBroadcast(out []int, operands ...[]int) (*Broadcast, error) {
	b, err := broadcast.New(out, operands...)
	if err != nil {
		return nil, op.Unsupported("%v", err)
	}
	return b, nil
}

// operands plans the walk over inputs 0 and 1.
func operands(c *op.Call) (*Broadcast, error) {
	a, b, out, err := operandShapes(c)
	if err != nil {
		return nil, err
	}
	return NewBroadcast(out, a, b)
}

// operandShapes returns the shapes of inputs 0 and 1 for broadcasting and the result's shape.
// Before operator set 7 the attributes broadcast and axis aligned the second operand with the
// first.
func operandShapes(c *op.Call) (a, b, out []int, err error) {
	a, b = c.In[0].Shape, c.In[1].Shape
	if c.Node.Version < 7 && c.Node.Domain == "" && c.Node.Attrs.Bool("broadcast", false) {
		if tensor.Elements(b) == 1 {
			return a, nil, a, nil
		}
		if c.Node.Attrs.Has("axis") {
			axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(a))
			if err != nil {
				return nil, nil, nil, err
			}
			if axis+len(b) > len(a) {
				return nil, nil, nil, c.Errorf("shape %s at axis %d does not fit %s", tensor.FormatShape(b), axis, tensor.FormatShape(a))
			}
			b = slices.Clone(b)
			for len(b) < len(a)-axis {
				b = append(b, 1)
			}
		}
	}
	out, err = tensor.Broadcast(a, b)
	return a, b, out, err
}

// inferBinary sets the type of a binary operator's result to t, or to the operands' own for
// Invalid.
func inferBinary(t tensor.Type) func(c *op.Call) error {
	return op.Needs(2, func(c *op.Call) error {
		_, _, out, err := operandShapes(c)
		if err != nil {
			return err
		}
		ty := t
		if ty == tensor.Invalid {
			ty = c.In[0].Type
		}
		return c.Result(ty, out)
	})
}
