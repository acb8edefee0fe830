package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/liteop/layout"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func scatterDefs() []op.Def {
	return []op.Def{
		lite("SCATTER_ND", inferScatterND, prepareScatterND),
		lite("SPARSE_TO_DENSE", inferSparseToDense, prepareSparseToDense),
		lite("SEGMENT_SUM", inferSegmentSum, prepareSegments),
		lite("UNSORTED_SEGMENT_SUM", inferUnsortedSegment, prepareSegments),
		lite("UNSORTED_SEGMENT_PROD", inferUnsortedSegment, prepareSegments),
		lite("UNSORTED_SEGMENT_MAX", inferUnsortedSegment, prepareSegments),
		lite("UNSORTED_SEGMENT_MIN", inferUnsortedSegment, prepareSegments),
	}
}

// inferScatterND has indices, updates and the shape.
func inferScatterND(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
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

// prepareScatterND adds the updates to zeros; entries named twice add up.
func prepareScatterND(c *op.Call) (op.Run, error) {
	fold, err := folderFor(c.In[1].Type, foldAdd)
	if err != nil {
		return nil, err
	}
	idx := c.In[0].Shape
	depth := idx[len(idx)-1]
	return func(c *op.Call) error {
		at, err := op.Ints(c.In[0])
		if err != nil {
			return err
		}
		out := c.Out[0]
		run := tensor.Elements(out.Shape[depth:])
		clear(out.Data)
		for r := range tensor.Elements(idx[:len(idx)-1]) {
			row, err := flatIndex(at[r*depth:][:depth], out.Shape)
			if err != nil {
				return err
			}
			fold.rows(out, c.In[1], row*run, r*run, run)
		}
		return nil
	}, nil
}

// inferSparseToDense has indices, shape, values and the default.
func inferSparseToDense(c *op.Call) error {
	if err := c.NeedInputs(4); err != nil {
		return err
	}
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

func prepareSparseToDense(c *op.Call) (op.Run, error) {
	store, err := storeFor(c.In[2].Type)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
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
		store.Fill(c.Pool, out, c.In[3], 0, out.Len())
		for i := range n {
			to, err := flatIndex(at[i*depth:][:depth], out.Shape)
			if err != nil {
				return err
			}
			from := i
			if values.Rank() == 0 {
				from = 0
			}
			store.Copy(out, values, to, from, 1)
		}
		return nil
	}, nil
}

// inferSegmentSum has as many rows as the last identifier says.
func inferSegmentSum(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
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
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	n, err := scalarOf(c.In[2])
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

func prepareSegments(c *op.Call) (op.Run, error) {
	kind := map[string]foldKind{"UNSORTED_SEGMENT_PROD": foldMul, "UNSORTED_SEGMENT_MAX": foldMax, "UNSORTED_SEGMENT_MIN": foldMin}[c.Node.Op]
	fold, err := folderFor(c.In[0].Type, kind)
	if err != nil {
		return nil, err
	}
	run := tensor.Elements(c.In[0].Shape[c.In[1].Rank():])
	return func(c *op.Call) error {
		ids, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		out := c.Out[0]
		store := layout.StoreFor(out.Type)
		store.Fill(c.Pool, out, fold.neutral(), 0, out.Len())
		for i, id := range ids {
			if id < 0 && c.Node.Op != "SEGMENT_SUM" {
				continue // dropped
			}
			if id < 0 || id >= out.Shape[0] {
				return fmt.Errorf("segment identifier %d is outside 0 to %d", id, out.Shape[0]-1)
			}
			fold.rows(out, c.In[0], id*run, i*run, run)
		}
		return nil
	}, nil
}
