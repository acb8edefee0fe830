package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func gatherDefs() []op.Def {
	return []op.Def{
		moved("GATHER", 2, gather, layout.None),
		moved("GATHER_ND", 2, gatherND, layout.None),
	}
}

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
