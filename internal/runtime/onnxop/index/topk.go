package index

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func topKDefs() []op.Def {
	return op.Versions(op.Def{Name: "TopK", Infer: op.Needs(1, inferTopK), Prepare: prepareTopK}, 1, 10, 11, 24)
}

func inferTopK(c *op.Call) error {
	x := c.In[0]
	if !layout.Sortable(x.Type) {
		return op.Unsupported("TopK of %v", x.Type)
	}
	if x.Rank() == 0 {
		return fmt.Errorf("input has rank 0")
	}
	a, err := axisOf(c, -1)
	if err != nil {
		return err
	}
	k := c.Node.Attrs.Int("k", -1)
	if c.Node.Version >= 10 {
		if err := c.NeedInputs(2); err != nil {
			return err
		}
		if k, err = layout.Scalar(c.In[1]); err != nil {
			return err
		}
	}
	if k < 0 || k > x.Shape[a] {
		return fmt.Errorf("k is %d of %d elements", k, x.Shape[a])
	}
	out := slices.Clone(x.Shape)
	out[a] = k
	c.SetOut(0, x.Type, out)
	c.SetOut(1, tensor.Int64, slices.Clone(out))
	return nil
}

func prepareTopK(c *op.Call) (op.Run, error) {
	a := op.Must(axisOf(c, -1))
	return layout.TopK(c.In[0].Shape, a, c.Node.Attrs.Bool("largest", true))
}
