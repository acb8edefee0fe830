package elementwise

import (
	"cmp"
	"errors"
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func prepareCompare(c *op.Call) (op.Run, error) {
	t := c.In[0].Type
	switch {
	case t == tensor.Int8 && scaled(c):
		return compareScaled[int8](c)
	case t == tensor.Uint8 && scaled(c):
		return compareScaled[uint8](c)
	case t == tensor.Bool:
		return compareOf[uint8](c)
	case t.IsHalf():
		return compare(c, both(func(x *tensor.Tensor) []float32 {
			wide := make([]float32, x.Len())
			tensor.Read(wide, x, 0)
			return wide
		}))
	case t == tensor.String:
		return compare(c, both(func(x *tensor.Tensor) []string { return x.Strings }))
	}
	return choose(c, tensor.PickNumber(t, compareOf[float32], compareOf[float64],
		compareOf[int8], compareOf[int16], compareOf[int32], compareOf[int64],
		compareOf[uint8], compareOf[uint16], compareOf[uint32], compareOf[uint64]))
}

func compareOf[T tensor.Number](c *op.Call) (op.Run, error) { return compare(c, both(tensor.Of[T])) }

func compare[T cmp.Ordered](c *op.Call, view [2]func(*tensor.Tensor) []T) (op.Run, error) {
	loops := map[string]func() element.Loops[T, uint8]{
		"EQUAL": element.Equal[T], "NOT_EQUAL": element.NotEqual[T], "LESS": element.Less[T], "LESS_EQUAL": element.LessEqual[T],
		"GREATER": element.Greater[T], "GREATER_EQUAL": element.GreaterEqual[T],
	}[c.Node.Op]
	return Over(c, view, tensor.Of[uint8], loops())
}

// scaled reports whether the inputs have different quantisation, so that their quantised values
// cannot be compared directly.
func scaled(c *op.Call) bool {
	a, b := c.In[0].Quant, c.In[1].Quant
	if a == nil || b == nil || len(a.Scale) != 1 || len(b.Scale) != 1 || len(a.Zero) < 1 || len(b.Zero) < 1 {
		return false
	}
	return a.Scale[0] != b.Scale[0] || a.Zero[0] != b.Zero[0]
}

// compareScaled converts both operands to a common fixed-point scale with eight additional bits, as
// the reference kernels do, and compares the results.
func compareScaled[T int8 | uint8](c *op.Call) (op.Run, error) {
	low := 0
	if c.In[0].Type == tensor.Int8 {
		low = math.MinInt8
	}
	var views [2]func(*tensor.Tensor) []int32
	for k := range views {
		q := c.In[k].Quant
		m := fixed.FromReal(float64(q.Scale[0]))
		var table [256]int32
		for v := low; v < low+256; v++ {
			table[uint8(v)] = m.Apply(int32((int64(v) - q.Zero[0]) << 8))
		}
		wide := make([]int32, c.In[k].Len())
		views[k] = func(x *tensor.Tensor) []int32 {
			for i, v := range x.Data {
				wide[i] = table[v]
			}
			return wide
		}
	}
	return compare(c, views)
}

func prepareLogical(l element.Loops[uint8, uint8]) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		if c.In[0].Type != tensor.Bool {
			return nil, badType(c)
		}
		return numbers(c, l)
	}
}

func inferNot(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Bool, c.In[0].Shape)
	return nil
}

func prepareNot(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, badType(c)
	}
	return func(c *op.Call) error {
		y := tensor.Of[bool](c.Out[0])
		for i, v := range tensor.Of[bool](c.In[0]) {
			y[i] = !v
		}
		return nil
	}, nil
}

var errZero = errors.New("division by zero")

// divided prepares an integer division. A run with a zero divisor fails.
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

// floored converts a remainder to one with the sign of the divisor.
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
	return choose(c, tensor.PickInteger(c.In[0].Type, divideOf[int8], divideOf[int16], divideOf[int32], divideOf[int64], divideOf[uint8], nil, nil, nil))
}

func divideOf[T tensor.Integer](c *op.Call) (op.Run, error) { return divided(c, floorDiv[T]) }

func prepareFloorMod(c *op.Call) (op.Run, error) {
	if c.In[0].Type == tensor.Float32 {
		return numbers(c, element.FromFunc(func(a, b float32) float32 { return float32(floorModFloat(float64(a), float64(b))) }))
	}
	return choose(c, tensor.PickInteger(c.In[0].Type, moduloOf[int8], moduloOf[int16], moduloOf[int32], moduloOf[int64], moduloOf[uint8], nil, nil, nil))
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
	return choose(c, tensor.PickInteger(c.In[0].Type, xor[int8], xor[int16], xor[int32], xor[int64], xor[uint8], xor[uint16], xor[uint32], xor[uint64]))
}

func xor[T tensor.Integer](c *op.Call) (op.Run, error) {
	return numbers(c, element.Xor[T]())
}

func prepareRightShift(c *op.Call) (op.Run, error) {
	return choose(c, tensor.PickInteger(c.In[0].Type, shiftRight[int8], shiftRight[int16], shiftRight[int32], shiftRight[int64],
		shiftRight[uint8], shiftRight[uint16], shiftRight[uint32], shiftRight[uint64]))
}

// shiftRight limits the count to the width less one, so that large counts leave the sign.
func shiftRight[T tensor.Integer](c *op.Call) (op.Run, error) {
	last := T(c.In[0].Type.Bits() - 1)
	return numbers(c, element.FromFunc(func(a, b T) T { return a >> min(max(b, 0), last) }))
}
