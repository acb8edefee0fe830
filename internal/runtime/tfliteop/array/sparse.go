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

func sparseDefs() []op.Def {
	return []op.Def{
		lite("EMBEDDING_LOOKUP_SPARSE", 5, inferEmbeddingSparse, prepareEmbeddingSparse),
		lite("HASHTABLE_LOOKUP", 3, inferHashtableLookup, op.Simple(runHashtableLookup)),
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
