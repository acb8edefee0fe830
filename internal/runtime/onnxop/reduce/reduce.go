package reduce

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/model/graph"
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
		for i := range mask {
			mask[i] = true
		}
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
func Defs() []op.Def { return slices.Concat(reduceDefs(), axisDefs()) }

func reduceDefs() []op.Def {
	var out []op.Def
	for _, e := range []struct {
		name string
		kind Reduction
	}{
		{"ReduceSum", redSum},
		{"ReduceMean", RedMean},
		{"ReduceProd", redProd},
		{"ReduceMax", redMax},
		{"ReduceMin", redMin},
		{"ReduceL1", redL1},
		{"ReduceL2", redL2},
		{"ReduceSumSquare", redSumSquare},
		{"ReduceLogSum", redLogSum},
		{"ReduceLogSumExp", redLogSumExp},
	} {
		types := elem.Numbers
		if e.kind == redMax || e.kind == redMin {
			types = slices.Concat(elem.Numbers, elem.Bools)
		}
		out = append(out, op.Def{
			Domain: graph.ONNX, Name: e.name, Since: 1, Types: types, Infer: op.Needs(1, InferReduce),
			Prepare: elem.Widen(func(c *op.Call) (op.Run, error) { return PrepareReduce(c, e.kind) }),
		})
	}
	return out
}
