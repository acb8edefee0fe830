package stablehlo

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/liteop/elementwise"
	"github.com/opmeter/opmeter/internal/liteop/layout"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(arithmeticDefs(), moveDefs(), indexDefs(), reduceDefs(), flexDefs())
}

func def(name string, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) op.Def {
	return op.Def{Domain: graph.TFLite, Name: "STABLEHLO_" + name, Infer: infer, Prepare: layout.Widened(prepare)}
}

// declared is the static type and shape that the file gives to output 0.
func declared(c *op.Call) (tensor.Type, []int, error) {
	v := c.Graph.Values[c.Node.Outputs[0]]
	if !v.HasShape || v.Type == tensor.Invalid || slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }) {
		return 0, nil, op.Unsupported("a result without a static shape")
	}
	return v.Type, slices.Clone(v.Shape), nil
}

// inferDeclared takes the result as the file declares it; sizes are checked when
// the operator is prepared.
func inferDeclared(inputs int) func(c *op.Call) error {
	return func(c *op.Call) error {
		if err := c.NeedInputs(inputs); err != nil {
			return err
		}
		t, shape, err := declared(c)
		if err != nil {
			return err
		}
		c.SetOut(0, t, shape)
		return nil
	}
}

func inferSame(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, slices.Clone(c.In[0].Shape))
	return nil
}

// moveView copies a strided view of input 0 to output 0.
func moveView(t tensor.Type, shape, strides []int, from int) (op.Run, error) {
	store := layout.StoreFor(t)
	if store == nil {
		return nil, op.Unsupported("elements of type %v", t)
	}
	b := layout.NewBlock(shape, tensor.Strides(shape), strides)
	return func(c *op.Call) error {
		store.Move(c.Pool, b, c.Out[0], c.In[0], 0, from)
		return nil
	}, nil
}

func moveDefs() []op.Def {
	return []op.Def{
		def("RESHAPE", inferReshape, func(*op.Call) (op.Run, error) {
			return func(c *op.Call) error { layout.Copy(c.Pool, c.Out[0], c.In[0]); return nil }, nil
		}),
		def("CONVERT", inferConvert, func(c *op.Call) (op.Run, error) { return elementwise.Cast(c.In[0].Type, c.Out[0].Type) }),
		def("TRANSPOSE", inferTranspose, prepareTranspose),
		def("BROADCAST_IN_DIM", inferDeclared(1), prepareBroadcast),
		def("SLICE", inferSlice, prepareSlice),
		def("CONCATENATE", inferConcatenate, prepareConcatenate),
		def("PAD", inferPad, preparePad),
		def("IOTA", inferDeclared(0), prepareIota),
		def("DYNAMIC_SLICE", inferDynamicSlice, prepareDynamicSlice),
		def("DYNAMIC_UPDATE_SLICE", inferSame, prepareUpdateSlice),
	}
}

func inferReshape(c *op.Call) error {
	if err := inferDeclared(1)(c); err != nil {
		return err
	}
	if c.Out[0].Type != c.In[0].Type || c.Out[0].Len() != c.In[0].Len() {
		return fmt.Errorf("%v %s cannot become %v %s", c.In[0].Type, tensor.FormatShape(c.In[0].Shape), c.Out[0].Type, tensor.FormatShape(c.Out[0].Shape))
	}
	return nil
}

func inferConvert(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, c.Graph.Values[c.Node.Outputs[0]].Type, slices.Clone(c.In[0].Shape))
	return nil
}

func inferTranspose(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	x, perm := c.In[0], c.Node.Attrs.Ints("permutation")
	sorted := slices.Sorted(slices.Values(perm))
	for i, a := range sorted {
		if a != i {
			return fmt.Errorf("%v is not a permutation", perm)
		}
	}
	if len(perm) != x.Rank() {
		return fmt.Errorf("permutation %v for rank %d", perm, x.Rank())
	}
	shape := make([]int, len(perm))
	for i, a := range perm {
		shape[i] = x.Shape[a]
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func prepareTranspose(c *op.Call) (op.Run, error) {
	from := tensor.Strides(c.In[0].Shape)
	strides := make([]int, len(from))
	for i, a := range c.Node.Attrs.Ints("permutation") {
		strides[i] = from[a]
	}
	return moveView(c.In[0].Type, c.Out[0].Shape, strides, 0)
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
	return moveView(x.Type, out, strides, 0)
}

// bounds reads the options of a slice.
func bounds(c *op.Call) (begin, end, step []int, err error) {
	a := c.Node.Attrs
	begin, end, step = a.Ints("start_indices"), a.Ints("limit_indices"), a.Ints("strides")
	x := c.In[0]
	if len(begin) != x.Rank() || len(end) != x.Rank() || len(step) != x.Rank() {
		return nil, nil, nil, fmt.Errorf("starts %v, limits %v and strides %v for rank %d", begin, end, step, x.Rank())
	}
	for i, d := range x.Shape {
		if begin[i] < 0 || end[i] < begin[i] || end[i] > d || step[i] < 1 {
			return nil, nil, nil, fmt.Errorf("elements %d to %d by %d of axis %d of %s", begin[i], end[i], step[i], i, tensor.FormatShape(x.Shape))
		}
	}
	return begin, end, step, nil
}

func inferSlice(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	begin, end, step, err := bounds(c)
	if err != nil {
		return err
	}
	shape := make([]int, len(begin))
	for i := range shape {
		shape[i] = (end[i] - begin[i] + step[i] - 1) / step[i]
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareSlice(c *op.Call) (op.Run, error) {
	begin, _, step, err := bounds(c)
	if err != nil {
		return nil, err
	}
	strides, from := tensor.Strides(c.In[0].Shape), 0
	for i := range strides {
		from += begin[i] * strides[i]
		strides[i] *= step[i]
	}
	return moveView(c.In[0].Type, c.Out[0].Shape, strides, from)
}

func inferConcatenate(c *op.Call) error {
	if err := c.NeedInputs(max(1, len(c.In))); err != nil {
		return err
	}
	x := c.In[0]
	axis, err := op.Axis(c.Node.Attrs.Int("dimension", 0), x.Rank())
	if err != nil {
		return err
	}
	shape := slices.Clone(x.Shape)
	for _, y := range c.In[1:] {
		if y.Type != x.Type || y.Rank() != x.Rank() || !slices.Equal(slices.Delete(slices.Clone(y.Shape), axis, axis+1), slices.Delete(slices.Clone(x.Shape), axis, axis+1)) {
			return fmt.Errorf("%v %s and %v %s do not join", x.Type, tensor.FormatShape(x.Shape), y.Type, tensor.FormatShape(y.Shape))
		}
		shape[axis] += y.Shape[axis]
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func prepareConcatenate(c *op.Call) (op.Run, error) {
	store := layout.StoreFor(c.In[0].Type)
	if store == nil {
		return nil, op.Unsupported("elements of type %v", c.In[0].Type)
	}
	axis, _ := op.Axis(c.Node.Attrs.Int("dimension", 0), c.In[0].Rank())
	strides := tensor.Strides(c.Out[0].Shape)
	blocks := make([]*layout.Block, len(c.In))
	for i, x := range c.In {
		blocks[i] = layout.NewBlock(x.Shape, strides, tensor.Strides(x.Shape))
	}
	return func(c *op.Call) error {
		at := 0
		for i, x := range c.In {
			store.Move(c.Pool, blocks[i], c.Out[0], x, at, 0)
			at += x.Shape[axis] * strides[axis]
		}
		return nil
	}, nil
}

// padding reads the options; edges may be negative and cut off.
func padding(c *op.Call) (low, high, between []int, err error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, nil, nil, err
	}
	a, x := c.Node.Attrs, c.In[0]
	low, high, between = a.Ints("edge_padding_low"), a.Ints("edge_padding_high"), a.Ints("interior_padding")
	if len(low) != x.Rank() || len(high) != x.Rank() || len(between) != x.Rank() || c.In[1].Type != x.Type || c.In[1].Len() != 1 {
		return nil, nil, nil, fmt.Errorf("paddings %v, %v and %v for rank %d", low, high, between, x.Rank())
	}
	for _, b := range between {
		if b < 0 {
			return nil, nil, nil, fmt.Errorf("interior padding %d", b)
		}
	}
	return low, high, between, nil
}

func inferPad(c *op.Call) error {
	low, high, between, err := padding(c)
	if err != nil {
		return err
	}
	shape := slices.Clone(c.In[0].Shape)
	for i, d := range shape {
		if shape[i] = d + max(d-1, 0)*between[i] + low[i] + high[i]; shape[i] < 0 {
			return fmt.Errorf("axis %d is cut to %d", i, shape[i])
		}
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func preparePad(c *op.Call) (op.Run, error) {
	low, _, between, err := padding(c)
	if err != nil {
		return nil, err
	}
	store := layout.StoreFor(c.In[0].Type)
	if store == nil {
		return nil, op.Unsupported("elements of type %v", c.In[0].Type)
	}
	x, out := c.In[0].Shape, c.Out[0].Shape
	src, dst := tensor.Strides(x), tensor.Strides(out)
	shape := make([]int, len(x))
	from, to := 0, 0
	for i := range x {
		step := between[i] + 1
		first := 0 // first element that is not cut off
		if low[i] < 0 {
			first = (-low[i] + step - 1) / step
		}
		at := low[i] + first*step
		n := 0
		if at < out[i] {
			n = (out[i]-at-1)/step + 1
		}
		shape[i] = max(min(n, x[i]-first), 0)
		from += first * src[i]
		to += at * dst[i]
		dst[i] *= step
	}
	b := layout.NewBlock(shape, dst, src)
	return func(c *op.Call) error {
		store.Fill(c.Pool, c.Out[0], c.In[1], 0, c.Out[0].Len())
		store.Move(c.Pool, b, c.Out[0], c.In[0], to, from)
		return nil
	}, nil
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
	store := layout.StoreFor(one.Type)
	b := layout.NewBlock(out, tensor.Strides(out), strides)
	return func(c *op.Call) error {
		store.Move(c.Pool, b, c.Out[0], one, 0, 0)
		return nil
	}, nil
}

// starts reads the scalar start indices from input first on and moves each so
// that a slice of the size fits.
func starts(c *op.Call, first int, shape, size []int) (int, error) {
	if len(c.In) < first+len(shape) {
		return 0, fmt.Errorf("%d start indices for rank %d", len(c.In)-first, len(shape))
	}
	at := 0
	for i, stride := range tensor.Strides(shape) {
		v, err := op.Ints(c.In[first+i])
		if err != nil {
			return 0, err
		}
		if len(v) != 1 {
			return 0, fmt.Errorf("start index %d has %d elements", i, len(v))
		}
		at += min(max(v[0], 0), shape[i]-size[i]) * stride
	}
	return at, nil
}

func inferDynamicSlice(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
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
	store := layout.StoreFor(c.In[0].Type)
	if store == nil {
		return nil, op.Unsupported("elements of type %v", c.In[0].Type)
	}
	size := c.Out[0].Shape
	b := layout.NewBlock(size, tensor.Strides(size), tensor.Strides(c.In[0].Shape))
	return func(c *op.Call) error {
		at, err := starts(c, 1, c.In[0].Shape, size)
		if err != nil {
			return err
		}
		store.Move(c.Pool, b, c.Out[0], c.In[0], 0, at)
		return nil
	}, nil
}

func prepareUpdateSlice(c *op.Call) (op.Run, error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, err
	}
	x, u := c.In[0], c.In[1]
	store := layout.StoreFor(x.Type)
	if store == nil || u.Type != x.Type || u.Rank() != x.Rank() {
		return nil, op.Unsupported("update %v %s of %v %s", u.Type, tensor.FormatShape(u.Shape), x.Type, tensor.FormatShape(x.Shape))
	}
	for i, d := range u.Shape {
		if d > x.Shape[i] {
			return nil, fmt.Errorf("update %s is larger than %s", tensor.FormatShape(u.Shape), tensor.FormatShape(x.Shape))
		}
	}
	b := layout.NewBlock(u.Shape, tensor.Strides(x.Shape), tensor.Strides(u.Shape))
	return func(c *op.Call) error {
		at, err := starts(c, 2, c.In[0].Shape, c.In[1].Shape)
		if err != nil {
			return err
		}
		layout.Copy(c.Pool, c.Out[0], c.In[0])
		store.Move(c.Pool, b, c.Out[0], c.In[1], at, 0)
		return nil
	}, nil
}
