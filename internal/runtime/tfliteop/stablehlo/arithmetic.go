package stablehlo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/elementwise"
)

// kernel is an operation on two floats, integers or truth values; nil for types that it does not
// support.
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

func prepareBinary(k kernel) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		switch t := c.In[0].Type; {
		case t == tensor.Bool && k.bool != nil:
			return over(c, tensor.Of[bool], tensor.Of[bool], k.bool)
		case t == tensor.Float64 && k.float != nil:
			return over(c, tensor.Of[float64], tensor.Of[float64], k.float)
		case t == tensor.Float32 && k.float != nil:
			return over(c, tensor.Of[float32], tensor.Of[float32], func(a, b float32) float32 { return float32(k.float(float64(a), float64(b))) })
		case k.int != nil:
			return pick(c, tensor.PickInteger(t, integers[int8], integers[int16], integers[int32], integers[int64], integers[uint8], integers[uint16], integers[uint32], nil), k.int)
		}
		return nil, badType(c.In[0])
	}
}

func badType(x *tensor.Tensor) error { return op.Unsupported("elements of type %v", x.Type) }

// pick prepares with the function for the type of input 0, nil for types that are not supported.
func pick[A any](c *op.Call, prepare func(c *op.Call, a A) (op.Run, error), a A) (op.Run, error) {
	if prepare == nil {
		return nil, badType(c.In[0])
	}
	return prepare(c, a)
}

func integers[T tensor.Number](c *op.Call, f func(a, b int64) int64) (op.Run, error) {
	return over(c, tensor.Of[T], tensor.Of[T], func(a, b T) T { return T(f(int64(a), int64(b))) })
}

// over applies f to all elements of two broadcast inputs.
func over[T, R any](c *op.Call, in func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, f func(a, b T) R) (op.Run, error) {
	return elementwise.Over(c, [2]func(*tensor.Tensor) []T{in, in}, out, element.FromFunc(f))
}

func prepareUnary(f func(v float64) float64) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		t := c.In[0].Type
		run := tensor.PickReal(t, each[float32], each[float64])
		if slices.Contains([]string{"STABLEHLO_ABS", "STABLEHLO_NEGATE", "FlexAbs", "FlexNeg"}, c.Node.Op) {
			run = tensor.PickNumber(t, each[float32], each[float64], each[int8], each[int16], each[int32], nil, nil, nil, nil, nil)
		}
		return pick(c, run, f)
	}
}

func each[T tensor.Number](_ *op.Call, f func(v float64) float64) (op.Run, error) {
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		c.Pool.For(len(y), 4096, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				y[i] = T(f(float64(x[i])))
			}
		})
		return nil
	}, nil
}

func prepareCompare(c *op.Call) (op.Run, error) {
	d := c.Node.Attrs.Str("comparison_direction", "")
	d = d[strings.LastIndexByte(d, '_')+1:] // files may give the long name
	return pick(c, byType(c.In[0], compare[float32], compare[float64], compare[int8], compare[int16], compare[int32], compare[int64], compare[uint8], compare[uint32]), d)
}

func compare[T tensor.Number](c *op.Call, direction string) (op.Run, error) {
	f, ok := map[string]func(a, b T) bool{
		"EQ": func(a, b T) bool { return a == b }, "NE": func(a, b T) bool { return a != b },
		"LT": func(a, b T) bool { return a < b }, "LE": func(a, b T) bool { return a <= b },
		"GT": func(a, b T) bool { return a > b }, "GE": func(a, b T) bool { return a >= b },
	}[direction]
	if !ok {
		return nil, op.Unsupported("comparison %q", direction)
	}
	return over(c, tensor.Of[T], tensor.Of[bool], f)
}

func inferSelect(c *op.Call) error {
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

// inferClamp reads the lower bound, the values and the upper bound.
func inferClamp(c *op.Call) error {
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
	run := tensor.PickNumber[op.Run](c.In[1].Type, runClamp[float32], nil, runClamp[int8], runClamp[int16], runClamp[int32], runClamp[int64], runClamp[uint8], nil, nil, nil)
	if run == nil {
		return nil, badType(c.In[1])
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

// flexDefs are TensorFlow operators that converters leave in a file as custom operators, if one of
// the element-wise kernels of this package computes them.
func flexDefs() []op.Def {
	var l []op.Def
	add := func(name string, needs int, infer func(c *op.Call) error, prepare layout.Prepare) {
		l = append(l, op.Def{Domain: graph.TFLiteCustom, Name: "Flex" + name, Infer: op.Needs(needs, infer), Prepare: prepare})
	}
	for name, of := range map[string]string{
		"Add": "ADD", "AddV2": "ADD", "Sub": "SUBTRACT", "Mul": "MULTIPLY", "Div": "DIVIDE", "RealDiv": "DIVIDE", "Maximum": "MAXIMUM",
		"Minimum": "MINIMUM", "Pow": "POWER", "LogicalAnd": "AND", "LogicalOr": "OR",
	} {
		add(name, 2, elementwise.InferBinary(tensor.Invalid), prepareBinary(binaries[of]))
	}
	for name, of := range map[string]string{
		"Abs": "ABS", "Ceil": "CEIL", "Floor": "FLOOR", "Cos": "COSINE", "Exp": "EXPONENTIAL", "Log": "LOG", "Tanh": "TANH", "Neg": "NEGATE",
		"Sigmoid": "LOGISTIC", "Rsqrt": "RSQRT",
	} {
		add(name, 1, layout.SameAsInput, prepareUnary(unaries[of]))
	}
	for name, f := range map[string]func(v float64) float64{
		"Sin": math.Sin, "Sqrt": math.Sqrt, "Erf": math.Erf, "Log1p": math.Log1p, "Expm1": math.Expm1,
		"Softplus": func(v float64) float64 { return max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))) },
		"Softsign": func(v float64) float64 { return v / (1 + math.Abs(v)) },
	} {
		add(name, 1, layout.SameAsInput, prepareUnary(f))
	}
	return l
}
