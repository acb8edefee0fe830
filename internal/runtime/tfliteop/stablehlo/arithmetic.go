package stablehlo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func arithmeticDefs() []op.Def {
	var l []op.Def
	for name, f := range binaries {
		l = append(l, def(name, 2, inferSameBinary, prepareBinary(f)))
	}
	for name, f := range unaries {
		l = append(l, def(name, 1, layout.SameAsInput, prepareUnary(f)))
	}
	slices.SortFunc(l, func(a, b op.Def) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return append(l,
		def("COMPARE", 2, inferCompare, prepareCompare),
		def("SELECT", 3, inferSelect, prepareSelect),
		def("CLAMP", 3, inferClamp, prepareClamp))
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

func prepareBinary(k kernel) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		var run map[tensor.Type]func(*op.Call) (op.Run, error)
		switch t := c.In[0].Type; {
		case t == tensor.Bool && k.bool != nil:
			return over(c, tensor.Of[bool], tensor.Of[bool], k.bool)
		case t == tensor.Float64 && k.float != nil:
			return over(c, tensor.Of[float64], tensor.Of[float64], k.float)
		case t == tensor.Float32 && k.float != nil:
			return over(c, tensor.Of[float32], tensor.Of[float32], func(a, b float32) float32 { return float32(k.float(float64(a), float64(b))) })
		case k.int != nil:
			run = map[tensor.Type]func(*op.Call) (op.Run, error){
				tensor.Int8: integers[int8](k.int), tensor.Int16: integers[int16](k.int), tensor.Int32: integers[int32](k.int), tensor.Int64: integers[int64](k.int),
				tensor.Uint8: integers[uint8](k.int), tensor.Uint16: integers[uint16](k.int), tensor.Uint32: integers[uint32](k.int),
			}
		}
		return pick(c, run)
	}
}

// pick prepares for the type of input 0.
func pick(c *op.Call, by map[tensor.Type]func(*op.Call) (op.Run, error)) (op.Run, error) {
	prepare := by[c.In[0].Type]
	if prepare == nil {
		return nil, op.Unsupported("elements of type %v", c.In[0].Type)
	}
	return prepare(c)
}

func integers[T tensor.Number](f func(a, b int64) int64) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		return over(c, tensor.Of[T], tensor.Of[T], func(a, b T) T { return T(f(int64(a), int64(b))) })
	}
}

// grain is the number of elements below which another thread does not pay.
const grain = 1 << 14

// over applies f to all elements of two broadcast inputs.
func over[T, R any](c *op.Call, in func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, f func(a, b T) R) (op.Run, error) {
	r, err := broadcast.New(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		a, b, y := in(c.In[0]), in(c.In[1]), out(c.Out[0])
		r.Each(c.Pool, grain, func(o int, at [3]int, n int) {
			i, j := at[0], at[1]
			for k := o; k < o+n; k++ {
				y[k] = f(a[i], b[j])
				i += r.Step[0]
				j += r.Step[1]
			}
		})
		return nil
	}, nil
}

func prepareUnary(f func(v float64) float64) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		by := map[tensor.Type]func(*op.Call) (op.Run, error){
			tensor.Float32: op.Simple(each[float32](f)), tensor.Float64: op.Simple(each[float64](f)),
		}
		if slices.Contains([]string{"STABLEHLO_ABS", "STABLEHLO_NEGATE", "FlexAbs", "FlexNeg"}, c.Node.Op) {
			by[tensor.Int8], by[tensor.Int16], by[tensor.Int32] = op.Simple(each[int8](f)), op.Simple(each[int16](f)), op.Simple(each[int32](f))
		}
		return pick(c, by)
	}
}

func each[T tensor.Number](f func(v float64) float64) op.Run {
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		c.Pool.For(len(y), 4096, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				y[i] = T(f(float64(x[i])))
			}
		})
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
	d = d[strings.LastIndexByte(d, '_')+1:] // files may give the long name
	return pick(c, map[tensor.Type]func(*op.Call) (op.Run, error){
		tensor.Float32: compare[float32](d), tensor.Float64: compare[float64](d), tensor.Int8: compare[int8](d), tensor.Int16: compare[int16](d),
		tensor.Int32: compare[int32](d), tensor.Int64: compare[int64](d), tensor.Uint8: compare[uint8](d), tensor.Bool: compare[uint8](d), tensor.Uint32: compare[uint32](d),
	})
}

func compare[T tensor.Number](direction string) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
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

// inferClamp has the lower bound, the values and the upper bound.
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
