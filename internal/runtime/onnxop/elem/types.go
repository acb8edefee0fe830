package elem

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// BadType says that an operator does not take the type of input i.
func BadType(c *op.Call, i int) error {
	return op.Unsupported("%s of %v", c.Node.Op, c.In[i].Type)
}

// Same is the Infer of operators whose outputs look like input 0.
func Same(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	return c.Result(c.In[0].Type, c.In[0].Shape)
}

// SameTruth is sameAs with a truth value for each element.
func SameTruth(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	return c.Result(tensor.Bool, c.In[0].Shape)
}

// InferBroadcast gives output 0 type t and the shape to which the given inputs broadcast.
func InferBroadcast(c *op.Call, t tensor.Type, inputs ...int) error {
	shapes := make([][]int, len(inputs))
	for i, k := range inputs {
		shapes[i] = c.In[k].Shape
	}
	out, err := tensor.Broadcast(shapes...)
	if err != nil {
		return err
	}
	return c.Result(t, out)
}

// SameTypes fails unless the present inputs from first on agree in type.
func SameTypes(c *op.Call, first int) error {
	for i := first + 1; i < len(c.In); i++ {
		if c.In[i] != nil && c.In[first] != nil && c.In[i].Type != c.In[first].Type {
			return fmt.Errorf("input %d is %v, input %d is %v", first, c.In[first].Type, i, c.In[i].Type)
		}
	}
	return nil
}

// AllLast is [op.Def.NHWC] of operators that do not depend on the positions of elements.
func AllLast(*op.Call) op.NHWCSupport { return op.NHWCAll }
