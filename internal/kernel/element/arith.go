package element

import (
	"cmp"
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

type (
	floatLoops  = Loops[float32, float32]
	doubleLoops = Loops[float64, float64]
)

// inVectors returns SIMD kernels if the processor has them for the type, else plain.
func inVectors[T tensor.Number](plain Loops[T, T], vectors func(e *simd.Elements) floatLoops) Loops[T, T] {
	if e := simd.ElementKernels(); e != nil {
		if l, ok := any(vectors(e)).(Loops[T, T]); ok {
			return l
		}
	}
	return plain
}

// rowsOf returns kernels over rows; nil if the instruction set has none.
func rowsOf(e *simd.Elements, op simd.RowOp) func(dst, a, b []float32, n, stepA, stepB, single int) {
	if !e.HasPairs() {
		return nil
	}
	return func(dst, a, b []float32, n, stepA, stepB, single int) {
		e.Pairs(op, dst, a, b, n, stepA, stepB, single)
	}
}

// inIntegers returns SIMD kernels for an integer operation if the processor has them for the
// type, else plain.
func inIntegers[T tensor.Number](k simd.IntOp, plain Loops[T, T]) Loops[T, T] {
	e := simd.ElementKernels()
	if !simd.HasIntegers[T](e, k) {
		return plain
	}
	return Loops[T, T]{Vec: func(dst, a, b []T) {
		n := simd.Integers(e, k, dst, a, b)
		plain.Vec(dst[n:], a[n:], b[n:])
	}}
}

// Add is a+b.
func Add[T tensor.Number]() Loops[T, T] {
	plain := Loops[T, T]{addVec[T], addScalar[T], func(dst []T, a T, b []T) { addScalar(dst, b, a) }, nil}
	return inVectors(inIntegers(simd.IntAdd, plain), func(e *simd.Elements) floatLoops {
		return floatLoops{e.Add, e.AddScalar, func(dst []float32, a float32, b []float32) { e.AddScalar(dst, b, a) }, rowsOf(e, simd.RowAdd)}
	})
}

// Sub is a-b.
func Sub[T tensor.Number]() Loops[T, T] {
	// a-b is a+(-b), signed zeros included.
	plain := Loops[T, T]{subVec[T], func(dst []T, a []T, b T) { addScalar(dst, a, -b) }, scalarSub[T], nil}
	return inVectors(inIntegers(simd.IntSub, plain), func(e *simd.Elements) floatLoops {
		return floatLoops{e.Sub, func(dst []float32, a []float32, b float32) { e.AddScalar(dst, a, -b) }, e.ScalarSub, rowsOf(e, simd.RowSub)}
	})
}

// Mul is a·b.
func Mul[T tensor.Number]() Loops[T, T] {
	plain := Loops[T, T]{mulVec[T], mulScalar[T], func(dst []T, a T, b []T) { mulScalar(dst, b, a) }, nil}
	return inVectors(inIntegers(simd.IntMul, plain), func(e *simd.Elements) floatLoops {
		return floatLoops{e.Mul, e.MulScalar, func(dst []float32, a float32, b []float32) { e.MulScalar(dst, b, a) }, rowsOf(e, simd.RowMul)}
	})
}

// Div is a/b. Integers are truncated towards zero and must not be divided by zero.
func Div[T tensor.Number]() Loops[T, T] {
	return inVectors(Loops[T, T]{divVec[T], divScalar[T], scalarDiv[T], nil}, func(e *simd.Elements) floatLoops {
		return floatLoops{e.Div, e.DivScalar, e.ScalarDiv, rowsOf(e, simd.RowDiv)}
	})
}

// IntDiv is [Div], but division by zero returns zero.
func IntDiv[T tensor.Integer]() Loops[T, T] { return divisions(simd.TruncatedQuotient, intDivVec[T]) }

// divisions returns SIMD kernels if the processor has them for the type, else plain.
func divisions[T tensor.Number](k simd.Quotient, plain func(dst, a, b []T)) Loops[T, T] {
	f := simd.DivisionKernels()
	if !simd.HasDivisions[T](f, k) {
		return Loops[T, T]{Vec: plain}
	}
	return Loops[T, T]{Vec: func(dst, a, b []T) { simd.Divide(f, k, dst, a, b, plain) }}
}

// Max is the greater operand, NaN where either is NaN.
func Max[T tensor.Number]() Loops[T, T] {
	if e := simd.ElementKernels(); e != nil {
		if l, ok := any(doubleLoops{Vec: func(dst, a, b []float64) {
			n := e.MaxDoubles(dst, a, b)
			MaxTo(dst[n:], a[n:], b[n:])
		}}).(Loops[T, T]); ok {
			return l
		}
	}
	return inVectors(inIntegers(simd.IntMax, Loops[T, T]{Vec: MaxTo[T]}), func(e *simd.Elements) floatLoops {
		return floatLoops{Vec: func(dst, a, b []float32) {
			n := e.Max(dst, a, b)
			MaxTo(dst[n:], a[n:], b[n:])
		}}
	})
}

// Min is the smaller operand, NaN where either is NaN.
func Min[T tensor.Number]() Loops[T, T] {
	if e := simd.ElementKernels(); e != nil {
		if l, ok := any(doubleLoops{Vec: func(dst, a, b []float64) {
			n := e.MinDoubles(dst, a, b)
			MinTo(dst[n:], a[n:], b[n:])
		}}).(Loops[T, T]); ok {
			return l
		}
	}
	return inVectors(inIntegers(simd.IntMin, Loops[T, T]{Vec: MinTo[T]}), func(e *simd.Elements) floatLoops {
		return floatLoops{Vec: func(dst, a, b []float32) {
			n := e.Min(dst, a, b)
			MinTo(dst[n:], a[n:], b[n:])
		}}
	})
}

// SquaredDifference is (a-b)².
func SquaredDifference[T tensor.Number]() Loops[T, T] {
	return inVectors(Loops[T, T]{Vec: differenceVec[T]}, func(e *simd.Elements) floatLoops {
		// One block at a time, so that differences are squared in the cache. The sign of a
		// difference does not matter.
		each := func(n int, difference func(lo, hi int), dst []float32) {
			for lo := 0; lo < n; lo += squareBlock {
				hi := min(lo+squareBlock, n)
				difference(lo, hi)
				e.Mul(dst[lo:hi], dst[lo:hi], dst[lo:hi])
			}
		}
		scalar := func(dst, a []float32, b float32) {
			each(len(dst), func(lo, hi int) { e.AddScalar(dst[lo:hi], a[lo:hi], -b) }, dst)
		}
		return floatLoops{
			func(dst, a, b []float32) {
				each(len(dst), func(lo, hi int) { e.Sub(dst[lo:hi], a[lo:hi], b[lo:hi]) }, dst)
			},
			scalar,
			func(dst []float32, a float32, b []float32) { scalar(dst, b, a) },
			rowsOf(e, simd.RowSquare),
		}
	})
}

// squareBlock is the number of differences that stay in the L1 cache.
const squareBlock = 2048

// PRelu is a, times b where a is negative.
func PRelu[T tensor.Number]() Loops[T, T] {
	scalar := func(dst, a []T, b T) {
		a = a[:len(dst)]
		for i, x := range a {
			if x < 0 {
				x *= b
			}
			dst[i] = x
		}
	}
	return inVectors(Loops[T, T]{Vec: preluVec[T], VectorScalar: scalar}, func(e *simd.Elements) floatLoops {
		return floatLoops{
			Vec: func(dst, a, b []float32) {
				n := e.PRelu(dst, a, b)
				preluVec(dst[n:], a[n:], b[n:])
			},
			VectorScalar: func(dst, a []float32, b float32) {
				for n := e.PReluScalar(dst, a, b); n < len(dst); n++ {
					dst[n] = a[n]
					if a[n] < 0 {
						dst[n] = a[n] * b
					}
				}
			},
		}
	})
}

// ModTrunc is the remainder of the division truncated towards zero.
func ModTrunc[T tensor.Real]() Loops[T, T] { return divisions(simd.TruncatedRemainder, modTruncVec[T]) }

// ModFloor is the remainder with the sign of the divisor, zero included.
func ModFloor[T tensor.Real]() Loops[T, T] { return Loops[T, T]{Vec: modFloorVec[T]} }

// IntModTrunc is [ModTrunc] of integers; modulo zero it is zero.
func IntModTrunc[T tensor.Integer]() Loops[T, T] {
	return divisions(simd.TruncatedRemainder, intModTruncVec[T])
}

// IntModFloor is [ModFloor] of integers; modulo zero it is zero.
func IntModFloor[T tensor.Integer]() Loops[T, T] {
	return divisions(simd.FlooredRemainder, intModFloorVec[T])
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

func divVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

func divScalar[T tensor.Number](dst, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b
	}
}

func scalarDiv[T tensor.Number](dst []T, a T, b []T) {
	b = b[:len(dst)]
	for i := range dst {
		dst[i] = a / b[i]
	}
}

// intDivVec truncates towards zero. Division by zero, undefined in the standard, returns zero.
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

// intModFloorVec returns the remainder with the sign of the divisor.
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
		dst[i] = T(remainder(a[i], b[i]))
	}
}

// remainder is math.Mod. For float32 quotients below 2^53 the remainder is exact with one
// rounding, unless the truncated quotient is one too large, which the sign shows.
func remainder[T tensor.Real](x, y T) float64 {
	u, v := float64(x), math.Abs(float64(y))
	if unsafe.Sizeof(x) != 4 || !(v > 0) || !(math.Abs(u) < v*(1<<53)) || math.IsInf(v, 0) {
		return math.Mod(u, float64(y))
	}
	w := math.Abs(u)
	r := math.FMA(-math.Trunc(w/v), v, w)
	if r < 0 {
		r += v
	}
	return math.Copysign(r, u)
}

// modFloorVec returns the remainder with the sign of the divisor, zero included.
func modFloorVec[T tensor.Real](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		y := float64(b[i])
		r := remainder(a[i], b[i])
		switch {
		case r == 0:
			r = math.Copysign(0, y)
		case (r < 0) != (y < 0):
			r += y
		}
		dst[i] = T(r)
	}
}

// MaxTo is the kernel of [Max]: it returns NaN where either operand is NaN.
func MaxTo[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if x > y || x != x {
			y = x
		}
		dst[i] = y
	}
}

// MinTo is the kernel of [Min].
func MinTo[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if x < y || x != x {
			y = x
		}
		dst[i] = y
	}
}

func differenceVec[T tensor.Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		d := a[i] - b[i]
		dst[i] = d * d
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

// Clamped adds a clamp to kernels: each part of a run is clamped while it is in the cache.
func Clamped[T tensor.Number](l Loops[T, T], lo, hi T) Loops[T, T] {
	out := Loops[T, T]{Vec: func(dst, a, b []T) {
		for len(dst) > 0 {
			n := min(len(dst), 8*Block)
			l.Vec(dst[:n], a[:n], b[:n])
			Clamp(dst[:n], lo, hi)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
	}}
	if l.VectorScalar != nil {
		out.VectorScalar = func(dst, a []T, b T) { l.VectorScalar(dst, a, b); Clamp(dst, lo, hi) }
	}
	if l.ScalarVector != nil {
		out.ScalarVector = func(dst []T, a T, b []T) { l.ScalarVector(dst, a, b); Clamp(dst, lo, hi) }
	}
	if l.Rows != nil {
		out.Rows = func(dst, a, b []T, n, stepA, stepB, single int) {
			l.Rows(dst, a, b, n, stepA, stepB, single)
			Clamp(dst, lo, hi)
		}
	}
	return out
}

// ClampedAdd is [Clamped] of [Add], in a single pass where there is a kernel for that.
func ClampedAdd(lo, hi float32) Loops[float32, float32] {
	l := Clamped(Add[float32](), lo, hi)
	if e := simd.ElementKernels(); e.HasAddLimit() {
		l.Vec = func(dst, a, b []float32) { e.AddLimit(dst, a, b, lo, hi) }
	}
	return l
}

// Clamp limits every element in place. NaN stays. If lo > hi, the upper bound wins.
func Clamp[T cmp.Ordered](v []T, lo, hi T) {
	if f, ok := any(v).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Limit(f, f, any(lo).(float32), any(hi).(float32))
			return
		}
	}
	for i, x := range v {
		if x < lo {
			x = lo
		}
		if x > hi {
			x = hi
		}
		v[i] = x
	}
}
