package math

import (
	"math"

	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// loops holds the loops of one operator for one type.
type loops[T, R tensor.Number] struct {
	vec func(dst []R, a, b []T)
	vs  func(dst []R, a []T, b T)
	sv  func(dst []R, a T, b []T)
}

// prepareLoops plans the broadcast of the two inputs and runs the loops over it.
func prepareLoops[T, R tensor.Number](c *op.Call, l loops[T, R]) (op.Run, error) {
	sa, sb, out, err := operandShapes(c)
	if err != nil {
		return nil, err
	}
	plan, err := NewBroadcast(out, sa, sb)
	if err != nil {
		return nil, err
	}
	r := newBinary[T, R](c.Pool, plan, l.vec)
	r.vs, r.sv = l.vs, l.sv
	return func(c *op.Call) error {
		r.run(c.Pool, tensor.Of[R](c.Out[0]), tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]))
		return nil
	}, nil
}

// arith names the operators of two numbers that give a number of the same type.
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

// prepareArith picks the loops for the type of input 0.
func prepareArith(c *op.Call, k arith) (op.Run, error) {
	if err := sameTypes(c, 0); err != nil {
		return nil, err
	}
	if c.In[0].Type == tensor.Float32 {
		return prepareLoops(c, clamped(realLoops[float32](k), c.Activation))
	}
	if c.Activation.On {
		return nil, op.Unsupported("clamped %s of %v", c.Node.Op, c.In[0].Type)
	}
	if f := tensor.PickNumber(c.In[0].Type, realArith[float32], realArith[float64], intArith[int8], intArith[int16], intArith[int32], intArith[int64], intArith[uint8], intArith[uint16], intArith[uint32], intArith[uint64]); f != nil {
		return f(c, k)
	}
	return nil, badType(c, 0)
}

func realArith[T tensor.Real](c *op.Call, k arith) (op.Run, error) {
	return prepareLoops(c, realLoops[T](k))
}

func intArith[T tensor.Integer](c *op.Call, k arith) (op.Run, error) {
	return prepareLoops(c, intLoops[T](k))
}

// clamped adds a fused activation to the loops: each part of a run is clamped
// while it is in the cache.
func clamped(l loops[float32, float32], act op.Activation) loops[float32, float32] {
	if !act.On {
		return l
	}
	clamp := func(dst []float32) {
		for i, x := range dst {
			if x < act.Min {
				x = act.Min
			}
			if x > act.Max {
				x = act.Max
			}
			dst[i] = x
		}
	}
	out := loops[float32, float32]{vec: func(dst, a, b []float32) {
		for len(dst) > 0 {
			n := min(len(dst), 8*blockSize)
			l.vec(dst[:n], a[:n], b[:n])
			clamp(dst[:n])
			dst, a, b = dst[n:], a[n:], b[n:]
		}
	}}
	if l.vs != nil {
		out.vs = func(dst, a []float32, b float32) { l.vs(dst, a, b); clamp(dst) }
	}
	if l.sv != nil {
		out.sv = func(dst []float32, a float32, b []float32) { l.sv(dst, a, b); clamp(dst) }
	}
	return out
}

// commonLoops covers the operators that are written alike for all numbers.
func commonLoops[T tensor.Number](k arith) loops[T, T] {
	switch k {
	case add:
		return loops[T, T]{addVec[T], addScalar[T], func(dst []T, a T, b []T) { addScalar(dst, b, a) }}
	case sub:
		return loops[T, T]{subVec[T], func(dst []T, a []T, b T) { addScalar(dst, a, -b) }, scalarSub[T]} // a-b is a+(-b), zeros included
	case mul:
		return loops[T, T]{mulVec[T], mulScalar[T], func(dst []T, a T, b []T) { mulScalar(dst, b, a) }}
	case maximum:
		return loops[T, T]{vec: maxVec[T]}
	case minimum:
		return loops[T, T]{vec: minVec[T]}
	}
	return loops[T, T]{vec: preluVec[T]}
}

func realLoops[T tensor.Real](k arith) loops[T, T] {
	switch k {
	case div:
		return loops[T, T]{divVec[T], divScalar[T], scalarDiv[T]}
	case modFloor:
		return loops[T, T]{vec: modFloorVec[T]}
	case modTrunc:
		return loops[T, T]{vec: modTruncVec[T]}
	}
	return commonLoops[T](k)
}

func intLoops[T tensor.Integer](k arith) loops[T, T] {
	switch k {
	case div:
		return loops[T, T]{vec: intDivVec[T]}
	case modFloor:
		return loops[T, T]{vec: intModFloorVec[T]}
	case modTrunc:
		return loops[T, T]{vec: intModTruncVec[T]}
	}
	return commonLoops[T](k)
}

func addVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func addScalar[T tensor.Number](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b
	}
}

func subVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func scalarSub[T tensor.Number](dst []T, a T, b []T) {
	b = b[:len(dst)]
	for i := range dst {
		dst[i] = a - b[i]
	}
}

func mulVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func mulScalar[T tensor.Number](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b
	}
}

func divVec[T tensor.Real](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

func divScalar[T tensor.Real](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b
	}
}

func scalarDiv[T tensor.Real](dst []T, a T, b []T) {
	b = b[:len(dst)]
	for i := range dst {
		dst[i] = a / b[i]
	}
}

// intDivVec truncates towards zero. Division by zero, undefined in the standard,
// gives zero.
func intDivVec[T tensor.Integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		if b[i] == 0 {
			dst[i] = 0
			continue
		}
		dst[i] = a[i] / b[i]
	}
}

// intModFloorVec gives the remainder the sign of the divisor.
func intModFloorVec[T tensor.Integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, y := range b {
		if y == 0 {
			dst[i] = 0
			continue
		}
		r := a[i] % y
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		dst[i] = r
	}
}

func intModTruncVec[T tensor.Integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, y := range b {
		if y == 0 {
			dst[i] = 0
			continue
		}
		dst[i] = a[i] % y
	}
}

func modTruncVec[T tensor.Real](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Mod(float64(a[i]), float64(b[i])))
	}
}

// modFloorVec gives the remainder, zero included, the sign of the divisor.
func modFloorVec[T tensor.Real](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		y := float64(b[i])
		r := math.Mod(float64(a[i]), y)
		switch {
		case r == 0:
			r = math.Copysign(0, y)
		case (r < 0) != (y < 0):
			r += y
		}
		dst[i] = T(r)
	}
}

// maxVec gives NaN where either operand is NaN.
func maxVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if x > y || x != x {
			y = x
		}
		dst[i] = y
	}
}

func minVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if x < y || x != x {
			y = x
		}
		dst[i] = y
	}
}

func preluVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x := a[i]
		if x < 0 {
			x *= b[i]
		}
		dst[i] = x
	}
}

func arithPrepare(k arith) prepare {
	return elem.Widen(func(c *op.Call) (op.Run, error) { return prepareArith(c, k) })
}

// prepareMod reads the rounding of the quotient from the attribute.
func prepareMod(c *op.Call) (op.Run, error) {
	if c.Node.Attrs.Bool("fmod", false) {
		return prepareArith(c, modTrunc)
	}
	return prepareArith(c, modFloor)
}

// inferPRelu: the slope broadcasts to the input, never the other way round.
// Before operator set 7, and in many later files, a slope of C elements belongs
// to dimension 1.
func inferPRelu(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if _, err := slopeShape(c); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, c.In[0].Shape)
	return nil
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
	s, err := slopeShape(c)
	if err != nil {
		return nil, err
	}
	// prepareArith takes the shapes from the inputs: give it the slope's view.
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
