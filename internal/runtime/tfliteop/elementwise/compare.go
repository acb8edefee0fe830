package elementwise

import (
	"cmp"
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
	if f := tensor.PickNumber(t, compareOf[float32], compareOf[float64],
		compareOf[int8], compareOf[int16], compareOf[int32], compareOf[int64],
		compareOf[uint8], compareOf[uint16], compareOf[uint32], compareOf[uint64]); f != nil {
		return f(c)
	}
	return nil, badType(c)
}

func compareOf[T tensor.Number](c *op.Call) (op.Run, error) { return compare(c, both(tensor.Of[T])) }

func compare[T cmp.Ordered](c *op.Call, view [2]func(*tensor.Tensor) []T) (op.Run, error) {
	l := element.GreaterEqual[T]()
	switch c.Node.Op {
	case "EQUAL":
		l = element.Equal[T]()
	case "NOT_EQUAL":
		l = element.NotEqual[T]()
	case "LESS":
		l = element.Less[T]()
	case "LESS_EQUAL":
		l = element.LessEqual[T]()
	case "GREATER":
		l = element.Greater[T]()
	}
	return overRows(c, view, tensor.Of[uint8], l)
}

// scaled reports whether both inputs are quantised differently, so that their
// codes cannot be compared as they are.
func scaled(c *op.Call) bool {
	a, b := c.In[0].Quant, c.In[1].Quant
	if a == nil || b == nil || len(a.Scale) != 1 || len(b.Scale) != 1 || len(a.Zero) < 1 || len(b.Zero) < 1 {
		return false
	}
	return a.Scale[0] != b.Scale[0] || a.Zero[0] != b.Zero[0]
}

// compareScaled brings both operands to a common fixed-point scale with eight
// extra bits, as the reference kernels do, and compares those.
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
