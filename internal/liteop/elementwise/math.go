package elementwise

import (
	"errors"
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func mathDefs() []op.Def {
	same := inferBinary(tensor.Invalid)
	return []op.Def{
		lite("FLOOR_DIV", same, prepareFloorDiv),
		lite("FLOOR_MOD", same, prepareFloorMod),
		lite("POW", same, preparePow),
		lite("ATAN2", same, prepareAtan2),
		lite("BITWISE_XOR", same, prepareXor),
		lite("RIGHT_SHIFT", same, prepareRightShift),
	}
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

var errZero = errors.New("division by zero")

// divided guards an integer division: a zero divisor is an error of the data.
func divided[T integer](c *op.Call, f func(a, b T) T) (op.Run, error) {
	run, err := numbers(c, by(func(a, b T) T {
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

func floorDiv[T integer](a, b T) T {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod[T integer](a, b T) T {
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func floorModFloat(a, b float64) float64 {
	r := math.Mod(a, b)
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func prepareFloorDiv(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return numbers(c, by(func(a, b float32) float32 { return float32(math.Floor(float64(a / b))) }))
	case tensor.Int8:
		return divided(c, floorDiv[int8])
	case tensor.Uint8:
		return divided(c, floorDiv[uint8])
	case tensor.Int16:
		return divided(c, floorDiv[int16])
	case tensor.Int32:
		return divided(c, floorDiv[int32])
	case tensor.Int64:
		return divided(c, floorDiv[int64])
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

func prepareFloorMod(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return numbers(c, by(func(a, b float32) float32 { return float32(floorModFloat(float64(a), float64(b))) }))
	case tensor.Int8:
		return divided(c, floorMod[int8])
	case tensor.Uint8:
		return divided(c, floorMod[uint8])
	case tensor.Int16:
		return divided(c, floorMod[int16])
	case tensor.Int32:
		return divided(c, floorMod[int32])
	case tensor.Int64:
		return divided(c, floorMod[int64])
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

func preparePow(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return numbers(c, by(func(a, b float32) float32 {
			if b == 2 {
				return a * a
			}
			return float32(math.Pow(float64(a), float64(b)))
		}))
	case tensor.Int32:
		run, err := numbers(c, by(intPow))
		return func(c *op.Call) error {
			for _, v := range tensor.Of[int32](c.In[1]) {
				if v < 0 {
					return errors.New("integer power with a negative exponent")
				}
			}
			return run(c)
		}, err
	default:
		return nil, op.Unsupported("elements of type %v", t)
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
		return numbers(c, by(func(a, b float32) float32 { return float32(math.Atan2(float64(a), float64(b))) }))
	case tensor.Float64:
		return numbers(c, by(math.Atan2))
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

func prepareXor(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Int8, tensor.Uint8, tensor.Bool:
		return numbers(c, by(func(a, b uint8) uint8 { return a ^ b }))
	case tensor.Int16, tensor.Uint16:
		return numbers(c, by(func(a, b uint16) uint16 { return a ^ b }))
	case tensor.Int32, tensor.Uint32:
		return numbers(c, by(func(a, b uint32) uint32 { return a ^ b }))
	case tensor.Int64, tensor.Uint64:
		return numbers(c, by(func(a, b uint64) uint64 { return a ^ b }))
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

// shiftRight limits the count to the width, so that signs fill the whole.
func shiftRight[T integer](bits T) func(a, b T) T {
	return func(a, b T) T { return a >> min(max(b, 0), bits-1) }
}

func prepareRightShift(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Int8:
		return numbers(c, by(shiftRight[int8](8)))
	case tensor.Uint8:
		return numbers(c, by(shiftRight[uint8](8)))
	case tensor.Int16:
		return numbers(c, by(shiftRight[int16](16)))
	case tensor.Uint16:
		return numbers(c, by(shiftRight[uint16](16)))
	case tensor.Int32:
		return numbers(c, by(shiftRight[int32](32)))
	case tensor.Uint32:
		return numbers(c, by(shiftRight[uint32](32)))
	case tensor.Int64:
		return numbers(c, by(shiftRight[int64](64)))
	case tensor.Uint64:
		return numbers(c, by(shiftRight[uint64](64)))
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}
