// Package arith implements TFLite's arithmetic of two and more tensors, for floats, integers and
// quantised values, with the roundings of the reference kernels.
package arith

import (
	"errors"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "ADD_N", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64, tensor.Int8}, Infer: inferAddN, Prepare: prepareAddN},
	}
	for k, name := range []string{recipe.PlainAdd: "ADD", recipe.PlainSub: "SUB", recipe.PlainMul: "MUL", recipe.PlainDiv: "DIV", recipe.PlainMax: "MAXIMUM", recipe.PlainMin: "MINIMUM", recipe.PlainSquaredDifference: "SQUARED_DIFFERENCE"} {
		defs = append(defs, op.Def{Name: name, Types: layer.Numbers, Infer: inferBroadcast, Prepare: prepareArith(recipe.PlainKind(k)), Fuses: true})
	}
	return layer.InTFLite(defs)
}

var errDivision = errors.New("division by zero")

func prepareArith(k recipe.PlainKind) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		w, err := NewBroadcast(c.In[0].Shape, c.In[1].Shape)
		if err != nil {
			return nil, err
		}
		t := c.In[0].Type
		if (t == tensor.Int8 || t == tensor.Uint8 || t == tensor.Int16) && k != recipe.PlainMax && k != recipe.PlainMin && (layer.Quantised(c.In[0]) || layer.Quantised(c.Out[0])) {
			return tensor.PickInteger(t, quantArith[int8], quantArith[int16], nil, nil, quantArith[uint8], nil, nil, nil)(c, k, w)
		}
		if c.Out[0].Type != t {
			return nil, op.Unsupported("%v inputs with %v output", t, c.Out[0].Type)
		}
		if f := tensor.PickInteger(t, plainArith[int8], plainArith[int16], plainArith[int32], plainArith[int64], plainArith[uint8], plainArith[uint16], plainArith[uint32], plainArith[uint64]); f != nil {
			return f(c, k, w)
		}
		if t == tensor.Float32 {
			return floatArith(c, k, w)
		}
		return nil, op.Unsupported("%v inputs", t)
	}
}

func arithLoops[T tensor.Number](k recipe.PlainKind) element.Loops[T, T] {
	return [...]func() element.Loops[T, T]{
		recipe.PlainAdd: element.Add[T], recipe.PlainSub: element.Sub[T], recipe.PlainMul: element.Mul[T], recipe.PlainDiv: element.Div[T], recipe.PlainMax: element.Max[T], recipe.PlainMin: element.Min[T],
		recipe.PlainSquaredDifference: element.SquaredDifference[T],
	}[k]()
}

func floatArith(c *op.Call, k recipe.PlainKind, w *broadcast.Walk) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	l := arithLoops[float32](k)
	switch {
	case act.On && k == recipe.PlainAdd:
		l = element.ClampedAdd(act.Min, act.Max)
	case act.On:
		l = element.Clamped(l, act.Min, act.Max)
	}
	return RunBinary(c, w, l), nil
}

// RunBinary applies kernels to two inputs and an output of one type.
func RunBinary[T tensor.Number](c *op.Call, w *broadcast.Walk, l element.Loops[T, T]) op.Run {
	r := element.NewBinary(c.Pool, w, l)
	return func(c *op.Call) error {
		r.Run(c.Pool, tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]))
		return nil
	}
}

// plainArith works on integers without scales. Sums wrap, as in C.
func plainArith[T tensor.Integer](c *op.Call, k recipe.PlainKind, w *broadcast.Walk) (op.Run, error) {
	act, err := layer.Activation(c)
	if err != nil {
		return nil, err
	}
	l := arithLoops[T](k)
	c.Recipe = recipe.Plain{Kind: k, A: c.In[0].Shape, B: c.In[1].Shape, Clamped: act.On}
	if act.On {
		lo, hi := tensor.Bounds[T]()
		if !math.IsInf(float64(act.Min), 0) {
			lo = T(act.Min)
		}
		if !math.IsInf(float64(act.Max), 0) {
			hi = T(act.Max)
		}
		l = element.Clamped(l, lo, hi)
	}
	run := RunBinary(c, w, l)
	if k != recipe.PlainDiv {
		return run, nil
	}
	return func(c *op.Call) error {
		if slices.Contains(tensor.Of[T](c.In[1]), 0) {
			return errDivision
		}
		return run(c)
	}, nil
}

// NewBroadcast plans the walk over operands of two shapes and an output of the NumPy-broadcast
// shape.
func NewBroadcast(a, b []int) (*broadcast.Walk, error) {
	shape, err := tensor.Broadcast(a, b)
	if err != nil {
		return nil, err
	}
	return broadcast.New(shape, a, b)
}

func inferBroadcast(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if c.In[0].Type != c.In[1].Type {
		return op.Unsupported("inputs of types %v and %v", c.In[0].Type, c.In[1].Type)
	}
	s, err := tensor.Broadcast(c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return err
	}
	// A declared output type that contradicts the inputs is ignored.
	c.SetOut(0, c.In[0].Type, s)
	return nil
}
