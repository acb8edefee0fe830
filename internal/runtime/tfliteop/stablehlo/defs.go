// Package stablehlo implements the StableHLO operators that TFLite files may contain beside its
// own: element-wise arithmetic, data movement, gathers, scatters and reductions. Their shapes are
// static. Control flow and composites are in internal/runtime/tfliteop/control. The package also
// has the TensorFlow operators (Flex) that these kernels compute.
package stablehlo

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/elementwise"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	l := []op.Def{
		def("COMPARE", 2, elementwise.InferBinary(tensor.Bool), prepareCompare),
		def("SELECT", 3, inferSelect, prepareSelect),
		def("CLAMP", 3, inferClamp, prepareClamp),
		def("RESHAPE", 1, inferReshape, layout.CopyAll),
		def("CONVERT", 1, inferConvert, func(c *op.Call) (op.Run, error) { return elementwise.Cast(c.In[0].Type, c.Out[0].Type) }),
		moved("TRANSPOSE", 1, transpose),
		def("BROADCAST_IN_DIM", 1, inferDeclared, prepareBroadcast),
		moved("SLICE", 1, slice),
		moved("CONCATENATE", 1, concatenate),
		moved("PAD", 2, pad),
		def("IOTA", 0, inferDeclared, prepareIota),
		def("DYNAMIC_SLICE", 1, inferDynamicSlice, prepareDynamicSlice),
		def("DYNAMIC_UPDATE_SLICE", 2, layout.SameAsInput, prepareUpdateSlice),
		def("GATHER", 2, inferDeclared, prepareGather),
		def("SCATTER", 3, inferScatter, prepareScatter),
		def("REDUCE", 2, inferReduce, prepareReduce),
		def("REDUCE_WINDOW", 2, inferDeclared, prepareWindow),
		{Domain: graph.TFLite, Name: "REDUCE_WINDOW", Infer: inferBuiltinWindow, Prepare: prepareBuiltinWindow},
		def("RNG_BIT_GENERATOR", 1, inferBits, prepareBits),
	}
	for name, k := range binaries {
		l = append(l, def(name, 2, elementwise.InferBinary(tensor.Invalid), prepareBinary(k)))
	}
	for name, f := range unaries {
		l = append(l, def(name, 1, layout.SameAsInput, prepareUnary(f)))
	}
	return append(l, flexDefs()...)
}

func def(name string, needs int, infer func(c *op.Call) error, prepare layout.Prepare) op.Def {
	return op.Def{Domain: graph.TFLite, Name: "STABLEHLO_" + name, Infer: op.Needs(needs, infer), Prepare: layout.WithUnpacked(prepare)}
}

// moved is [layout.Def] for operators whose parameters are all attributes.
func moved(name string, needs int, of func(c *op.Call) (layout.Geometry, error)) op.Def {
	return layout.Def(graph.TFLite, "STABLEHLO_"+name, needs, of, layout.None)
}

// declared returns the type and shape that the file declares for output 0, which must be static.
func declared(c *op.Call) (tensor.Type, []int, error) {
	v := c.Graph.Values[c.Node.Outputs[0]]
	if !v.HasShape || v.Type == tensor.Invalid || slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }) {
		return 0, nil, op.Unsupported("a result without a static shape")
	}
	return v.Type, slices.Clone(v.Shape), nil
}

// inferDeclared uses the declared type and shape. Prepare functions check the sizes.
func inferDeclared(c *op.Call) error {
	t, shape, err := declared(c)
	if err != nil {
		return err
	}
	c.SetOut(0, t, shape)
	return nil
}

func inferReshape(c *op.Call) error {
	if err := inferDeclared(c); err != nil {
		return err
	}
	if c.Out[0].Type != c.In[0].Type || c.Out[0].Len() != c.In[0].Len() {
		return fmt.Errorf("%v %s cannot become %v %s", c.In[0].Type, tensor.FormatShape(c.In[0].Shape), c.Out[0].Type, tensor.FormatShape(c.Out[0].Shape))
	}
	return nil
}

func inferConvert(c *op.Call) error {
	c.SetOut(0, c.Graph.Values[c.Node.Outputs[0]].Type, slices.Clone(c.In[0].Shape))
	return nil
}

func transpose(c *op.Call) (layout.Geometry, error) {
	return layout.Transpose(c.In[0].Shape, c.Node.Attrs.Ints("permutation"))
}

func prepareBroadcast(c *op.Call) (op.Run, error) {
	x, out := c.In[0], c.Out[0].Shape
	dims := c.Node.Attrs.Ints("broadcast_dimensions")
	if len(dims) != x.Rank() || x.Type != c.Out[0].Type {
		return nil, fmt.Errorf("axes %v for shape %s", dims, tensor.FormatShape(x.Shape))
	}
	from, strides := tensor.Strides(x.Shape), make([]int, len(out))
	for i, d := range dims {
		if d < 0 || d >= len(out) || x.Shape[i] != 1 && x.Shape[i] != out[d] {
			return nil, fmt.Errorf("axis %d of %s does not become axis %d of %s", i, tensor.FormatShape(x.Shape), d, tensor.FormatShape(out))
		}
		if x.Shape[i] != 1 {
			strides[d] = from[i]
		}
	}
	return layout.View(c, out, strides, 0)
}

func slice(c *op.Call) (g layout.Geometry, err error) {
	a, x := c.Node.Attrs, c.In[0].Shape
	begin, end, step := a.Ints("start_indices"), a.Ints("limit_indices"), a.Ints("strides")
	if len(begin) != len(x) || len(end) != len(x) || len(step) != len(x) {
		return g, fmt.Errorf("starts %v, limits %v and strides %v for rank %d", begin, end, step, len(x))
	}
	out := make([]int, len(x))
	for i, d := range x {
		if begin[i] < 0 || end[i] < begin[i] || end[i] > d || step[i] < 1 {
			return g, fmt.Errorf("elements %d to %d by %d of axis %d of %s", begin[i], end[i], step[i], i, tensor.FormatShape(x))
		}
		out[i] = (end[i] - begin[i] + step[i] - 1) / step[i]
	}
	return layout.StridedSlice(x, begin, step, out)
}

func concatenate(c *op.Call) (g layout.Geometry, err error) {
	if err := c.NeedInputs(len(c.In)); err != nil {
		return g, err
	}
	axis, err := op.Axis(c.Node.Attrs.Int("dimension", 0), c.In[0].Rank())
	if err != nil {
		return g, err
	}
	return layout.Concat(c.In, axis)
}

// pad inserts the value around and between elements. A negative padding crops the edge.
func pad(c *op.Call) (g layout.Geometry, err error) {
	a, x := c.Node.Attrs, c.In[0]
	low, high, between := a.Ints("edge_padding_low"), a.Ints("edge_padding_high"), a.Ints("interior_padding")
	if len(low) != x.Rank() || len(high) != x.Rank() || len(between) != x.Rank() || c.In[1].Type != x.Type || c.In[1].Len() != 1 {
		return g, fmt.Errorf("paddings %v, %v and %v for rank %d", low, high, between, x.Rank())
	}
	out := slices.Clone(x.Shape)
	for i, d := range out {
		if between[i] < 0 {
			return g, fmt.Errorf("interior padding %d", between[i])
		}
		if out[i] = d + max(d-1, 0)*between[i] + low[i] + high[i]; out[i] < 0 {
			return g, fmt.Errorf("axis %d is cut to %d", i, out[i])
		}
	}
	return layout.Map(x.Shape, out, func(i int) []int { return layout.SpreadAxis(x.Shape[i], out[i], low[i], between[i]+1) }, 1, nil), nil
}

func prepareIota(c *op.Call) (op.Run, error) {
	out := c.Out[0].Shape
	axis, err := op.Axis(c.Node.Attrs.Int("iota_dimension", 0), len(out))
	if err != nil {
		return nil, err
	}
	count := tensor.New(tensor.Int64, out[axis])
	for i, v := 0, tensor.Of[int64](count); i < len(v); i++ {
		v[i] = int64(i)
	}
	one := tensor.New(c.Out[0].Type, out[axis])
	cast, err := elementwise.Cast(tensor.Int64, one.Type)
	if err != nil {
		return nil, err
	}
	if err := cast(&op.Call{In: []*tensor.Tensor{count}, Out: []*tensor.Tensor{one}}); err != nil {
		return nil, err
	}
	strides := make([]int, len(out))
	strides[axis] = 1
	p := move.View(out, strides, 0)
	return func(c *op.Call) error {
		p.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(one))
		return nil
	}, nil
}

// starts reads the scalar start indices from input first on, one an axis.
func starts(c *op.Call, first int) ([]int, error) {
	rank := c.In[0].Rank()
	if len(c.In) < first+rank {
		return nil, fmt.Errorf("%d start indices for rank %d", len(c.In)-first, rank)
	}
	at := make([]int, rank)
	for i := range at {
		var err error
		if at[i], err = layout.Scalar(c.In[first+i]); err != nil {
			return nil, fmt.Errorf("start index %d: %w", i, err)
		}
	}
	return at, nil
}

func inferDynamicSlice(c *op.Call) error {
	size, x := c.Node.Attrs.Ints("slice_sizes"), c.In[0].Shape
	if len(size) != len(x) {
		return fmt.Errorf("sizes %v for rank %d", size, len(x))
	}
	for i, n := range size {
		if n < 0 || n > x[i] {
			return fmt.Errorf("sizes %v for shape %s", size, tensor.FormatShape(x))
		}
	}
	c.SetOut(0, c.In[0].Type, size)
	return nil
}

func prepareDynamicSlice(c *op.Call) (op.Run, error) {
	p := move.View(c.Out[0].Shape, tensor.Strides(c.In[0].Shape), 0)
	return func(c *op.Call) error {
		at, err := starts(c, 1)
		if err != nil {
			return err
		}
		p.From = layout.Fitted(at, c.In[0].Shape, c.Out[0].Shape)
		p.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]))
		return nil
	}, nil
}

func prepareUpdateSlice(c *op.Call) (op.Run, error) {
	if x, u := c.In[0], c.In[1]; u.Type != x.Type {
		return nil, op.Unsupported("update %v of %v", u.Type, x.Type)
	}
	return layout.DynamicUpdateSlice(c.In[0].Shape, c.In[1].Shape, func(c *op.Call) ([]int, error) { return starts(c, 2) })
}
