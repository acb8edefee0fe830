package reduce

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// reduceReal folds floating-point numbers with float64 accumulators.
func reduceReal[T tensor.Real](c *op.Call, k Reduction) (op.Run, error) {
	sum, done := reduce.Sum[T, float64], func(a float64, _ int) T { return T(a) }
	switch k {
	case redMax:
		return prepareReducer(c, reduce.Max(T(math.Inf(-1))))
	case redMin:
		return prepareReducer(c, reduce.Min(T(math.Inf(1))))
	case redLogSumExp:
		return prepareReducer(c, reduce.LogSumExp[T]())
	case redProd:
		sum = reduce.Product[T, float64]
	case RedMean:
		done = func(a float64, n int) T { return T(a / float64(n)) }
	case redL1:
		sum = reduce.SumAbs[T, float64]
	case redL2:
		sum, done = reduce.SumSquares[T, float64], func(a float64, _ int) T { return T(math.Sqrt(a)) }
	case redSumSquare:
		sum = reduce.SumSquares[T, float64]
	case redLogSum:
		done = func(a float64, _ int) T { return T(vecmath.LogDouble(a)) }
	}
	if k == redSum && (!c.Has(1) || c.Const(1)) {
		mask, err := reduceMask(c)
		if err != nil {
			return nil, err
		}
		plan := reduce.NewPlan(c.In[0].Shape, mask)
		if columns, count := plan.Columns(); columns && count == 2 {
			return prepareReducer(c, reduce.SumPairs[T]())
		}
	}
	r := sum(done)
	switch k {
	case redL2:
		r.All = func(dst []T, acc []float64, _ int) {
			for i, a := range acc {
				dst[i] = T(math.Sqrt(a))
			}
		}
	case redSum, redL1, redSumSquare, RedMean:
		mean := k == RedMean
		r.All = func(dst []T, acc []float64, n int) {
			by := 1.0
			if mean {
				by = float64(n)
			}
			for i, a := range acc {
				dst[i] = T(a / by)
			}
		}
	}
	return prepareReducer(c, r)
}

// reduceInt folds integers in 64 bits, exactly modulo the type's range.
func reduceInt[T tensor.Integer, A int64 | uint64](c *op.Call, k Reduction) (op.Run, error) {
	sum, done := reduce.Sum[T, A], func(a A, _ int) T { return T(a) }
	lo, hi := tensor.Bounds[T]()
	switch k {
	case redMax:
		return prepareReducer(c, reduce.Max(lo))
	case redMin:
		return prepareReducer(c, reduce.Min(hi))
	case redLogSumExp:
		return prepareReducer(c, reduce.LogSumExp[T]())
	case redProd:
		sum = reduce.Product[T, A]
	case RedMean:
		done = func(a A, n int) T { return T(a / A(max(n, 1))) } // the sum of nothing is zero
	case redL1:
		sum = reduce.SumAbs[T, A]
	case redL2:
		sum, done = reduce.SumSquares[T, A], func(a A, _ int) T { return T(math.Sqrt(float64(a))) }
	case redSumSquare:
		sum = reduce.SumSquares[T, A]
	case redLogSum:
		// the logarithm of nothing is zero
		done = func(a A, _ int) T { return T(max(0, math.Log(float64(a)))) }
	}
	return prepareReducer(c, sum(done))
}
