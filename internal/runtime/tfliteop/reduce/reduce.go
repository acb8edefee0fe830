// Package reduce implements TFLite's reductions, cumulative sums and normalisations along axes, and
// the lookup of embeddings.
package reduce

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	ordered, truth := []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, []tensor.Type{tensor.Bool}
	reduction := func(name string, types []tensor.Type, prepare func(c *op.Call, r *reduction) (op.Run, error)) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: types}, shapeReduce, inferReduce, prepare)
	}
	return layer.InTFLite([]op.Def{
		reduction("MEAN", layer.Numbers, prepareSum(true)),
		reduction("SUM", layer.Numbers, prepareSum(false)),
		reduction("REDUCE_MAX", layer.Numbers, prepareExtreme(false)),
		reduction("REDUCE_MIN", layer.Numbers, prepareExtreme(true)),
		reduction("REDUCE_PROD", ordered, prepareProd),
		reduction("REDUCE_ANY", truth, prepareLogic(reduce.Max[uint8](0))),
		reduction("REDUCE_ALL", truth, prepareLogic(reduce.Min[uint8](1))),
		{Name: "CUMSUM", Types: ordered, Infer: inferCumsum, Prepare: prepareCumsum},
		{Name: "L2_NORMALIZATION", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareL2Norm, Fuses: true},
		{Name: "LOCAL_RESPONSE_NORMALIZATION", Types: layer.FloatOnly, Infer: layer.InferSame, Prepare: prepareLRN},
		{Name: "EMBEDDING_LOOKUP", Infer: inferEmbedding, Prepare: prepareEmbedding},
	})
}

// reduction describes which axes of an input are reduced.
type reduction struct {
	shape []int // of the output
	drop  []bool
	plan  reduce.Plan
	count int // elements of the input per element of the output
}

func shapeReduce(c *op.Call) (*reduction, error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, err
	}
	x := c.In[0].Shape
	axes, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	drop := make([]bool, len(x))
	for _, a := range axes {
		if len(x) == 0 && (a == 0 || a == -1) {
			continue
		}
		i, err := op.Axis(a, len(x))
		if err != nil {
			return nil, err
		}
		drop[i] = true
	}
	r := &reduction{shape: []int{}, drop: drop, plan: reduce.NewPlan(x, drop), count: 1}
	keep := c.Node.Attrs.Bool("keep_dims", false)
	for i, d := range x {
		switch {
		case !drop[i]:
			r.shape = append(r.shape, d)
			continue
		case keep:
			r.shape = append(r.shape, 1)
		}
		r.count *= d
	}
	return r, nil
}

func inferReduce(c *op.Call, r *reduction) {
	c.SetOut(0, layer.OutType(c, c.In[0].Type), r.shape)
}

// runReduce folds input 0 into output 0.
func runReduce[T tensor.Number, A any](c *op.Call, r *reduction, f reduce.Reducer[T, A]) op.Run {
	run := reduce.NewRun(c.Pool, r.plan, f)
	return func(c *op.Call) error {
		run.Do(c.Pool, tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]))
		return nil
	}
}

// prepareSum makes SUM and MEAN.
func prepareSum(mean bool) func(c *op.Call, r *reduction) (op.Run, error) {
	return func(c *op.Call, r *reduction) (op.Run, error) {
		x, y := c.In[0].Type, c.Out[0].Type
		if x != y {
			return nil, op.Unsupported("%v input with %v output", x, y)
		}
		if layer.Quantised(c.In[0]) {
			if f := tensor.PickInteger(x, quantSum[int8], quantSum[int16], nil, nil, quantSum[uint8], nil, nil, nil); f != nil {
				return f(c, r, mean)
			}
		}
		if f := tensor.PickNumber(x, plainSum[float32, float32], nil, nil, nil, plainSum[int32, int64], plainSum[int64, int64], nil, nil, nil, nil); f != nil {
			return f(c, r, mean), nil
		}
		return nil, op.Unsupported("%v input", x)
	}
}

// plainSum sums in order and in the type of the reference kernels: float32, or 64-bit integers.
func plainSum[T, A float32 | int32 | int64](c *op.Call, r *reduction, mean bool) op.Run {
	isFloat := c.In[0].Type == tensor.Float32
	return runReduce(c, r, reduce.OrderedSum(func(a A, n int) T {
		if mean && (n > 0 || isFloat) { // the mean of nothing is not a number
			a /= A(n)
		}
		return T(a)
	}))
}

func quantSum[T int8 | uint8 | int16](c *op.Call, r *reduction, mean bool) (op.Run, error) {
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(float64(si) / float64(so))
	if mean {
		m = m.Mean(r.count)
	}
	lo, hi := layer.Limits(c.Out[0].Type)
	offset := zi * int32(r.count)
	c.Recipe = recipe.Total{Shape: c.In[0].Shape, Drop: r.drop, Offset: offset, Mul: m, Zero: zo, Min: lo, Max: hi}
	return runReduce(c, r, reduce.Sum(func(a int32, _ int) T { return T(min(max(m.Apply(a-offset)+zo, lo), hi)) })), nil
}

// prepareExtreme makes REDUCE_MAX and REDUCE_MIN, which copy stored values.
func prepareExtreme(least bool) func(c *op.Call, r *reduction) (op.Run, error) {
	return func(c *op.Call, r *reduction) (op.Run, error) {
		t := c.In[0].Type
		if t != c.Out[0].Type {
			return nil, op.Unsupported("%v input with %v output", t, c.Out[0].Type)
		}
		inf := float32(math.Inf(1))
		switch f := tensor.PickInteger(t, extreme[int8], extreme[int16], extreme[int32], extreme[int64], extreme[uint8], nil, nil, nil); {
		case f != nil:
			return f(c, r, least), nil
		case t == tensor.Float32 && least:
			return runReduce(c, r, reduce.Min(inf)), nil
		case t == tensor.Float32:
			return runReduce(c, r, reduce.Max(-inf)), nil
		}
		return nil, op.Unsupported("%v input", t)
	}
}

func extreme[T tensor.Integer](c *op.Call, r *reduction, least bool) op.Run {
	lo, hi := tensor.Bounds[T]()
	c.Recipe = recipe.Extreme{Shape: c.In[0].Shape, Drop: r.drop, Least: least}
	if least {
		return runReduce(c, r, reduce.Min(hi))
	}
	return runReduce(c, r, reduce.Max(lo))
}

func prepareProd(c *op.Call, r *reduction) (op.Run, error) {
	t := c.In[0].Type
	if t != c.Out[0].Type || layer.Quantised(c.In[0]) {
		return nil, op.Unsupported("%v input with %v output", t, c.Out[0].Type)
	}
	if f := tensor.PickNumber(t, prod[float32], nil, nil, nil, prod[int32], prod[int64], nil, nil, nil, nil); f != nil {
		return f(c, r), nil
	}
	return nil, op.Unsupported("%v input", t)
}

// prod multiplies in order.
func prod[T float32 | int32 | int64](c *op.Call, r *reduction) op.Run {
	f := reduce.Product(func(a T, _ int) T { return a })
	f.Merge = nil
	return runReduce(c, r, f)
}

// prepareLogic makes REDUCE_ANY and REDUCE_ALL: truth values are 0 and 1.
func prepareLogic(truth reduce.Reducer[uint8, uint8]) func(c *op.Call, r *reduction) (op.Run, error) {
	truth.Done, truth.All = func(a uint8, _ int) uint8 { return min(a, 1) }, nil
	return func(c *op.Call, r *reduction) (op.Run, error) {
		if c.In[0].Type != tensor.Bool || c.Out[0].Type != tensor.Bool {
			return nil, op.Unsupported("%v input", c.In[0].Type)
		}
		return runReduce(c, r, truth), nil
	}
}

func prepareCumsum(c *op.Call) (op.Run, error) {
	axes, err := op.Ints(c.In[1])
	if err != nil || len(axes) != 1 {
		return nil, op.Unsupported("axis that is not one known number")
	}
	a, err := op.Axis(axes[0], c.In[0].Rank())
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(c.In[0].Shape)
	exclusive, reverse := c.Node.Attrs.Bool("exclusive", false), c.Node.Attrs.Bool("reverse", false)
	n, inner := shape[a], tensor.Elements(shape[a+1:])
	if f := tensor.PickNumber(c.In[0].Type, cumsum[float32], nil, nil, nil, cumsum[int32], cumsum[int64], nil, nil, nil, nil); f != nil {
		return f(n, inner, exclusive, reverse), nil
	}
	return nil, op.Unsupported("%v input", c.In[0].Type)
}

func inferCumsum(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, c.In[0].Shape)
	if !c.In[1].Known() {
		return op.ErrDynamic
	}
	return nil
}

func cumsum[T float32 | int32 | int64](n, inner int, exclusive, reverse bool) op.Run {
	sums := reduce.Cumulative[T](false, exclusive, reverse)
	return func(c *op.Call) error {
		if x := tensor.Of[T](c.In[0]); len(x) > 0 {
			sums(tensor.Of[T](c.Out[0]), x, len(x)/(n*inner), n, inner)
		}
		return nil
	}
}
