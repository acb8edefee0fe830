package stablehlo

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

func arithmeticDefs() []op.Def {
	var l []op.Def
	for name, f := range binaries {
		l = append(l, def(name, inferSameBinary, prepareBinary(f)))
	}
	for name, f := range unaries {
		l = append(l, def(name, inferSame, prepareUnary(f)))
	}
	slices.SortFunc(l, func(a, b op.Def) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return append(l,
		def("COMPARE", inferCompare, prepareCompare),
		def("SELECT", inferSelect, prepareSelect),
		def("CLAMP", inferClamp, prepareClamp))
}

// kernel is an operation on two elements, for floats, for integers and for
// truth values; nil where it does not exist.
type kernel struct {
	float func(a, b float64) float64
	int   func(a, b int64) int64
	bool  func(a, b bool) bool
}

var binaries = map[string]kernel{
	"ADD":      {func(a, b float64) float64 { return a + b }, func(a, b int64) int64 { return a + b }, func(a, b bool) bool { return a || b }},
	"SUBTRACT": {func(a, b float64) float64 { return a - b }, func(a, b int64) int64 { return a - b }, nil},
	"MULTIPLY": {func(a, b float64) float64 { return a * b }, func(a, b int64) int64 { return a * b }, func(a, b bool) bool { return a && b }},
	"DIVIDE": {func(a, b float64) float64 { return a / b }, func(a, b int64) int64 {
		if b == 0 {
			return -1
		}
		return a / b
	}, nil},
	"MAXIMUM": {math.Max, func(a, b int64) int64 { return max(a, b) }, func(a, b bool) bool { return a || b }},
	"MINIMUM": {math.Min, func(a, b int64) int64 { return min(a, b) }, func(a, b bool) bool { return a && b }},
	"POWER":   {math.Pow, power, nil},
	"REMAINDER": {math.Mod, func(a, b int64) int64 {
		if b == 0 {
			return a
		}
		return a % b
	}, nil},
	"AND": {nil, func(a, b int64) int64 { return a & b }, func(a, b bool) bool { return a && b }},
	"OR":  {nil, func(a, b int64) int64 { return a | b }, func(a, b bool) bool { return a || b }},
	"SHIFT_LEFT": {nil, func(a, b int64) int64 {
		if b < 0 {
			return 0
		}
		return a << b
	}, nil},
}

func power(a, b int64) int64 {
	if b < 0 {
		switch a {
		case 1:
			return 1
		case -1:
			return 1 - 2*(b&1)
		}
		return 0
	}
	r := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			r *= a
		}
		a *= a
	}
	return r
}

var unaries = map[string]func(v float64) float64{
	"ABS": math.Abs, "CBRT": math.Cbrt, "CEIL": math.Ceil, "FLOOR": math.Floor, "COSINE": math.Cos, "EXPONENTIAL": math.Exp, "LOG": math.Log,
	"TANH": math.Tanh, "NEGATE": func(v float64) float64 { return -v },
	"LOGISTIC": func(v float64) float64 { return 1 / (1 + math.Exp(-v)) },
	"RSQRT":    func(v float64) float64 { return 1 / math.Sqrt(v) },
}

// inferSameBinary has two inputs of one shape. Scalars are let through, as the
// reference does.
func inferSameBinary(c *op.Call) error {
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
	c.SetOut(0, a.Type, shape)
	return nil
}

func prepareBinary(k kernel) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		t := c.In[0].Type
		if t == tensor.Bool && k.bool != nil {
			return over(c, tensor.Of[bool], tensor.Of[bool], element.Two(k.bool))
		}
		if f := tensor.PickNumber(t, reals[float32], reals[float64], integers[int8], integers[int16], integers[int32], integers[int64],
			integers[uint8], integers[uint16], integers[uint32], nil); f != nil && (t.IsFloat() && k.float != nil || t.IsInteger() && k.int != nil) {
			return f(c, k)
		}
		return nil, op.Unsupported("elements of type %v", t)
	}
}

func reals[T tensor.Number](c *op.Call, k kernel) (op.Run, error) {
	return over(c, tensor.Of[T], tensor.Of[T], element.Two(func(a, b T) T { return T(k.float(float64(a), float64(b))) }))
}

func integers[T tensor.Number](c *op.Call, k kernel) (op.Run, error) {
	return over(c, tensor.Of[T], tensor.Of[T], element.Two(func(a, b T) T { return T(k.int(int64(a), int64(b))) }))
}

// over applies loops to all elements of two broadcast inputs.
func over[T, R any](c *op.Call, in func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, l element.Loops[T, R]) (op.Run, error) {
	walk, err := broadcast.New(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, walk, l)
	return func(c *op.Call) error {
		r.Run(c.Pool, out(c.Out[0]), in(c.In[0]), in(c.In[1]))
		return nil
	}, nil
}

func prepareUnary(f func(v float64) float64) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		t := c.In[0].Type
		run := tensor.PickNumber(t, each[float32], each[float64], each[int8], each[int16], each[int32], nil, nil, nil, nil, nil)
		if run == nil || t.IsInteger() && !slices.Contains([]string{"STABLEHLO_ABS", "STABLEHLO_NEGATE", "FlexAbs", "FlexNeg"}, c.Node.Op) {
			return nil, op.Unsupported("elements of type %v", t)
		}
		return run(f), nil
	}
}

func each[T tensor.Number](f func(v float64) float64) op.Run {
	loop := element.One(func(v T) T { return T(f(float64(v))) })
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		c.Pool.For(len(y), 4096, func(lo, hi int) { loop(y[lo:hi], x[lo:hi]) })
		return nil
	}
}

func inferCompare(c *op.Call) error {
	if err := inferSameBinary(c); err != nil {
		return err
	}
	c.Out[0].Type = tensor.Bool
	return nil
}

func prepareCompare(c *op.Call) (op.Run, error) {
	d := c.Node.Attrs.Str("comparison_direction", "")
	for _, p := range []string{"STABLEHLO_COMPARISON_DIRECTION_", "COMPARISON_DIRECTION_"} {
		if len(d) > len(p) && d[:len(p)] == p {
			d = d[len(p):]
		}
	}
	t := c.In[0].Type
	if t == tensor.Bool {
		t = tensor.Uint8
	}
	if f := tensor.PickNumber(t, compare[float32], compare[float64], compare[int8], compare[int16], compare[int32], compare[int64],
		compare[uint8], nil, compare[uint32], nil); f != nil {
		return f(c, d)
	}
	return nil, op.Unsupported("elements of type %v", t)
}

func compare[T tensor.Number](c *op.Call, direction string) (op.Run, error) {
	l, ok := map[string]func() element.Loops[T, uint8]{
		"EQ": element.Equal[T], "NE": element.NotEqual[T], "LT": element.Less[T], "LE": element.LessEqual[T], "GT": element.Greater[T], "GE": element.GreaterEqual[T],
	}[direction]
	if !ok {
		return nil, op.Unsupported("comparison %q", direction)
	}
	return over(c, tensor.Of[T], tensor.Of[uint8], l())
}

func inferSelect(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	x := c.In[1]
	if c.In[0].Type != tensor.Bool || x.Type != c.In[2].Type || !slices.Equal(x.Shape, c.In[2].Shape) || c.In[0].Rank() != 0 && !slices.Equal(c.In[0].Shape, x.Shape) {
		return fmt.Errorf("condition %s, choices %v %s and %v %s", tensor.FormatShape(c.In[0].Shape), x.Type, tensor.FormatShape(x.Shape), c.In[2].Type, tensor.FormatShape(c.In[2].Shape))
	}
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	return nil
}

func prepareSelect(c *op.Call) (op.Run, error) {
	step := [3]int{min(c.In[0].Rank(), 1), 1, 1}
	return func(c *op.Call) error {
		move.Pick(layout.Of(c.Out[0]), layout.Of(c.In[1]), layout.Of(c.In[2]), tensor.Of[uint8](c.In[0]), step)
		return nil
	}, nil
}

// inferClamp has the lower bound, the values and the upper bound.
func inferClamp(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	x := c.In[1]
	for _, b := range []*tensor.Tensor{c.In[0], c.In[2]} {
		if b.Type != x.Type || b.Rank() != 0 && !slices.Equal(b.Shape, x.Shape) {
			return fmt.Errorf("bound %v %s for %v %s", b.Type, tensor.FormatShape(b.Shape), x.Type, tensor.FormatShape(x.Shape))
		}
	}
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	return nil
}

func prepareClamp(c *op.Call) (op.Run, error) {
	run := map[tensor.Type]op.Run{
		tensor.Float32: runClamp[float32], tensor.Int8: runClamp[int8], tensor.Int16: runClamp[int16], tensor.Int32: runClamp[int32],
		tensor.Int64: runClamp[int64], tensor.Uint8: runClamp[uint8],
	}[c.In[1].Type]
	if run == nil {
		return nil, op.Unsupported("elements of type %v", c.In[1].Type)
	}
	return run, nil
}

func runClamp[T tensor.Number](c *op.Call) error {
	lo, x, hi, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2]), tensor.Of[T](c.Out[0])
	ls, hs := min(c.In[0].Rank(), 1), min(c.In[2].Rank(), 1)
	for i, v := range x {
		y[i] = min(max(v, lo[i*ls]), hi[i*hs])
	}
	return nil
}
