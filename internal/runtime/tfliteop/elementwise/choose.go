package elementwise

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// conditionShape is the condition's shape as it broadcasts: for SELECT a vector
// chooses whole rows of the first axis.
func conditionShape(c *op.Call) []int {
	s, x := c.In[0].Shape, c.In[1].Shape
	if c.Node.Op == "SELECT" && len(s) == 1 && len(x) > 1 && s[0] == x[0] {
		rows := slices.Repeat([]int{1}, len(x))
		rows[0] = s[0]
		return rows
	}
	return s
}

func inferSelect(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	cond, x, y := c.In[0], c.In[1], c.In[2]
	if cond.Type != tensor.Bool || x.Type != y.Type {
		return fmt.Errorf("condition of type %v, choices of types %v and %v", cond.Type, x.Type, y.Type)
	}
	shape, err := tensor.Broadcast(conditionShape(c), x.Shape, y.Shape)
	if err != nil {
		return err
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func prepareSelect(c *op.Call) (op.Run, error) {
	rows, err := broadcast.New(c.Out[0].Shape, conditionShape(c), c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return nil, err
	}
	return layout.Select(rows, element.Grain), nil
}
