package elementwise

import (
	"errors"
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

var errZero = errors.New("division by zero")

// divided guards an integer division: a zero divisor is an error of the data.
func divided[T tensor.Integer](c *op.Call, f func(a, b T) T) (op.Run, error) {
	run, err := numbers(c, element.FromFunc(func(a, b T) T {
		if b == 0 {
			return 0
		}
		return f(a, b)
	}))
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		for _, v := range tensor.Of[T](c.In[1]) {
			if v == 0 {
				return errZero
			}
		}
		return run(c)
	}, nil
}

func floorDiv[T tensor.Integer](a, b T) T {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod[T tensor.Integer](a, b T) T { return floored(a%b, b) }

// floored gives a remainder the sign of the divisor.
func floored[T tensor.Integer | tensor.Real](r, b T) T {
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func floorModFloat(a, b float64) float64 { return floored(math.Mod(a, b), b) }

func prepareFloorDiv(c *op.Call) (op.Run, error) {
	if c.In[0].Type == tensor.Float32 {
		return numbers(c, element.FromFunc(func(a, b float32) float32 { return float32(math.Floor(float64(a / b))) }))
	}
	if f := tensor.PickInteger(c.In[0].Type, divideOf[int8], divideOf[int16], divideOf[int32], divideOf[int64], divideOf[uint8], nil, nil, nil); f != nil {
		return f(c)
	}
	return nil, badType(c)
}

func divideOf[T tensor.Integer](c *op.Call) (op.Run, error) { return divided(c, floorDiv[T]) }

func prepareFloorMod(c *op.Call) (op.Run, error) {
	if c.In[0].Type == tensor.Float32 {
		return numbers(c, element.FromFunc(func(a, b float32) float32 { return float32(floorModFloat(float64(a), float64(b))) }))
	}
	if f := tensor.PickInteger(c.In[0].Type, moduloOf[int8], moduloOf[int16], moduloOf[int32], moduloOf[int64], moduloOf[uint8], nil, nil, nil); f != nil {
		return f(c)
	}
	return nil, badType(c)
}

func moduloOf[T tensor.Integer](c *op.Call) (op.Run, error) { return divided(c, floorMod[T]) }

func preparePow(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return numbers(c, element.FromFunc(func(a, b float32) float32 {
			if b == 2 {
				return a * a
			}
			return float32(math.Pow(float64(a), float64(b)))
		}))
	case tensor.Int32:
		run, err := numbers(c, element.FromFunc(intPow))
		return func(c *op.Call) error {
			for _, v := range tensor.Of[int32](c.In[1]) {
				if v < 0 {
					return errors.New("integer power with a negative exponent")
				}
			}
			return run(c)
		}, err
	default:
		return nil, badType(c)
	}
}

// intPow wraps around on overflow.
func intPow(a, b int32) int32 {
	r := int32(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			r *= a
		}
		a *= a
	}
	return r
}

func prepareAtan2(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return numbers(c, element.FromFunc(func(a, b float32) float32 { return float32(math.Atan2(float64(a), float64(b))) }))
	case tensor.Float64:
		return numbers(c, element.FromFunc(math.Atan2))
	default:
		return nil, badType(c)
	}
}

func prepareXor(c *op.Call) (op.Run, error) {
	if c.In[0].Type == tensor.Bool {
		return xor[uint8](c)
	}
	if f := tensor.PickInteger(c.In[0].Type, xor[int8], xor[int16], xor[int32], xor[int64], xor[uint8], xor[uint16], xor[uint32], xor[uint64]); f != nil {
		return f(c)
	}
	return nil, badType(c)
}

func xor[T tensor.Integer](c *op.Call) (op.Run, error) {
	return numbers(c, element.Xor[T]())
}

func prepareRightShift(c *op.Call) (op.Run, error) {
	if f := tensor.PickInteger(c.In[0].Type, shiftRight[int8], shiftRight[int16], shiftRight[int32], shiftRight[int64],
		shiftRight[uint8], shiftRight[uint16], shiftRight[uint32], shiftRight[uint64]); f != nil {
		return f(c)
	}
	return nil, badType(c)
}

// shiftRight limits the count to the width, so that signs fill the whole.
func shiftRight[T tensor.Integer](c *op.Call) (op.Run, error) {
	last := T(c.In[0].Type.Bits() - 1)
	return numbers(c, element.FromFunc(func(a, b T) T { return a >> min(max(b, 0), last) }))
}
