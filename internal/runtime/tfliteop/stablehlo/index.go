package stablehlo

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// indexing holds the parameters of gather and scatter: index vectors in the start tensor, and
// windows of the operand.
type indexing struct {
	toAxis []int // operand axis of each entry of an index vector
	size   []int // window over all operand axes
	// Shape and strides of the start tensor without the axis of index vectors, and the distance of
	// the entries of a vector.
	batch, batchStrides []int
	step                int
	shape, strides      []int // of the operand
}

func indexingOf(operand, start, toAxis, size []int, vector int) (x indexing, err error) {
	x = indexing{toAxis: toAxis, size: size, batch: slices.Clone(start), batchStrides: tensor.Strides(start), step: 1, shape: operand, strides: tensor.Strides(operand)}
	if vector < 0 || vector > len(start) {
		return x, fmt.Errorf("index vectors along axis %d of %s", vector, tensor.FormatShape(start))
	}
	n := 1 // length of a vector: 1 without an axis for it
	if vector < len(start) {
		n, x.step = start[vector], x.batchStrides[vector]
		x.batch, x.batchStrides = slices.Delete(x.batch, vector, vector+1), slices.Delete(x.batchStrides, vector, vector+1)
	}
	if n != len(toAxis) || len(size) != len(operand) {
		return x, fmt.Errorf("index vectors of %d for axes %v, windows %v of %s", n, toAxis, size, tensor.FormatShape(operand))
	}
	for _, a := range toAxis {
		if a < 0 || a >= len(operand) {
			return x, fmt.Errorf("axis %d of %s", a, tensor.FormatShape(operand))
		}
	}
	for i, s := range size {
		if s < 0 || s > operand[i] {
			return x, fmt.Errorf("windows %v of %s", size, tensor.FormatShape(operand))
		}
	}
	return x, nil
}

// origin returns the offset of window b in the operand. With fit, as in gathers, the window is
// moved into the operand; otherwise, as in scatters, ok is false for one outside.
func (x *indexing) origin(start []int, b int, fit bool) (at int, ok bool) {
	base := place(b, x.batch, x.batchStrides)
	for k, a := range x.toAxis {
		v := start[base+k*x.step]
		last := x.shape[a] - x.size[a]
		if fit {
			v = min(max(v, 0), last)
		} else if v < 0 || v > last {
			return 0, false
		}
		at += v * x.strides[a]
	}
	return at, true
}

// windowAxes lists the operand axes that are kept, in order.
func windowAxes(rank int, dropped []int) []int {
	var out []int
	for i := range rank {
		if !slices.Contains(dropped, i) {
			out = append(out, i)
		}
	}
	return out
}

// spread splits the axes of the combined tensor (result of a gather, updates of a scatter) into
// window axes, which are named, and batch axes. It returns strides of both.
func spread(shape, window []int) (win, batch, batchShape []int, err error) {
	st := tensor.Strides(shape)
	for i := range shape {
		if slices.Contains(window, i) {
			win = append(win, st[i])
		} else {
			batch, batchShape = append(batch, st[i]), append(batchShape, shape[i])
		}
	}
	if len(win) != len(window) {
		return nil, nil, nil, fmt.Errorf("window axes %v of %s", window, tensor.FormatShape(shape))
	}
	return win, batch, batchShape, nil
}

func prepareGather(c *op.Call) (op.Run, error) {
	a, x, start, out := c.Node.Attrs, c.In[0], c.In[1], c.Out[0]
	ix, err := indexingOf(x.Shape, start.Shape, a.Ints("start_index_map"), a.Ints("slice_sizes"), a.Int("index_vector_dim", 0))
	if err != nil {
		return nil, err
	}
	if out.Type != x.Type {
		return nil, op.Unsupported("%v from %v", out.Type, x.Type)
	}
	win, batch, batchShape, err := spread(out.Shape, a.Ints("offset_dims"))
	if err != nil {
		return nil, err
	}
	axes := windowAxes(x.Rank(), a.Ints("collapsed_slice_dims"))
	if len(axes) != len(win) || !slices.Equal(batchShape, ix.batch) {
		return nil, fmt.Errorf("windows over axes %v at %s make no %s", axes, tensor.FormatShape(start.Shape), tensor.FormatShape(out.Shape))
	}
	var size, from []int
	for i, ax := range axes {
		if out.Shape[a.Ints("offset_dims")[i]] != ix.size[ax] {
			return nil, fmt.Errorf("windows %v make no %s", ix.size, tensor.FormatShape(out.Shape))
		}
		size, from = append(size, ix.size[ax]), append(from, ix.strides[ax])
	}
	p := move.New(size, win, from, 0, 0)
	return func(c *op.Call) error {
		v, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		for i := range tensor.Elements(ix.batch) {
			p.From, _ = ix.origin(v, i, true)
			p.To = place(i, batchShape, batch)
			p.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]))
		}
		return nil
	}, nil
}

// place converts the number of a batch entry to its offset.
func place(i int, shape, strides []int) int {
	at := 0
	for k := len(shape) - 1; k >= 0; k-- {
		at += i % shape[k] * strides[k]
		i /= shape[k]
	}
	return at
}

// inferScatter reads the operand, start indices and updates.
func inferScatter(c *op.Call) error {
	if len(c.In) != 3 || c.In[2].Type != c.In[0].Type {
		return op.Unsupported("%d inputs, updates %v of %v", len(c.In), c.In[2].Type, c.In[0].Type)
	}
	return layout.SameAsInput(c)
}

func prepareScatter(c *op.Call) (op.Run, error) {
	name, err := combiner(c, "update_computation_subgraph_index")
	if err != nil {
		return nil, err
	}
	return pick(c, byType(c.In[0], scatter[float32], scatter[float64], scatter[int8], scatter[int16], scatter[int32], scatter[int64], scatter[uint8], scatter[uint32]), name)
}

func scatter[T tensor.Number](c *op.Call, name string) (op.Run, error) {
	f, err := merge[T](name, c.In[0].Type == tensor.Bool)
	if err != nil {
		return nil, err
	}
	a, x, start, u := c.Node.Attrs, c.In[0], c.In[1], c.In[2]
	window := a.Ints("update_window_dims")
	win, batch, batchShape, err := spread(u.Shape, window)
	if err != nil {
		return nil, err
	}
	axes := windowAxes(x.Rank(), a.Ints("inserted_window_dims"))
	if len(axes) != len(win) {
		return nil, fmt.Errorf("windows over axes %v with %d axes in the updates", axes, len(win))
	}
	size := slices.Repeat([]int{1}, x.Rank())
	var shape, to []int
	for i, ax := range axes {
		size[ax] = u.Shape[window[i]]
		shape = append(shape, size[ax])
	}
	ix, err := indexingOf(x.Shape, start.Shape, a.Ints("scatter_dims_to_operand_dims"), size, a.Int("index_vector_dim", 0))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(batchShape, ix.batch) {
		return nil, fmt.Errorf("updates %s for indices %s", tensor.FormatShape(u.Shape), tensor.FormatShape(start.Shape))
	}
	for _, ax := range axes {
		to = append(to, ix.strides[ax])
	}
	return func(c *op.Call) error {
		v, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		layout.Copy(c.Pool, c.Out[0], c.In[0])
		y, u := tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[2])
		for i := range tensor.Elements(ix.batch) {
			at, ok := ix.origin(v, i, false)
			if !ok {
				continue
			}
			from := place(i, batchShape, batch)
			for k := range tensor.Elements(shape) {
				o := at + place(k, shape, to)
				y[o] = f(y[o], u[from+place(k, shape, win)])
			}
		}
		return nil
	}, nil
}
