package activation

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// unary is an element-wise function: over whole rows of floats, and of one real number for the
// tables of quantised types. plain, if not nil, gives the function on integers without scales.
type unary struct {
	rows  func(dst, src []float32)
	one   func(float32) float32
	plain func(int64) int64
}

func wrap64(f func(float64) float64) func(float32) float32 {
	return func(x float32) float32 { return float32(f(float64(x))) }
}

// unaries are the functions that need nothing but their argument.
var unaries = map[string]unary{
	"EXP":  {rows: libm.ExpTo, one: wrap64(math.Exp)},
	"LOG":  {rows: libm.LogTo, one: wrap64(math.Log)},
	"SQRT": {rows: element.Sqrt, one: wrap64(math.Sqrt)},
	"RSQRT": {one: rsqrt, rows: func(dst, src []float32) {
		element.Sqrt(dst, src)
		element.Reciprocal(dst, dst[:len(src)])
	}},
	"SIN":   {rows: libm.SinTo, one: libm.Sin},
	"COS":   {rows: libm.CosTo, one: libm.Cos},
	"FLOOR": {rows: element.Floor, one: wrap64(math.Floor)},
	"CEIL":  {rows: element.Ceil, one: wrap64(math.Ceil)},
	"ROUND": {rows: element.RoundEven, one: wrap64(math.RoundToEven)},
	"SQUARE": {one: func(x float32) float32 { return x * x }, plain: func(x int64) int64 { return x * x }, rows: func(dst, src []float32) {
		swish.mul(dst, src[:len(dst)], src[:len(dst)])
	}},
	"NEG": {one: func(x float32) float32 { return -x }, plain: func(x int64) int64 { return -x }, rows: func(dst, src []float32) {
		for i, x := range src[:len(dst)] {
			dst[i] = -x
		}
	}},
	"ABS": {rows: element.Abs, one: wrap64(math.Abs), plain: func(x int64) int64 { return max(x, -x) }},
	"SIGN": {rows: element.Sign, one: func(x float32) float32 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	}, plain: func(x int64) int64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	}},
	"ELU": {rows: libm.EluTo, one: wrap64(Elu)},
}

func rsqrt(x float32) float32 { return 1 / float32(math.Sqrt(float64(x))) }

// Elu is e^x-1 below zero and x above.
func Elu(x float64) float64 {
	if x < 0 {
		return math.Expm1(x)
	}
	return x
}

func prepareUnary(name string) func(c *op.Call) (op.Run, error) {
	u := unaries[name]
	return func(c *op.Call) (op.Run, error) {
		if name == "RSQRT" && c.In[0].Type == tensor.Int8 {
			return quantRsqrt(c)
		}
		if name == "ABS" && layer.Quantised(c.In[0]) && c.In[0].Type == c.Out[0].Type {
			return quantAbs(c)
		}
		if name == "LOG" && layer.Quantised(c.In[0]) {
			return quantLog(c)
		}
		return u.prepare(c)
	}
}

// quantLog has the least value of the output where the logarithm has none.
func quantLog(c *op.Call) (op.Run, error) {
	so, zo, err := layer.ScaleOf(c.Out[0])
	if err != nil {
		return nil, err
	}
	lo, _ := layer.Limits(c.Out[0].Type)
	least := float32(lo-zo) * so
	return unary{one: func(x float32) float32 {
		if x <= 0 {
			return least
		}
		return libm.Log(x)
	}}.prepare(c)
}

func (u unary) prepare(c *op.Call) (op.Run, error) {
	x, y := c.In[0].Type, c.Out[0].Type
	if x != y {
		return nil, op.Unsupported("%v input with %v output", x, y)
	}
	if x == tensor.Float32 {
		return layer.Ranges(c.Out[0].Len(), layer.Grain/4, func(y, x []float32, lo, hi int) { u.rows(y[lo:hi], x[lo:hi]) }), nil
	}
	if layer.Quantised(c.In[0]) {
		return u.table(c)
	}
	f := tensor.PickInteger(x, plainUnary[int8], plainUnary[int16], plainUnary[int32], plainUnary[int64], nil, nil, nil, nil)
	if u.plain == nil || f == nil {
		return nil, op.Unsupported("%v input", x)
	}
	return f(u.plain), nil
}

func plainUnary[T int8 | int16 | int32 | int64](f func(int64) int64) op.Run {
	return layer.Map(func(v T) T { return T(f(int64(v))) })
}

// table computes quantised types through a table over all inputs.
func (u unary) table(c *op.Call) (op.Run, error) {
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	switch c.In[0].Type {
	case tensor.Int8, tensor.Uint8:
		return layer.Lookup(0, fixed.NewTable8(c.In[0].Type == tensor.Int8, si, int(zi), so, int(zo), u.one)), nil
	case tensor.Int16:
		return pieces16(fixed.NewTable16(si, int(zi), so, int(zo), u.one)), nil
	}
	return nil, op.Unsupported("quantised %v input", c.In[0].Type)
}

// pieces16 looks numbers up in a table of straight pieces.
func pieces16(t *fixed.Table16) op.Run {
	if f := simd.TableKernels16(); f != nil {
		return layer.MapRows(func(dst, src []int16) { f.Table(dst, src, (*[513]int16)(t)) })
	}
	return layer.Map(t.At)
}

// tabulate8 fills a table of f on stored values of an 8-bit type.
func tabulate8(t tensor.Type, f func(int32) int32) *[256]uint8 {
	var out [256]uint8
	lo, hi := layer.Limits(t)
	for q := lo; q <= hi; q++ {
		out[uint8(q)] = uint8(min(max(f(q), lo), hi))
	}
	return &out
}

func quantAbs(c *op.Call) (op.Run, error) {
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(float64(si / so)) // a quotient of float32 numbers
	lo, hi := layer.Limits(c.Out[0].Type)
	return byValue(c, func(q int32) int32 {
		v := max(q-zi, zi-q)
		if si != so {
			v = m.Apply(v)
		}
		return min(max(v+zo, lo), hi)
	})
}

// quantRsqrt is 1/sqrt on int8 by the integer reciprocal square root.
func quantRsqrt(c *op.Call) (op.Run, error) {
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(1 / float64(float32(math.Sqrt(float64(si)))*so))
	const shift = 20
	t := tabulate8(tensor.Int8, func(q int32) int32 {
		v := q - zi
		if v <= 0 {
			return math.MaxInt8 // infinity; negative values are an error of the model
		}
		inv := fixed.InvSqrt(v)
		inv.Shift += shift
		data := inv.Apply(1)
		last := m
		last.Shift -= shift
		return last.Apply(data) + zo
	})
	return layer.Lookup(0, t), nil
}

// curve8 is the logistic function or tanh on int8: inputs are scaled to Q4.27 and saturate
// outside ±15.
type curve8 struct {
	exact  func(a int32) int32 // of Q4.27 to Q0.31
	rows   func(dst, src []float32)
	shift  int // from Q0.31 to quantised values
	offset int32
}

var (
	logistic8 = curve8{func(a int32) int32 { return fixed.Logistic(a, 4) }, libm.SigmoidTo, 23, -128}
	tanh8     = curve8{func(a int32) int32 { return fixed.Tanh(a, 4) }, libm.TanhTo, 24, 0}
)

func (f curve8) prepare(c *op.Call) (op.Run, error) {
	if x, y := c.In[0].Type, c.Out[0].Type; x != tensor.Int8 {
		return nil, op.Unsupported("%v input", x)
	} else if y != tensor.Int8 {
		return nil, op.Unsupported("%v input with %v output", x, y)
	}
	s, z, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	return layer.Lookup(0, f.table(s, z)), nil
}

// nearHalf is the distance from the middle between two quantised values within which floating
// point does not decide. The functions in fixed point and in float32 both have errors below
// 1/10000 of a step.
const nearHalf = 1. / 64

// curveWorkspaces is a pool of scratch memory for the arguments and results of a floating-point
// table.
var curveWorkspaces = sync.Pool{New: func() any { return new([2][256]float32) }}

// table computes the results of all 256 values. The results are those of fixed point; floating
// point determines most of them much faster.
func (f curve8) table(scale float32, zero int32) *[256]uint8 {
	m := fixed.FromReal(float64(scale) * (1 << 27))
	radius := math.Floor(math.Ldexp(15*(1<<27), -m.Shift))
	r := curveWorkspaces.Get().(*[2][256]float32)
	defer curveWorkspaces.Put(r)
	x, y := &r[0], &r[1]
	for i := range x {
		x[i] = float32(m.Apply(int32(i)-128-zero)) / (1 << 27)
	}
	f.rows(y[:], x[:])
	var table [256]uint8
	for i := range y {
		v, q := int32(i)-128-zero, int32(math.MaxInt8)
		if d := float64(v); d <= -radius {
			q = math.MinInt8
		} else if d < radius {
			real := float64(y[i]) * float64(int64(1)<<(31-f.shift))
			whole := math.Floor(real)
			if part := real - whole; part < 0.5-nearHalf {
				q = int32(whole)
			} else if part > 0.5+nearHalf {
				q = int32(whole) + 1
			} else {
				q = fixed.RoundShift(f.exact(m.Apply(v)), f.shift)
			}
			q = min(max(q+f.offset, math.MinInt8), math.MaxInt8)
		}
		table[uint8(i-128)] = uint8(q)
	}
	return &table
}
