package elementwise

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// preparePow selects the loops by the type of the base. An exponent of another type is converted
// as a whole before each run: it is nearly always a scalar.
func preparePow(c *op.Call) (op.Run, error) {
	floating := c.In[1].Type.IsFloat()
	switch base := c.In[0].Type; {
	case base == tensor.Float32:
		times := element.Mul[float32]().Vec
		return powLoops(c, element.Loops[float32, float32]{Vec: vecmath.PowTo, VectorScalar: func(dst, a []float32, y float32) { powScalar(dst, a, y, times) }})
	case base == tensor.Float64:
		return powLoops(c, element.Loops[float64, float64]{Vec: powersOfDoubles, VectorScalar: powDoubles})
	case base == tensor.Int32 && floating:
		return powInts[int32](c, realPow[int32], wholePowers)
	case base == tensor.Int64 && floating:
		return powInts[int64](c, realPow[int64], wholePowers)
	case base == tensor.Int32:
		return powInts[int32](c, intPow[int32], smallPower)
	case base == tensor.Int64:
		return powInts[int64](c, intPow[int64], smallPower)
	}
	return nil, elem.BadType(c, 0)
}

// powLoops converts the exponent to the type of the base.
func powLoops[T tensor.Real](c *op.Call, l element.Loops[T, T]) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	if _, err := Numeric(c, 1); err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, plan, l)
	var exp []T
	if c.In[1].Type != c.In[0].Type {
		exp = make([]T, c.In[1].Len())
	}
	return func(c *op.Call) error {
		y := exp
		if y == nil {
			y = tensor.Of[T](c.In[1])
		} else {
			tensor.Read(y, c.In[1], 0)
		}
		r.Run(c.Pool, tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]), y)
		return nil
	}, nil
}

// Numeric fails for inputs whose elements are not real numbers.
func Numeric(c *op.Call, i int) (tensor.Type, error) {
	t := c.In[i].Type
	if !t.IsFloat() && !t.IsInteger() && t != tensor.Bool {
		return t, op.Unsupported("%s with input %d of %v", c.Node.Op, i, t)
	}
	return t, nil
}

// powInts walks an integer base with an exponent of another type E. row computes a row with one
// exponent, or returns false.
func powInts[T int32 | int64, E int64 | float64](c *op.Call, f func(T, E) T, row func(dst, a []T, y E) bool) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	if _, err := Numeric(c, 1); err != nil {
		return nil, err
	}
	exp := make([]E, c.In[1].Len())
	return func(c *op.Call) error {
		tensor.Read(exp, c.In[1], 0)
		a, dst := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for it := plan.Runs(0, plan.Len); it.Next(); {
			if plan.Step[0] == 1 && plan.Step[1] == 0 && row(dst[it.Dst:][:it.N], a[it.Off[0]:][:it.N], exp[it.Off[1]]) {
				continue
			}
			for i := range it.N {
				dst[it.Dst+i] = f(a[it.Off[0]+i*plan.Step[0]], exp[it.Off[1]+i*plan.Step[1]])
			}
		}
		return nil
	}, nil
}

// realPow is the integer part of a power.
func realPow[T int32 | int64](x T, y float64) T { return T(math.Pow(float64(x), y)) }

// wholePowers computes the integer parts of powers with SIMD. Powers so close to an integer that
// the last bits decide, and large ones, are computed individually.
func wholePowers[T int32 | int64](dst, a []T, y float64) bool {
	const (
		near  = 1e-12 // of a power: some thousand times as much as vectors are wrong by
		large = 1 << 30
	)
	c := simd.CurveKernels()
	if !c.HasDoubles() || len(dst) < leastRow {
		return false
	}
	workspace, exponents := doubleWorkspaces.Get().(*[element.Block]float64), doubleWorkspaces.Get().(*[element.Block]float64)
	element.Fill(exponents[:], y)
	for at := 0; at < len(dst); at += element.Block {
		x, to := a[at:min(at+element.Block, len(a))], dst[at:]
		p := workspace[:len(x)]
		for i, v := range x {
			p[i] = float64(v)
		}
		c.PowDoubles(p, p, exponents[:len(x)])
		for i, v := range p {
			whole := math.RoundToEven(v)
			if d := math.Abs(v - whole); d > near*math.Abs(v) && math.Abs(v) < large {
				to[i] = T(v)
			} else {
				to[i] = realPow(x[i], y)
			}
		}
	}
	doubleWorkspaces.Put(workspace)
	doubleWorkspaces.Put(exponents)
	return true
}

// leastRow is the minimum length of rows for which SIMD pays off.
const leastRow = 8

// smallPower multiplies integers if the exponent is an integer that models commonly use.
func smallPower[T int32 | int64](dst, a []T, y int64) bool {
	switch y {
	case 1:
		copy(dst, a)
	case 2:
		for i, x := range a {
			dst[i] = x * x
		}
	case 3:
		for i, x := range a {
			dst[i] = x * x * x
		}
	default:
		return false
	}
	return true
}

// intPow multiplies modulo the type's range. Negative exponents give the integer part of the
// fraction, which is zero except for the bases one and minus one.
func intPow[T int32 | int64](x T, y int64) T {
	if y < 0 {
		switch {
		case x == 1 || x == -1 && y%2 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	r := T(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r
}

// powScalar has loops for the exponents that models use; times is the loop for products.
func powScalar(dst, a []float32, y float32, times func(dst, a, b []float32)) {
	a = a[:len(dst)]
	switch y {
	case 1:
		copy(dst, a)
	case 2:
		times(dst, a, a)
	case 3:
		powCube(dst, a, times)
	case 4:
		times(dst, a, a)
		times(dst, dst, dst)
	case -1:
		element.Reciprocal(dst, a)
	case 0.5, -0.5:
		powRoot(dst, a, y)
	default:
		powBlocks(dst, a, y, &floatWorkspaces, vecmath.PowTo)
	}
}

// powDoubles has loops for the exponents that models use.
func powDoubles(dst, a []float64, y float64) {
	a = a[:len(dst)]
	switch y {
	case 1:
		copy(dst, a)
	case 2:
		for i, x := range a {
			dst[i] = x * x
		}
	case 3:
		for i, x := range a {
			dst[i] = x * x * x
		}
	case -1:
		for i, x := range a {
			dst[i] = 1 / x
		}
	default:
		powBlocks(dst, a, y, &doubleWorkspaces, powersOfDoubles)
	}
}

func powersOfDoubles(dst, a, b []float64) {
	if c := simd.CurveKernels(); c.HasDoubles() {
		c.PowDoubles(dst, a, b)
		return
	}
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = math.Pow(a[i], b[i])
	}
}

// floatWorkspaces and doubleWorkspaces are pools of scratch blocks.
var (
	floatWorkspaces  = sync.Pool{New: func() any { return new([element.Block]float32) }}
	doubleWorkspaces = sync.Pool{New: func() any { return new([element.Block]float64) }}
)

// powCube multiplies squares, a block at a time.
func powCube(dst, a []float32, times func(dst, a, b []float32)) {
	workspace := floatWorkspaces.Get().(*[element.Block]float32)
	for at := 0; at < len(dst); at += element.Block {
		x := a[at:min(at+element.Block, len(a))]
		square := workspace[:len(x)]
		times(square, x, x)
		times(dst[at:][:len(x)], square, x)
	}
	floatWorkspaces.Put(workspace)
}

// powRoot computes square roots, and for the exponent -0.5 their reciprocals, for positive
// numbers: roots of -0 and -Inf differ from powers.
func powRoot(dst, a []float32, y float32) {
	if e := simd.ElementKernels(); e != nil {
		inf := float32(math.Inf(1))
		if least, _ := e.Extent(a, inf, inf); least > 0 {
			element.Sqrt(dst, a)
			if y < 0 {
				element.Reciprocal(dst, dst)
			}
			return
		}
	}
	for i, x := range a {
		switch {
		case !(x > 0):
			dst[i] = vecmath.Pow(x, y)
		case y < 0:
			dst[i] = 1 / float32(math.Sqrt(float64(x)))
		default:
			dst[i] = float32(math.Sqrt(float64(x)))
		}
	}
}

// powBlocks handles any exponent: it passes a block of copies of it to the binary loop.
func powBlocks[T float32 | float64](dst, a []T, y T, workspaces *sync.Pool, powers func(dst, a, b []T)) {
	workspace := workspaces.Get().(*[element.Block]T)
	exponents := workspace[:min(element.Block, len(dst))]
	element.Fill(exponents, y)
	for at := 0; at < len(dst); at += element.Block {
		x := a[at:min(at+element.Block, len(a))]
		powers(dst[at:][:len(x)], x, exponents[:len(x)])
	}
	workspaces.Put(workspace)
}
