// Package reduce implements ONNX's operators along axes: reductions, softmax and its variants,
// ArgMax and ArgMin, and cumulative sums, of all operator-set versions.
//
// internal/kernel/reduce plans which elements belong to a result; this package selects the
// accumulator types and the final conversion.
package reduce

import (
	"bytes"
	"math"
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
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

func lineAt(shape []int, axis int) line {
	return line{tensor.Elements(shape[:axis]), shape[axis], tensor.Elements(shape[axis+1:])}
}

func inferArg(c *op.Call) error {
	shape := c.In[0].Shape
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(shape))
	if err != nil {
		return err
	}
	if shape[axis] == 0 {
		return c.Errorf("no elements along axis %d", axis)
	}
	mask := make([]bool, len(shape))
	mask[axis] = true
	return c.Result(tensor.Int64, ReducedShape(shape, mask, c.Node.Attrs.Bool("keepdims", true)))
}

// prepareArg makes ArgMax and ArgMin.
func prepareArg(c *op.Call, least bool) (op.Run, error) {
	axis := op.Must(op.Axis(c.Node.Attrs.Int("axis", 0), c.In[0].Rank()))
	l, last := lineAt(c.In[0].Shape, axis), c.Node.Attrs.Bool("select_last_index", false)
	if f := tensor.PickNumber(c.In[0].Type, argRun[float32], argRun[float64], argRun[int8], argRun[int16], argRun[int32], argRun[int64], argRun[uint8], argRun[uint16], argRun[uint32], argRun[uint64]); f != nil {
		return f(l, least, last), nil
	}
	return nil, elem.BadType(c, 0)
}

func argRun[T tensor.Number](l line, least, last bool) op.Run {
	tiles := (l.inner + element.Block - 1) / element.Block
	var tops []T // the extremes of lines, where these are rows of memory
	extremes := simd.ExtremeKernels()
	if l.inner == 1 && simd.HasExtremes[T](extremes) {
		tops = make([]T, l.outer)
	}
	return op.Parallel(l.outer*tiles, max(1, element.Grain/(l.n*min(element.Block, max(1, l.inner)))), func(c *op.Call, lo, hi int) {
		src, dst := tensor.Of[T](c.In[0]), tensor.Of[int64](c.Out[0])
		if tops != nil {
			simd.ExtremeRows(extremes, least, tops[lo:hi], src[lo*l.n:], l.n)
			for i := lo; i < hi; i++ {
				line := src[i*l.n:][:l.n]
				if at := placeIn(line, tops[i], last); at >= 0 {
					dst[i] = int64(at)
				} else { // the first that is not a number
					argTile(dst[i:i+1], line, l.n, 1, least, last)
				}
			}
			return
		}
		if f, ok := any(src).([]float32); ok && l.inner == 1 {
			for i := lo; i < hi; i++ {
				line := f[i*l.n:][:l.n]
				if at := argRow(line, least, last); at >= 0 {
					dst[i] = int64(at)
				} else {
					argTile(dst[i:i+1], line, l.n, 1, least, last)
				}
			}
			return
		}
		for u := lo; u < hi; u++ {
			row, col := u/tiles, u%tiles*element.Block
			n := min(element.Block, l.inner-col)
			argTile(dst[row*l.inner+col:][:n], src[row*l.n*l.inner+col:], l.n, l.inner, least, last)
		}
	})
}

// argRow finds the position of the extreme of a line with SIMD; -1 if that is not possible, or
// the line contains a NaN.
func argRow(line []float32, least, last bool) int {
	e := simd.ElementKernels()
	if e == nil {
		return -1
	}
	low, high := e.Extent(line, line[0], line[0])
	want := high
	if least {
		want = low
	}
	return placeIn(line, want, last)
}

// placeIn returns the first or last position of a number in a line; -1 if absent.
func placeIn[T tensor.Number](line []T, want T, last bool) int {
	if last {
		for i := len(line) - 1; i >= 0; i-- {
			if line[i] == want {
				return i
			}
		}
		return -1
	}
	if unsafe.Sizeof(want) == 1 {
		return bytes.IndexByte(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(line))), len(line)), byte(want))
	}
	return slices.Index(line, want)
}

// argTile finds the positions of the extremes of adjacent lines, stride apart. The first NaN of a
// line is its extreme.
func argTile[T tensor.Number](dst []int64, src []T, n, stride int, least, last bool) {
	if f, ok := any(src).([]float32); ok && simd.ArgMaxKernels().Columns(dst, f, stride, n, least, last) {
		return
	}
	var best [element.Block]T
	width := len(dst)
	copy(best[:width], src)
	clear(dst)
	for r := 1; r < n; r++ {
		for i, x := range src[r*stride : r*stride+width] {
			b := best[i]
			better := x > b
			if least {
				better = x < b
			}
			if better || last && x == b || x != x && b == b {
				if b != b {
					continue
				}
				best[i], dst[i] = x, int64(r)
			}
		}
	}
}

func inferCumulative(c *op.Call) error {
	if c.In[0].Rank() == 0 {
		return c.Errorf("a scalar has no axis")
	}
	return elem.Same(c)
}

// prepareCumulative makes CumSum and CumProd.
func prepareCumulative(c *op.Call, product bool) (op.Run, error) {
	if f := tensor.PickNumber(c.In[0].Type, cumulative[float32], cumulative[float64], cumulative[int8], cumulative[int16], cumulative[int32], cumulative[int64], cumulative[uint8], cumulative[uint16], cumulative[uint32], cumulative[uint64]); f != nil {
		return f(c, product), nil
	}
	return nil, elem.BadType(c, 0)
}

func cumulative[T tensor.Number](c *op.Call, product bool) op.Run {
	run := reduce.Cumulative[T](product, c.Node.Attrs.Bool("exclusive", false), c.Node.Attrs.Bool("reverse", false))
	axes := layout.Once(c, 1, func(c *op.Call) ([]int, error) { return op.Ints(c.In[1]) })
	return func(c *op.Call) error {
		v, err := axes(c)
		if err != nil {
			return err
		}
		if len(v) != 1 {
			return c.Errorf("axis has %d elements", len(v))
		}
		axis, err := op.Axis(v[0], c.In[0].Rank())
		if err != nil {
			return err
		}
		l := lineAt(c.In[0].Shape, axis)
		run(tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]), l.outer, l.n, l.inner)
		return nil
	}
}
