package elementwise

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// relation identifies a comparison.
type relation uint8

const (
	equal relation = iota
	less
	lessEqual
	greater
	greaterEqual
)

func prepareCompare(c *op.Call, k relation) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	if f := tensor.PickNumber(c.In[0].Type, compareOf[float32], compareOf[float64],
		compareOf[int8], compareOf[int16], compareOf[int32], compareOf[int64], compareOf[uint8], compareOf[uint16], compareOf[uint32], compareOf[uint64]); f != nil {
		return f(c, k)
	}
	switch t := c.In[0].Type; {
	case t == tensor.Bool && k == equal:
		return compareOf[uint8](c, k)
	case t == tensor.String && k == equal:
		return equalStrings(c)
	}
	return nil, elem.BadType(c, 0)
}

func compareOf[T tensor.Number](c *op.Call, k relation) (op.Run, error) {
	return prepareLoops(c, compareLoops[T](k))
}

func compareLoops[T cmp.Ordered](k relation) element.Loops[T, uint8] {
	switch k {
	case equal:
		return element.Equal[T]()
	case less:
		return element.Less[T]()
	case lessEqual:
		return element.LessEqual[T]()
	case greater:
		return element.Greater[T]()
	}
	return element.GreaterEqual[T]()
}

func equalStrings(c *op.Call) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, plan, element.Equal[string]())
	return func(c *op.Call) error {
		r.Run(c.Pool, tensor.Of[uint8](c.Out[0]), c.In[0].Strings, c.In[1].Strings)
		return nil
	}, nil
}

// bitop identifies a binary operator on bit patterns or booleans.
type bitop uint8

const (
	bitAnd bitop = iota
	bitOr
	bitXor
	shiftLeft
	shiftRight
)

func prepareBits(c *op.Call, k bitop) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	if f := tensor.PickInteger(c.In[0].Type, bitsOf[int8], bitsOf[int16], bitsOf[int32], bitsOf[int64], bitsOf[uint8], bitsOf[uint16], bitsOf[uint32], bitsOf[uint64]); f != nil {
		return f(c, k)
	}
	return nil, elem.BadType(c, 0)
}

func bitsOf[T tensor.Integer](c *op.Call, k bitop) (op.Run, error) {
	return prepareLoops(c, bitLoops[T](k))
}

func bitLoops[T tensor.Integer](k bitop) element.Loops[T, T] {
	switch k {
	case bitAnd:
		return element.And[T]()
	case bitOr:
		return element.Or[T]()
	case bitXor:
		return element.Xor[T]()
	case shiftLeft:
		return element.ShiftLeft[T]()
	}
	return element.ShiftRight[T]()
}

// prepareLogic runs the bit operators on booleans, which are 0 or 1.
func prepareLogic(c *op.Call, k bitop) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, elem.BadType(c, 0)
	}
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	return prepareLoops(c, bitLoops[uint8](k))
}

func prepareShift(c *op.Call) (op.Run, error) {
	switch d := c.Node.Attrs.Str("direction", ""); d {
	case "LEFT":
		return prepareBits(c, shiftLeft)
	case "RIGHT":
		return prepareBits(c, shiftRight)
	default:
		return nil, c.Errorf("direction %q is neither LEFT nor RIGHT", d)
	}
}
