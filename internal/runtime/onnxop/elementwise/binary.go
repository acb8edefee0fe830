package elementwise

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// prepareLoops plans the broadcast of the two inputs and runs the loops over it.
func prepareLoops[T, R tensor.Number](c *op.Call, l element.Loops[T, R]) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, plan, l)
	return func(c *op.Call) error {
		r.Run(c.Pool, tensor.Of[R](c.Out[0]), tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]))
		return nil
	}, nil
}

// arith identifies a binary operator whose result has the type of its operands.
type arith uint8

const (
	add arith = iota
	sub
	mul
	div
	modFloor
	modTrunc
	maximum
	minimum
	prelu
)

// prepareArith selects the loops for the type of input 0.
func prepareArith(c *op.Call, k arith) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	if act := c.Activation; act.On && c.In[0].Type == tensor.Float32 {
		return prepareLoops(c, element.Clamped(realLoops[float32](k), act.Min, act.Max))
	} else if act.On {
		return nil, op.Unsupported("clamped %s of %v", c.Node.Op, c.In[0].Type)
	}
	if f := tensor.PickNumber(c.In[0].Type, realArith[float32], realArith[float64], intArith[int8], intArith[int16], intArith[int32], intArith[int64], intArith[uint8], intArith[uint16], intArith[uint32], intArith[uint64]); f != nil {
		return f(c, k)
	}
	return nil, elem.BadType(c, 0)
}

func realArith[T tensor.Real](c *op.Call, k arith) (op.Run, error) {
	return prepareLoops(c, realLoops[T](k))
}

func intArith[T tensor.Integer](c *op.Call, k arith) (op.Run, error) {
	return prepareLoops(c, intLoops[T](k))
}

// commonLoops covers the operators with the same loops for all numeric types.
func commonLoops[T tensor.Number](k arith) element.Loops[T, T] {
	switch k {
	case add:
		return element.Add[T]()
	case sub:
		return element.Sub[T]()
	case mul:
		return element.Mul[T]()
	case maximum:
		return element.Max[T]()
	case minimum:
		return element.Min[T]()
	}
	return element.PRelu[T]()
}

func realLoops[T tensor.Real](k arith) element.Loops[T, T] {
	switch k {
	case div:
		return element.Div[T]()
	case modFloor:
		return element.ModFloor[T]()
	case modTrunc:
		return element.ModTrunc[T]()
	}
	return commonLoops[T](k)
}

func intLoops[T tensor.Integer](k arith) element.Loops[T, T] {
	switch k {
	case div:
		return element.IntDiv[T]()
	case modFloor:
		return element.IntModFloor[T]()
	case modTrunc:
		return element.IntModTrunc[T]()
	}
	return commonLoops[T](k)
}

func arithPrepare(k arith) elem.Prepare {
	wide := elem.Widen(func(c *op.Call) (op.Run, error) { return prepareArith(c, k) })
	return func(c *op.Call) (op.Run, error) {
		if t := c.In[0].Type; t.IsHalf() && len(c.In) == 2 && c.In[1].Type == t && c.Out[0].Type == t {
			return prepareHalves(c, k)
		}
		return wide(c)
	}
}

// prepareMod reads the rounding of the quotient from the attribute.
func prepareMod(c *op.Call) (op.Run, error) {
	if c.Node.Attrs.Bool("fmod", false) {
		return prepareArith(c, modTrunc)
	}
	return prepareArith(c, modFloor)
}

// inferPRelu: the slope broadcasts to the input, never the other way round. Before operator set
// 7, and in many later files, a slope of C elements belongs to dimension 1.
func inferPRelu(c *op.Call) error {
	if _, err := slopeShape(c); err != nil {
		return err
	}
	return c.Result(c.In[0].Type, c.In[0].Shape)
}

func slopeShape(c *op.Call) ([]int, error) {
	x, s := c.In[0].Shape, c.In[1].Shape
	if tensor.Elements(s) == 1 {
		return nil, nil
	}
	if b, err := tensor.Broadcast(x, s); err == nil && tensor.Elements(b) == tensor.Elements(x) && len(b) == len(x) && (c.Node.Version >= 7 || len(s) != 1) {
		return s, nil
	}
	if len(s) == 1 && len(x) >= 2 && s[0] == x[1] {
		v := []int{s[0]}
		for range len(x) - 2 {
			v = append(v, 1)
		}
		return v, nil
	}
	return nil, c.Errorf("slope of shape %s does not fit input of shape %s", tensor.FormatShape(s), tensor.FormatShape(x))
}

func preparePRelu(c *op.Call) (op.Run, error) {
	s := op.Must(slopeShape(c))
	// prepareArith reads the shapes from the inputs: pass it the reshaped slope.
	v := *c
	slope := *c.In[1]
	slope.Shape = s
	v.In = []*tensor.Tensor{c.In[0], &slope}
	run, err := prepareArith(&v, prelu)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error { return run(c) }, nil
}
