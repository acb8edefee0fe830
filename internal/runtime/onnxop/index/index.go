// Package index implements ONNX's operators that select, scatter, sort and count elements: the
// gather and scatter families, TopK, Unique, NonZero, Compress and OneHot.
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

// Defs lists the operators of this package.
func Defs() []op.Def {
	el := op.Def{Infer: op.Needs(3, inferScatterElements), Prepare: layout.WithUnpacked(prepareScatterElements), InPlace: true}
	old := el
	old.Name, el.Name = "Scatter", "ScatterElements"
	return slices.Concat(
		op.Versions(layout.Def("", "Gather", 2, gather, layout.None), 1, 11, 13),
		op.Versions(op.Def{Name: "GatherElements", Infer: op.Needs(2, inferGatherElements), Prepare: layout.WithUnpacked(prepareGatherElements)}, 11, 13),
		op.Versions(layout.Def("", "GatherND", 2, gatherND, layout.None), 11, 12, 13),
		op.Versions(old, 9, 11),
		op.Versions(el, 11, 13, 16, 18),
		op.Versions(op.Def{Name: "ScatterND", Infer: op.Needs(3, inferScatterND), Prepare: layout.WithUnpacked(prepareScatterND), InPlace: true}, 11, 13, 16, 18),
		op.Versions(op.Def{Name: "OneHot", Infer: op.Needs(3, inferOneHot), Prepare: layout.WithUnpacked(prepareOneHot)}, 9, 11, 28),
		op.Versions(op.Def{Name: "NonZero", Infer: op.Needs(1, inferNonZero), Prepare: op.Simple(runNonZero)}, 9, 13),
		op.Versions(op.Def{Name: "Compress", Infer: op.Needs(2, inferCompress), Prepare: layout.WithUnpacked(prepareCompress)}, 9, 11, 28),
		op.Versions(op.Def{Name: "TopK", Infer: op.Needs(1, inferTopK), Prepare: prepareTopK}, 1, 10, 11, 24),
		op.Versions(op.Def{Name: "Unique", Infer: op.Needs(1, inferUnique), Prepare: op.Simple(runUnique)}, 11, 28),
	)
}

// indexType rejects index tensors that are not integers.
func indexType(x *tensor.Tensor) error {
	if !x.Type.IsInteger() || x.Type.Bits() < 8 {
		return op.Unsupported("indices of type %v", x.Type)
	}
	return nil
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

// checkUpdates checks what all scatters share and sets the output.
func checkUpdates(c *op.Call, want []int) error {
	x, u := c.In[0], c.In[2]
	if u.Type != x.Type {
		return fmt.Errorf("updates are %v and data is %v", u.Type, x.Type)
	}
	if !slices.Equal(u.Shape, want) {
		return fmt.Errorf("updates are %s, not %s", tensor.FormatShape(u.Shape), tensor.FormatShape(want))
	}
	if _, err := layout.Updater(x.Type, c.Node.Attrs.Str("reduction", "none")); err != nil {
		return err
	}
	return c.Result(x.Type, slices.Clone(x.Shape))
}

func inferScatterElements(c *op.Call) error {
	if err := sameRank(c); err != nil {
		return err
	}
	return checkUpdates(c, c.In[1].Shape)
}

// scatter runs offsets through the update of the node's reduction. Updates are applied in order,
// so that the last of several for one position wins.
func scatter(c *op.Call, block int, offsets func(c *op.Call) ([]int, error)) (op.Run, error) {
	f, err := layout.Updater(c.In[0].Type, c.Node.Attrs.Str("reduction", "none"))
	if err != nil {
		return nil, err
	}
	offsets = layout.Once(c, 1, offsets)
	return func(c *op.Call) error {
		at, err := offsets(c)
		if err != nil {
			return err
		}
		u := c.In[2]
		if layout.Aliased(c.Out[0], u) {
			u = u.Clone() // data scattered into itself, in place
		}
		layout.Copy(c.Pool, c.Out[0], c.In[0])
		f(c.Out[0], u, at, block)
		return nil
	}, nil
}

func prepareScatterElements(c *op.Call) (op.Run, error) {
	e := op.Must(elementsOf(c))
	return scatter(c, 1, func(c *op.Call) ([]int, error) { return e.offsets(c.Pool, c.In[1]) })
}

func inferScatterND(c *op.Call) error {
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	g, err := layout.NewTuples(c.In[0].Shape, c.In[1].Shape, 0, true)
	if err != nil {
		return err
	}
	idx := c.In[1].Shape
	return checkUpdates(c, slices.Concat(idx[:len(idx)-1], c.In[0].Shape[g.K:]))
}

func prepareScatterND(c *op.Call) (op.Run, error) {
	g, err := layout.NewTuples(c.In[0].Shape, c.In[1].Shape, 0, true)
	if err != nil {
		return nil, err
	}
	return scatter(c, g.Block, func(c *op.Call) ([]int, error) { return g.Offsets(c.In[1]) })
}
