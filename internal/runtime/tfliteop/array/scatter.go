package array

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func scatterDefs() []op.Def {
	defs := []op.Def{
		lite("SCATTER_ND", 3, inferScatterND, prepareScatterND),
		lite("SPARSE_TO_DENSE", 4, inferSparseToDense, op.Simple(runSparseToDense)),
		lite("SEGMENT_SUM", 2, inferSegmentSum, prepareSegments("add")),
	}
	for _, r := range [][2]string{{"SUM", "add"}, {"PROD", "mul"}, {"MAX", "max"}, {"MIN", "min"}} {
		defs = append(defs, lite("UNSORTED_SEGMENT_"+r[0], 3, inferUnsortedSegment, prepareSegments(r[1])))
	}
	return defs
}

// inferScatterND has indices, updates and the shape.
func inferScatterND(c *op.Call) error {
	shape, err := op.Ints(c.In[2])
	if err != nil {
		return err
	}
	idx, u := c.In[0].Shape, c.In[1].Shape
	last := len(idx) - 1
	if last < 0 || idx[last] > len(shape) || !slices.Equal(u, slices.Concat(idx[:last], shape[idx[last]:])) {
		return fmt.Errorf("indices %s and updates %s for shape %s", tensor.FormatShape(idx), tensor.FormatShape(u), tensor.FormatShape(shape))
	}
	c.SetOut(0, c.In[1].Type, shape)
	return nil
}

// prepareScatterND adds the updates to zeros; duplicate indices add up.
func prepareScatterND(c *op.Call) (op.Run, error) {
	add, err := layout.Updater(c.In[1].Type, "add")
	if err != nil {
		return nil, err
	}
	g, err := layout.NewTuples(c.Out[0].Shape, c.In[0].Shape, 0, false)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		at, err := g.Offsets(c.In[0])
		if err != nil {
			return err
		}
		clear(c.Out[0].Data)
		add(c.Out[0], c.In[1], at, g.Block)
		return nil
	}, nil
}

// inferSparseToDense has indices, shape, values and the default.
func inferSparseToDense(c *op.Call) error {
	shape, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	if c.In[0].Rank() > 2 || c.In[2].Rank() > 1 || c.In[2].Type != c.In[3].Type || c.In[3].Len() != 1 {
		return fmt.Errorf("indices %s, values %v %s, default %v %s", tensor.FormatShape(c.In[0].Shape),
			c.In[2].Type, tensor.FormatShape(c.In[2].Shape), c.In[3].Type, tensor.FormatShape(c.In[3].Shape))
	}
	c.SetOut(0, c.In[2].Type, shape)
	return nil
}

func runSparseToDense(c *op.Call) error {
	at, err := op.Ints(c.In[0])
	if err != nil {
		return err
	}
	out, values := c.Out[0], c.In[2]
	// A scalar is one coordinate, a vector many entries of rank one.
	n, depth := c.In[0].Len(), 1
	if c.In[0].Rank() == 2 {
		n, depth = c.In[0].Shape[0], c.In[0].Shape[1]
	}
	if depth != out.Rank() || values.Rank() == 1 && values.Len() != n {
		return fmt.Errorf("%d entries of rank %d with %d values for shape %s", n, depth, values.Len(), tensor.FormatShape(out.Shape))
	}
	to := make([]int, n)
	for i := range to {
		if to[i], err = flatIndex(at[i*depth:][:depth], out.Shape); err != nil {
			return err
		}
	}
	move.Fill(c.Pool, layout.Of(out), layout.Of(c.In[3]))
	if values.Rank() == 0 {
		move.Mark(layout.Of(out), layout.Of(values), to)
	} else {
		move.Put(layout.Of(out), layout.Of(values), to, 1)
	}
	return nil
}

// inferSegmentSum has as many rows as the last identifier determines.
func inferSegmentSum(c *op.Call) error {
	ids, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	x := c.In[0]
	if x.Rank() == 0 || c.In[1].Rank() != 1 || len(ids) != x.Shape[0] {
		return fmt.Errorf("%d segment identifiers for shape %s", len(ids), tensor.FormatShape(x.Shape))
	}
	for i, id := range ids {
		if id < 0 || i > 0 && id < ids[i-1] {
			return fmt.Errorf("segment identifier %d is negative or below the one before", id)
		}
	}
	shape := like(x.Shape)
	shape[0] = 0
	if n := len(ids); n > 0 {
		shape[0] = ids[n-1] + 1
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func inferUnsortedSegment(c *op.Call) error {
	n, err := layout.Scalar(c.In[2])
	if err != nil {
		return err
	}
	x, ids := c.In[0].Shape, c.In[1].Shape
	if n < 0 || len(ids) > len(x) || !slices.Equal(ids, x[:len(ids)]) {
		return fmt.Errorf("%d segments, identifiers %s for shape %s", n, tensor.FormatShape(ids), tensor.FormatShape(x))
	}
	c.SetOut(0, c.In[0].Type, slices.Concat([]int{n}, x[len(ids):]))
	return nil
}

// prepareSegments folds rows with a reduction, see [layout.Updater].
func prepareSegments(reduction string) layout.Prepare {
	return func(c *op.Call) (op.Run, error) {
		t := c.In[0].Type
		fold, err := layout.Updater(t, reduction)
		if err != nil {
			return nil, err
		}
		start, ok := neutral[t]
		if !ok {
			return nil, op.Unsupported("elements of type %v", t)
		}
		empty := start()[reduction]
		run := tensor.Elements(c.In[0].Shape[c.In[1].Rank():])
		return func(c *op.Call) error {
			ids, err := op.Ints(c.In[1])
			if err != nil {
				return err
			}
			out := c.Out[0]
			for _, id := range ids {
				// Unsorted segments drop entries without a segment.
				if id >= out.Shape[0] || id < 0 && c.Node.Op == "SEGMENT_SUM" {
					return fmt.Errorf("segment identifier %d is outside 0 to %d", id, out.Shape[0]-1)
				}
			}
			move.Fill(c.Pool, layout.Of(out), layout.Of(empty))
			fold(out, c.In[0], ids, run)
			return nil
		}, nil
	}
}

// neutral returns, for each element type, the element of an empty segment, by reduction.
var neutral = map[tensor.Type]func() map[string]*tensor.Tensor{
	tensor.Float32: neutrals[float32](tensor.Float32, -math.MaxFloat32, math.MaxFloat32),
	tensor.Float64: neutrals[float64](tensor.Float64, -math.MaxFloat64, math.MaxFloat64),
	tensor.Int8:    neutrals[int8](tensor.Int8, math.MinInt8, math.MaxInt8),
	tensor.Int16:   neutrals[int16](tensor.Int16, math.MinInt16, math.MaxInt16),
	tensor.Int32:   neutrals[int32](tensor.Int32, math.MinInt32, math.MaxInt32),
	tensor.Int64:   neutrals[int64](tensor.Int64, math.MinInt64, math.MaxInt64),
	tensor.Uint8:   neutrals[uint8](tensor.Uint8, 0, math.MaxUint8),
	tensor.Uint32:  neutrals[uint32](tensor.Uint32, 0, math.MaxUint32),
	tensor.Uint64:  neutrals[uint64](tensor.Uint64, 0, math.MaxUint64),
	tensor.Bool:    neutrals[uint8](tensor.Bool, 0, 1),
}

func neutrals[T tensor.Number](t tensor.Type, low, up T) func() map[string]*tensor.Tensor {
	return func() map[string]*tensor.Tensor {
		of := func(v T) *tensor.Tensor { return tensor.From(t, nil, []T{v}) }
		return map[string]*tensor.Tensor{"add": of(0), "mul": of(1), "max": of(low), "min": of(up)}
	}
}
