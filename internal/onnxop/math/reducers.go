package math

import (
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// reduceReal folds floating-point numbers with float64 accumulators.
func reduceReal[T tensor.Real](c *op.Call, k reduction) (op.Run, error) {
	inf := math.Inf(1)
	sum := reducer[T, float64]{row: sumRow[T, float64], cols: sumCols[T, float64], merge: plus[float64], done: func(a float64, _ int) T { return T(a) }}
	switch k {
	case redMax, redMin:
		return prepareReducer(c, extreme(k, T(-inf), T(inf)))
	case redLogSumExp:
		return prepareReducer(c, logSumExp(func(f float64) T { return T(f) }))
	case redProd:
		return prepareReducer(c, product(func(a float64, _ int) T { return T(a) }))
	case redMean:
		sum.done = func(a float64, n int) T { return T(a / float64(n)) }
	case redL1:
		sum.row, sum.cols = absRow[T, float64], absCols[T, float64]
	case redL2:
		sum.row, sum.cols = squareRow[T, float64], squareCols[T, float64]
		sum.done = func(a float64, _ int) T { return T(math.Sqrt(a)) }
	case redSumSquare:
		sum.row, sum.cols = squareRow[T, float64], squareCols[T, float64]
	case redLogSum:
		sum.done = func(a float64, _ int) T { return T(math.Log(a)) }
	}
	return prepareReducer(c, sum)
}

// reduceInt folds integers in 64 bits, exactly modulo the type's range.
func reduceInt[T tensor.Integer, A int64 | uint64](c *op.Call, k reduction) (op.Run, error) {
	sum := reducer[T, A]{row: sumRow[T, A], cols: sumCols[T, A], merge: plus[A], done: func(a A, _ int) T { return T(a) }}
	switch k {
	case redMax, redMin:
		lo, hi := tensor.Bounds[T]()
		return prepareReducer(c, extreme(k, lo, hi))
	case redLogSumExp:
		return prepareReducer(c, logSumExp(func(f float64) T { return T(f) }))
	case redProd:
		return prepareReducer(c, product(func(a A, _ int) T { return T(a) }))
	case redMean:
		sum.done = func(a A, n int) T {
			if n == 0 {
				return 0
			}
			return T(a / A(n))
		}
	case redL1:
		sum.row, sum.cols = absRow[T, A], absCols[T, A]
	case redL2:
		sum.row, sum.cols = squareRow[T, A], squareCols[T, A]
		sum.done = func(a A, _ int) T { return T(math.Sqrt(float64(a))) }
	case redSumSquare:
		sum.row, sum.cols = squareRow[T, A], squareCols[T, A]
	case redLogSum:
		sum.done = func(a A, _ int) T {
			if a == 0 {
				return 0
			}
			return T(math.Log(float64(a)))
		}
	}
	return prepareReducer(c, sum)
}

func plus[A tensor.Number](a, b A) A { return a + b }

// sumRow keeps four sums so that additions overlap.
func sumRow[T, A tensor.Number](acc A, src []T) A {
	var a, b, d A
	for len(src) >= 4 {
		s := src[:4:4]
		acc += A(s[0])
		a += A(s[1])
		b += A(s[2])
		d += A(s[3])
		src = src[4:]
	}
	for _, x := range src {
		acc += A(x)
	}
	return acc + a + (b + d)
}

func sumCols[T, A tensor.Number](acc []A, src []T) {
	src = src[:len(acc)]
	for i, x := range src {
		acc[i] += A(x)
	}
}

func absRow[T, A tensor.Number](acc A, src []T) A {
	for _, x := range src {
		if x < 0 {
			acc -= A(x)
		} else {
			acc += A(x)
		}
	}
	return acc
}

func absCols[T, A tensor.Number](acc []A, src []T) {
	src = src[:len(acc)]
	for i, x := range src {
		if x < 0 {
			acc[i] -= A(x)
		} else {
			acc[i] += A(x)
		}
	}
}

func squareRow[T, A tensor.Number](acc A, src []T) A {
	var a, b, d A
	for len(src) >= 4 {
		s := src[:4:4]
		x, y, z, w := A(s[0]), A(s[1]), A(s[2]), A(s[3])
		acc += x * x
		a += y * y
		b += z * z
		d += w * w
		src = src[4:]
	}
	for _, x := range src {
		acc += A(x) * A(x)
	}
	return acc + a + (b + d)
}

func squareCols[T, A tensor.Number](acc []A, src []T) {
	src = src[:len(acc)]
	for i, x := range src {
		acc[i] += A(x) * A(x)
	}
}

func product[T, A tensor.Number](done func(A, int) T) reducer[T, A] {
	return reducer[T, A]{
		start: 1,
		row: func(acc A, src []T) A {
			for _, x := range src {
				acc *= A(x)
			}
			return acc
		},
		cols: func(acc []A, src []T) {
			src = src[:len(acc)]
			for i, x := range src {
				acc[i] *= A(x)
			}
		},
		merge: func(a, b A) A { return a * b },
		done:  done,
	}
}

// extreme is the maximum or minimum; NaN wins over numbers. lo and hi are the
// bounds of the type, the results for nothing to reduce.
func extreme[T tensor.Number](k reduction, lo, hi T) reducer[T, T] {
	done := func(a T, _ int) T { return a }
	if k == redMin {
		return reducer[T, T]{start: hi, row: minRow[T], cols: func(acc, src []T) { minVec(acc, acc, src) }, merge: func(a, b T) T { return minRow(a, []T{b}) }, done: done}
	}
	return reducer[T, T]{start: lo, row: maxRow[T], cols: func(acc, src []T) { maxVec(acc, acc, src) }, merge: func(a, b T) T { return maxRow(a, []T{b}) }, done: done}
}

func maxRow[T tensor.Number](acc T, src []T) T {
	a, b := acc, acc
	for len(src) >= 2 {
		if x := src[0]; x > a || x != x {
			a = x
		}
		if x := src[1]; x > b || x != x {
			b = x
		}
		src = src[2:]
	}
	if len(src) == 1 {
		if x := src[0]; x > a || x != x {
			a = x
		}
	}
	if a > b || a != a {
		return a
	}
	return b
}

func minRow[T tensor.Number](acc T, src []T) T {
	a, b := acc, acc
	for len(src) >= 2 {
		if x := src[0]; x < a || x != x {
			a = x
		}
		if x := src[1]; x < b || x != x {
			b = x
		}
		src = src[2:]
	}
	if len(src) == 1 {
		if x := src[0]; x < a || x != x {
			a = x
		}
	}
	if a < b || a != a {
		return a
	}
	return b
}

// scaledSum stands for s·e^m, so that sums of exponentials neither overflow nor
// vanish.
type scaledSum struct{ m, s float64 }

func (a scaledSum) add(x float64) scaledSum {
	switch {
	case x <= a.m:
		if a.m == x { // also for two infinities, whose difference is NaN
			a.s++
		} else {
			a.s += math.Exp(x - a.m)
		}
	case x > a.m:
		if a.s != 0 {
			a.s *= math.Exp(a.m - x)
		}
		a.m, a.s = x, a.s+1
	default:
		a.m, a.s = x, x // NaN
	}
	return a
}

func logSumExp[T tensor.Number](done func(float64) T) reducer[T, scaledSum] {
	return reducer[T, scaledSum]{
		start: scaledSum{m: math.Inf(-1)},
		row: func(acc scaledSum, src []T) scaledSum {
			top := acc.m
			for _, x := range src {
				top = max(top, float64(x))
			}
			if math.IsInf(top, 0) || top != top {
				for _, x := range src {
					acc = acc.add(float64(x))
				}
				return acc
			}
			s := acc.s
			if s != 0 {
				s *= math.Exp(acc.m - top)
			}
			for _, x := range src {
				s += math.Exp(float64(x) - top)
			}
			return scaledSum{top, s}
		},
		cols: func(acc []scaledSum, src []T) {
			for i, x := range src[:len(acc)] {
				acc[i] = acc[i].add(float64(x))
			}
		},
		merge: func(a, b scaledSum) scaledSum {
			if b.s == 0 {
				return a
			}
			if a.m < b.m {
				a, b = b, a
			}
			if a.m != b.m && b.s != 0 {
				b.s *= math.Exp(b.m - a.m)
			}
			return scaledSum{a.m, a.s + b.s}
		},
		done: func(a scaledSum, _ int) T {
			if a.s == 0 {
				return done(math.Inf(-1))
			}
			return done(a.m + math.Log(a.s))
		},
	}
}
