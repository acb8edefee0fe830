package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

func gatherDefs() []op.Def {
	return []op.Def{
		lite("GATHER", inferGather, prepareGather),
		lite("GATHER_ND", inferGatherND, prepareGatherND),
	}
}

// gatherAxes resolves the options: axis of the parameters, leading batch axes.
func gatherAxes(c *op.Call) (axis, batch int, err error) {
	x, idx := c.In[0], c.In[1]
	if axis, err = op.Axis(c.Node.Attrs.Int("axis", 0), x.Rank()); err != nil {
		return 0, 0, err
	}
	if batch = c.Node.Attrs.Int("batch_dims", 0); batch < 0 {
		batch += idx.Rank()
	}
	if batch < 0 || batch > axis || batch > idx.Rank() || !slices.Equal(x.Shape[:batch], idx.Shape[:batch]) {
		return 0, 0, fmt.Errorf("%d batch axes of shapes %s and %s, axis %d", batch, tensor.FormatShape(x.Shape), tensor.FormatShape(idx.Shape), axis)
	}
	return axis, batch, nil
}

func inferGather(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	axis, batch, err := gatherAxes(c)
	if err != nil {
		return err
	}
	x := c.In[0].Shape
	c.SetOut(0, c.In[0].Type, slices.Concat(x[:axis], c.In[1].Shape[batch:], x[axis+1:]))
	return nil
}

func prepareGather(c *op.Call) (op.Run, error) {
	axis, batch, err := gatherAxes(c)
	if err != nil {
		return nil, err
	}
	return layout.Gather(c.In[0].Shape, axis, batch, false)
}

func inferGatherND(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	g, err := layout.NewTuples(c.In[0].Shape, c.In[1].Shape, 0, false)
	if err != nil {
		return err
	}
	idx := c.In[1].Shape
	c.SetOut(0, c.In[0].Type, slices.Concat(idx[:len(idx)-1], c.In[0].Shape[g.K:]))
	return nil
}

func prepareGatherND(c *op.Call) (op.Run, error) {
	g, err := layout.NewTuples(c.In[0].Shape, c.In[1].Shape, 0, false)
	if err != nil {
		return nil, err
	}
	return g.GatherND, nil
}

// flatIndex turns coordinates of the leading axes into a row number.
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
