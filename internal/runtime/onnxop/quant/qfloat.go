package quant

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elementwise"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/reduce"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Some 8-bit operators of the Microsoft domain have no useful integer form: they are their
// float32 counterparts between a table look-up and a quantisation.

// AroundFloat prepares the float32 operator that mk makes from a call whose input 0 and output 0
// are real, and wraps it. Scale and zero point of the input are inputs 1 and 2, those of the
// output 3 and 4.
func AroundFloat(mk elem.Prepare) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		if err := eightBits(c, 0); err != nil {
			return nil, err
		}
		for _, i := range []int{1, 3} {
			if err := needAffine(c, i); err != nil {
				return nil, err
			}
		}
		w := *c
		w.In = []*tensor.Tensor{{Type: tensor.Float32, Shape: c.In[0].Shape, Data: c.Scratch(4 * c.In[0].Len())}}
		w.Out = []*tensor.Tensor{{Type: tensor.Float32, Shape: c.Out[0].Shape, Data: c.Scratch(4 * c.Out[0].Len())}}
		run, err := mk(&w)
		if err != nil {
			return nil, err
		}
		t := c.In[0].Type
		lo, hi := intRange(t)
		// Of a run; allocated once.
		var x, y affine
		var codes []uint8
		wide, narrow := tensor.Of[float32](w.In[0]), tensor.Of[float32](w.Out[0])
		widen := func(a, b int) { toReals(wide[a:b], codes[a:b], t == tensor.Int8, int32(x.zero), x.scale) }
		round := func(a, b int) { toCodes(codes[a:b], narrow[a:b], y.scale, lo-y.zero, hi-y.zero, int32(y.zero)) }
		return func(c *op.Call) error {
			x, y = readAffine(c, 1), readAffine(c, 3)
			codes = c.In[0].Data
			c.Pool.For(len(wide), element.Grain, widen)
			if err := run(&w); err != nil {
				return err
			}
			codes = c.Out[0].Data
			c.Pool.For(len(narrow), element.Grain, round)
			return nil
		}, nil
	}
}

// qSoftmaxCall follows the attribute "opset", which selects the version of Softmax.
func qSoftmaxCall(c *op.Call) *op.Call {
	n := *c.Node
	n.Version = n.Attrs.Int("opset", 13)
	w := *c
	w.Node = &n
	return &w
}

func inferQReduce(c *op.Call) error {
	return reduce.InferReduce(qReduceCall(c))
}

// qReduceCall hides the inputs after the first: input 1 is a scale, not the axes.
func qReduceCall(c *op.Call) *op.Call {
	w := *c
	w.In = c.In[:1]
	return &w
}

// inferQWhere: condition, X with its scale and zero point, the same for Y, then scale and zero
// point of the result.
func inferQWhere(c *op.Call) error {
	if len(c.In) < 8 || !c.Has(0) || !c.Has(1) || !c.Has(4) {
		return c.Errorf("inputs are missing")
	}
	if c.In[1].Type != c.In[4].Type {
		return c.Errorf("operands are %v and %v", c.In[1].Type, c.In[4].Type)
	}
	return elem.InferBroadcast(c, c.In[1].Type, 0, 1, 4)
}

func prepareQWhere(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, elem.BadType(c, 0)
	}
	if err := eightBits(c, 1); err != nil {
		return nil, err
	}
	for _, i := range []int{2, 5, 7} {
		if err := needAffine(c, i); err != nil {
			return nil, err
		}
	}
	plan, err := elementwise.NewBroadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[4].Shape)
	if err != nil {
		return nil, err
	}
	t := c.In[1].Type
	var codes [2][256]uint8 // from the codes of Y and X to those of the result
	var reals [256]float32
	return func(c *op.Call) error {
		z := readAffine(c, 7)
		for k, i := range []int{5, 2} {
			readAffine(c, i).realTable(&reals, t)
			for q, v := range reals {
				codes[k][q] = z.code(v, t)
			}
		}
		cond, x, y, dst := c.In[0].Data, c.In[1].Data, c.In[4].Data, c.Out[0].Data
		for it := plan.Runs(0, plan.Len); it.Next(); {
			for i := range it.N {
				if cond[it.Off[0]+i*plan.Step[0]] != 0 {
					dst[it.Dst+i] = codes[1][x[it.Off[1]+i*plan.Step[1]]]
				} else {
					dst[it.Dst+i] = codes[0][y[it.Off[2]+i*plan.Step[2]]]
				}
			}
		}
		return nil
	}, nil
}

func qfloatDefs() []op.Def {
	bytes := []tensor.Type{tensor.Uint8, tensor.Int8}
	return []op.Def{
		{
			Domain: graph.Microsoft, Name: "QLinearSoftmax", Since: 1, Types: bytes, Infer: op.Needs(1, func(c *op.Call) error { return reduce.InferSoftmax(qSoftmaxCall(c)) }),
			Prepare: AroundFloat(func(c *op.Call) (op.Run, error) { return reduce.PrepareSoftmax(qSoftmaxCall(c), reduce.Softmax) }),
		},
		{
			Domain: graph.Microsoft, Name: "QLinearReduceMean", Since: 1, Types: bytes, Infer: op.Needs(1, inferQReduce),
			Prepare: AroundFloat(func(c *op.Call) (op.Run, error) { return reduce.PrepareReduce(qReduceCall(c), reduce.RedMean) }),
		},
		{Domain: graph.Microsoft, Name: "QLinearWhere", Since: 1, Types: bytes, Infer: inferQWhere, Prepare: prepareQWhere},
	}
}
