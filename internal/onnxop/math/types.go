package math

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// grain is the least number of elements worth giving to another thread.
const grain = 16 << 10

// prepare is the Prepare function of a variant.
type prepare = func(c *op.Call) (op.Run, error)

func badType(c *op.Call, i int) error {
	return op.Unsupported("%s of %v", c.Node.Op, c.In[i].Type)
}

// sameAs is the Infer of operators whose outputs look like input 0.
func sameAs(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, c.In[0].Shape)
	return nil
}

// sameAsBool is sameAs with a truth value for each element.
func sameAsBool(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Bool, c.In[0].Shape)
	return nil
}

// sameTypes fails unless the present inputs from first on agree in type.
func sameTypes(c *op.Call, first int) error {
	for i := first + 1; i < len(c.In); i++ {
		if c.In[i] != nil && c.In[first] != nil && c.In[i].Type != c.In[first].Type {
			return fmt.Errorf("input %d is %v, input %d is %v", first, c.In[first].Type, i, c.In[i].Type)
		}
	}
	return nil
}
