package layout

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Geometry is the result of shape inference for a node: the shape of output 0, which has the type
// of input 0, and the function that prepares its computation.
type Geometry struct {
	Shape []int
	Run   func(c *op.Call) (op.Run, error)
}

// None tells [PrepareOnce] and [Def] that the copy does not depend on the elements of any input.
const None = -1

// Def defines an operator whose shape and copy both follow from of, which reads its parameters.
// needs is the number of required inputs. params are the inputs whose elements are parameters, as
// for [PrepareOnce].
func Def(domain, name string, needs int, of func(c *op.Call) (Geometry, error), params ...int) op.Def {
	return op.Def{
		Domain: domain, Name: name,
		Infer: op.Needs(needs, func(c *op.Call) error {
			g, err := of(c)
			if err != nil {
				return err
			}
			c.SetOut(0, c.In[0].Type, g.Shape)
			return nil
		}),
		Prepare: WithUnpacked(PrepareOnce(func(c *op.Call) (op.Run, error) {
			g, err := of(c)
			if err != nil {
				return nil, err
			}
			return g.Run(c)
		}, params...)),
	}
}

// SameAsInput gives output 0 the type and shape of input 0.
func SameAsInput(c *op.Call) error {
	c.SetOut(0, c.In[0].Type, slices.Clone(c.In[0].Shape))
	return nil
}
