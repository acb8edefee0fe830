package index

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func gatherDefs() []op.Def {
	return slices.Concat(
		op.Versions(layout.Def("", "Gather", 2, gather, layout.None), 1, 11, 13),
		op.Versions(op.Def{Name: "GatherElements", Infer: op.Needs(2, inferGatherElements), Prepare: layout.WithUnpacked(prepareGatherElements)}, 11, 13),
		op.Versions(layout.Def("", "GatherND", 2, gatherND, layout.None), 11, 12, 13),
	)
}

// axisOf resolves the axis attribute against input 0.
func axisOf(c *op.Call, def int) (int, error) {
	return op.Axis(c.Node.Attrs.Int("axis", def), c.In[0].Rank())
}

func gather(c *op.Call) (g layout.Geometry, err error) {
	if err := indexType(c.In[1]); err != nil {
		return g, err
	}
	a, err := axisOf(c, 0)
	if err != nil {
		return g, err
	}
	return layout.Gather(c.In[0].Shape, c.In[1].Shape, a, 0, true)
}

func inferGatherElements(c *op.Call) error {
	if err := sameRank(c); err != nil {
		return err
	}
	return c.Result(c.In[0].Type, slices.Clone(c.In[1].Shape))
}

// sameRank checks that indices have the rank of the data and, but for the
// axis, no larger dimensions.
func sameRank(c *op.Call) error {
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	a, err := axisOf(c, 0)
	if err != nil {
		return err
	}
	x, idx := c.In[0].Shape, c.In[1].Shape
	if len(idx) != len(x) {
		return fmt.Errorf("indices have rank %d and data has rank %d", len(idx), len(x))
	}
	for i, d := range idx {
		if i != a && d > x[i] {
			return fmt.Errorf("indices %s do not fit data %s", tensor.FormatShape(idx), tensor.FormatShape(x))
		}
	}
	return nil
}

// elements is the geometry that GatherElements and ScatterElements share: the position in data
// that each index selects.
type elements struct {
	axis    int
	dims    []int // of the indices
	strides []int // of the data
	n       int   // length of the axis
	at      []int
}

func elementsOf(c *op.Call) (*elements, error) {
	a := op.Must(axisOf(c, 0))
	return &elements{axis: a, dims: slices.Clone(c.In[1].Shape), strides: tensor.Strides(c.In[0].Shape), n: c.In[0].Shape[a]}, nil
}

// offsets converts the indices to offsets in the data.
func (e *elements) offsets(pool *workers.Pool, idx *tensor.Tensor) (at []int, err error) {
	if e.at, err = layout.Positions(pool, e.at, idx, e.n, true); err != nil || len(e.at) == 0 {
		return nil, err
	}
	w := e.dims[len(e.dims)-1]
	workers.Do(pool, len(e.at)/w, max(1, 1<<14/w), e, (*elements).rows)
	return e.at, nil
}

// rows converts the indices of rows lo to hi to offsets.
func (e *elements) rows(lo, hi int) {
	last := len(e.dims) - 1
	w, step := e.dims[last], e.strides[e.axis]
	for row := lo; row < hi; row++ {
		base, rest := 0, row
		for i := last - 1; i >= 0; i-- {
			if i != e.axis {
				base += rest % e.dims[i] * e.strides[i]
			}
			rest /= e.dims[i]
		}
		r := e.at[row*w : (row+1)*w]
		if e.axis == last {
			for j := range r {
				r[j] += base
			}
			continue
		}
		for j := range r {
			r[j] = base + r[j]*step + j
		}
	}
}

func prepareGatherElements(c *op.Call) (op.Run, error) {
	e := op.Must(elementsOf(c))
	offsets := layout.Once(c, 1, func(c *op.Call) ([]int, error) { return e.offsets(c.Pool, c.In[1]) })
	b := &move.Blocks{Rows: 1, Len: 1} // made once: a run must not allocate
	return func(c *op.Call) error {
		at, err := offsets(c)
		if err != nil {
			return err
		}
		b.At = at
		b.Gather(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]))
		return nil
	}, nil
}

func gatherND(c *op.Call) (layout.Geometry, error) {
	if err := indexType(c.In[1]); err != nil {
		return layout.Geometry{}, err
	}
	return layout.GatherND(c.In[0].Shape, c.In[1].Shape, c.Node.Attrs.Int("batch_dims", 0), true)
}
