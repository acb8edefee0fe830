// Package reduce implements ONNX's operators along axes: reductions, softmax and its variants,
// ArgMax and ArgMin, and cumulative sums, of all operator-set versions.
//
// internal/kernel/reduce plans which elements belong to a result; this package selects the
// accumulator types and the final conversion.
package reduce

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Reduction identifies a reduction operator.
type Reduction uint8

// RedMean is the sum divided by the number of elements.
const (
	redSum Reduction = iota
	RedMean
	redProd
	redMax
	redMin
	redL1
	redL2
	redSumSquare
	redLogSum
	redLogSumExp
)

// reduceMask returns which dimensions are reduced. The axes are an attribute in older operator
// sets and an input in newer ones. Without axes all dimensions are reduced, or with
// noop_with_empty_axes none.
func reduceMask(c *op.Call) ([]bool, error) {
	axes := c.Node.Attrs.Ints("axes")
	if x := c.Input(1); x != nil && x.Len() > 0 {
		var err error
		if axes, err = op.Ints(x); err != nil {
			return nil, err
		}
	}
	rank := c.In[0].Rank()
	mask := make([]bool, rank)
	for _, a := range axes {
		a, err := op.Axis(a, rank)
		if err != nil {
			return nil, err
		}
		mask[a] = true
	}
	if len(axes) == 0 && !c.Node.Attrs.Bool("noop_with_empty_axes", false) {
		element.Fill(mask, true)
	}
	return mask, nil
}

// InferReduce sets output 0 to the reduced shape of input 0.
func InferReduce(c *op.Call) error {
	mask, err := reduceMask(c)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, ReducedShape(c.In[0].Shape, mask, c.Node.Attrs.Bool("keepdims", true)))
}

// ReducedShape returns the shape without the marked dimensions, or with ones in their place if
// keep is set.
func ReducedShape(shape []int, mask []bool, keep bool) []int {
	out := make([]int, 0, len(shape))
	for i, d := range shape {
		switch {
		case !mask[i]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// prepareReducer runs r. Axes that are not constant are read in each run.
func prepareReducer[T tensor.Number, A any](c *op.Call, r reduce.Reducer[T, A]) (op.Run, error) {
	mask, err := reduceMask(c)
	if err != nil {
		return nil, err
	}
	run := reduce.NewRun(c.Pool, reduce.NewPlan(c.In[0].Shape, mask), r)
	fixed := !c.Has(1) || c.Const(1)
	return func(c *op.Call) error {
		if !fixed {
			now, err := reduceMask(c)
			if err != nil {
				return err
			}
			if !slices.Equal(now, mask) {
				mask = now
				run = reduce.NewRun(c.Pool, reduce.NewPlan(c.In[0].Shape, mask), r)
			}
		}
		run.Do(c.Pool, tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]))
		return nil
	}, nil
}

// PrepareReduce makes a reduction for the type of input 0.
func PrepareReduce(c *op.Call, k Reduction) (op.Run, error) {
	if f := tensor.PickNumber(c.In[0].Type, reduceReal[float32], reduceReal[float64],
		reduceInt[int8, int64], reduceInt[int16, int64], reduceInt[int32, int64], reduceInt[int64, int64],
		reduceInt[uint8, uint64], reduceInt[uint16, uint64], reduceInt[uint32, uint64], reduceInt[uint64, uint64]); f != nil {
		return f(c, k)
	}
	switch isBool := c.In[0].Type == tensor.Bool; {
	case isBool && k == redMax:
		return prepareReducer(c, reduce.Max[uint8](0))
	case isBool && k == redMin:
		return prepareReducer(c, reduce.Min[uint8](1))
	}
	return nil, elem.BadType(c, 0)
}

// Defs lists the operators of this package.
func Defs() []op.Def {
	def := func(name string, since int, types []tensor.Type, infer func(*op.Call) error, p elem.Prepare) op.Def {
		return op.Def{Name: name, Since: since, Types: types, Infer: infer, Prepare: elem.Widen(p)}
	}
	out := []op.Def{
		def("ArgMax", 1, elem.Numbers, op.Needs(1, inferArg), elem.With(prepareArg, false)),
		def("ArgMin", 1, elem.Numbers, op.Needs(1, inferArg), elem.With(prepareArg, true)),
		def("CumSum", 11, elem.Numbers, op.Needs(2, inferCumulative), elem.With(prepareCumulative, false)),
		def("CumProd", 26, elem.Numbers, op.Needs(2, inferCumulative), elem.With(prepareCumulative, true)),
	}
	for k, name := range []string{Softmax: "Softmax", LogSoftmax: "LogSoftmax", hardmax: "Hardmax"} {
		d := def(name, 1, elem.Floats, op.Needs(1, InferSoftmax), elem.With(PrepareSoftmax, Normalisation(k)))
		d.InPlace = true
		out = append(out, d)
	}
	for k, name := range []string{
		redSum: "ReduceSum", RedMean: "ReduceMean", redProd: "ReduceProd", redMax: "ReduceMax", redMin: "ReduceMin",
		redL1: "ReduceL1", redL2: "ReduceL2", redSumSquare: "ReduceSumSquare", redLogSum: "ReduceLogSum", redLogSumExp: "ReduceLogSumExp",
	} {
		types := elem.Numbers
		if k := Reduction(k); k == redMax || k == redMin {
			types = slices.Concat(elem.Numbers, elem.Bools)
		}
		out = append(out, def(name, 1, types, op.Needs(1, InferReduce), elem.With(PrepareReduce, Reduction(k))))
	}
	return out
}

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
