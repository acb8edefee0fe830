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

func gather(c *op.Call) (g layout.Geometry, err error) {
	x, idx := c.In[0], c.In[1]
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), x.Rank())
	if err != nil {
		return g, err
	}
	batch := c.Node.Attrs.Int("batch_dims", 0)
	if batch < 0 {
		batch += idx.Rank()
	}
	if batch < 0 || batch > axis || batch > idx.Rank() || !slices.Equal(x.Shape[:batch], idx.Shape[:batch]) {
		return g, fmt.Errorf("%d batch axes of shapes %s and %s, axis %d", batch, tensor.FormatShape(x.Shape), tensor.FormatShape(idx.Shape), axis)
	}
	return layout.Gather(x.Shape, idx.Shape, axis, batch, false)
}

func gatherND(c *op.Call) (layout.Geometry, error) {
	return layout.GatherND(c.In[0].Shape, c.In[1].Shape, 0, false)
}

// flatIndex converts coordinates of the leading axes to a row number.
func flatIndex(at, shape []int) (int, error) {
	n := 0
	for i, a := range at {
		if a < 0 || a >= shape[i] {
			return 0, fmt.Errorf("index %v is outside %s", at, tensor.FormatShape(shape))
		}
		n = n*shape[i] + a
	}
	return n, nil
}

// inferScatterND has indices, updates and the shape.
func inferScatterND(c *op.Call, shape []int) error {
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
func inferSparseToDense(c *op.Call, shape []int) error {
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
func inferSegmentSum(c *op.Call, ids []int) error {
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

func inferUnsortedSegment(c *op.Call, n int) error {
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

// inferEmbeddingSparse has ids, their indices, the dense shape, weights and the embedding table.
func inferEmbeddingSparse(c *op.Call) error {
	ids, at, shape, w, table := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	if ids.Rank() != 1 || at.Rank() != 2 || shape.Rank() != 1 || w.Rank() != 1 || table.Rank() < 2 ||
		at.Shape[0] != ids.Shape[0] || w.Shape[0] != ids.Shape[0] || at.Shape[1] != shape.Shape[0] || at.Shape[1] < 1 {
		return fmt.Errorf("ids %s, indices %s, dense shape %s, weights %s, table %s", tensor.FormatShape(ids.Shape),
			tensor.FormatShape(at.Shape), tensor.FormatShape(shape.Shape), tensor.FormatShape(w.Shape), tensor.FormatShape(table.Shape))
	}
	if table.Type != tensor.Float32 || w.Type != tensor.Float32 {
		return op.Unsupported("table of %v with weights of %v", table.Type, w.Type)
	}
	dense, err := op.Ints(shape)
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Float32, slices.Concat(dense[:len(dense)-1], table.Shape[1:]))
	return nil
}

// prepareEmbeddingSparse adds weighted rows of the table for every position but the last
// coordinate, and divides as the combiner requires.
func prepareEmbeddingSparse(c *op.Call) (op.Run, error) {
	combiner := c.Node.Attrs.Str("combiner", "SUM")
	if combiner != "SUM" && combiner != "MEAN" && combiner != "SQRTN" {
		return nil, op.Unsupported("combiner %s", combiner)
	}
	return func(c *op.Call) error {
		ids, err := op.Ints(c.In[0])
		if err != nil {
			return err
		}
		at, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		weights, table, y := tensor.Of[float32](c.In[3]), tensor.Of[float32](c.In[4]), tensor.Of[float32](c.Out[0])
		width := tensor.Elements(c.In[4].Shape[1:])
		depth := c.In[1].Shape[1] - 1
		clear(y)
		norm := make([]float32, tensor.Elements(c.Out[0].Shape[:depth]))
		for i, id := range ids {
			row, err := flatIndex(at[i*(depth+1):][:depth], c.Out[0].Shape)
			if err != nil {
				return err
			}
			if id < 0 || id >= c.In[4].Shape[0] {
				return fmt.Errorf("id %d is outside a table of %d rows", id, c.In[4].Shape[0])
			}
			w := weights[i]
			if combiner == "SQRTN" {
				norm[row] += w * w
			} else {
				norm[row] += w
			}
			out, in := y[row*width:][:width], table[id*width:][:width]
			for k, v := range in {
				out[k] += w * v
			}
		}
		if combiner == "SUM" {
			return nil
		}
		for row, n := range norm {
			if n == 0 {
				continue
			}
			if combiner == "SQRTN" {
				n = float32(math.Sqrt(float64(n)))
			}
			for k := range width {
				y[row*width+k] /= n
			}
		}
		return nil
	}, nil
}

// inferHashtableLookup has the keys to look up, the sorted keys and their values; the second
// output says which were found.
func inferHashtableLookup(c *op.Call) error {
	want, keys, values := c.In[0], c.In[1], c.In[2]
	if want.Rank() != 1 || keys.Rank() != 1 || values.Rank() < 1 || values.Shape[0] != keys.Shape[0] ||
		want.Type != tensor.Int32 || keys.Type != tensor.Int32 {
		return fmt.Errorf("lookup %v %s, keys %v %s, values %s", want.Type, tensor.FormatShape(want.Shape),
			keys.Type, tensor.FormatShape(keys.Shape), tensor.FormatShape(values.Shape))
	}
	c.SetOut(0, values.Type, slices.Concat(want.Shape, values.Shape[1:]))
	c.SetOut(1, tensor.Uint8, like(want.Shape))
	return nil
}

func runHashtableLookup(c *op.Call) error {
	want, keys := tensor.Of[int32](c.In[0]), tensor.Of[int32](c.In[1])
	at, found := make([]int, 1), make([]uint8, len(want))
	run := tensor.Elements(c.In[2].Shape[1:])
	y, zero := layout.Of(c.Out[0]), layout.Of(tensor.New(c.In[2].Type))
	move.Fill(c.Pool, y, zero)
	for i, k := range want {
		row, hit := slices.BinarySearch(keys, k)
		if hit {
			found[i] = 1
			at[0] = row
			b := move.Blocks{Rows: 1, At: at, Len: run}
			b.Gather(c.Pool, y.From(i*run), layout.Of(c.In[2]))
		}
	}
	if c.Wants(1) {
		copy(tensor.Of[uint8](c.Out[1]), found)
	}
	return nil
}
