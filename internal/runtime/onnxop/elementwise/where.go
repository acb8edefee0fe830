package elementwise

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func inferWhere(c *op.Call) error {
	if err := elem.SameTypes(c, 1); err != nil {
		return err
	}
	if c.In[0].Type != tensor.Bool {
		return c.Errorf("condition is %v", c.In[0].Type)
	}
	return elem.InferBroadcast(c, c.In[1].Type, 0, 1, 2)
}

// prepareWhere copies elements by their width: their type does not matter.
func prepareWhere(c *op.Call) (op.Run, error) {
	plan, err := NewBroadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return nil, err
	}
	return layout.Select(plan, element.Grain), nil
}
