package index

import (
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/order"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func uniqueDefs() []op.Def {
	return op.Versions(op.Def{Name: "Unique", Infer: op.Needs(1, inferUnique), Prepare: op.Simple(runUnique)}, 11, 28)
}

// inferUnique never knows the count: finding it is the whole work.
func inferUnique(c *op.Call) error {
	if c.Node.Attrs.Has("axis") {
		if _, err := axisOf(c, 0); err != nil {
			return err
		}
	}
	if !layout.Sortable(c.In[0].Type) {
		return op.Unsupported("Unique of %v", c.In[0].Type)
	}
	return op.ErrDynamic
}

func runUnique(c *op.Call) error {
	x := c.In[0]
	lines, shape, axis := order.Lines{Outer: 1, N: x.Len(), Inner: 1}, []int{0}, 0
	if c.Node.Attrs.Has("axis") {
		var err error
		if axis, err = axisOf(c, 0); err != nil {
			return err
		}
		lines, shape = layout.LinesOf(x.Shape, axis), slices.Clone(x.Shape)
	}
	keys, err := layout.Keys(nil, x)
	if err != nil {
		return err
	}
	g := lines.Unique(keys, c.Node.Attrs.Bool("sorted", true))
	if c.Wants(0) {
		shape[axis] = len(g.First)
		y, err := c.Make(0, x.Type, shape)
		if err != nil {
			return err
		}
		b := move.Blocks{Rows: lines.Outer, SrcRow: lines.N * lines.Inner, At: g.First, Len: lines.Inner}
		b.Gather(c.Pool, layout.Of(y), layout.Of(x))
	}
	for i, v := range [][]int{g.First, g.Of, g.Count} {
		if !c.Wants(i + 1) {
			continue
		}
		y, err := c.Make(i+1, tensor.Int64, []int{len(v)})
		if err != nil {
			return err
		}
		if err := layout.PutInts(y, v); err != nil {
			return err
		}
	}
	return nil
}
