package layout

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Geometry is what a node's shapes and parameters decide: the shape of output 0,
// which has the type of input 0, and what fills it.
type Geometry struct {
	Shape []int
	Run   func(c *op.Call) (op.Run, error)
}

// None tells [Planned] and [Def] that no input's elements decide over the copy.
const None = -1

// Def defines an operator whose shape and copy both follow from one reading of
// its parameters. needs is the number of inputs that must be there; params are
// the inputs whose elements are parameters, as for [Planned].
func Def(domain, name string, needs int, of func(c *op.Call) (Geometry, error), params ...int) op.Def {
	return op.Def{
		Domain: domain, Name: name,
		Infer: Needs(needs, func(c *op.Call) error {
			g, err := of(c)
			if err != nil {
				return err
			}
			c.SetOut(0, c.In[0].Type, g.Shape)
			return nil
		}),
		Prepare: Widened(Planned(func(c *op.Call) (op.Run, error) {
			g, err := of(c)
			if err != nil {
				return nil, err
			}
			return g.Run(c)
		}, params...)),
	}
}

// Needs is infer for nodes that have inputs 0 to n-1.
func Needs(n int, infer func(c *op.Call) error) func(c *op.Call) error {
	return func(c *op.Call) error {
		if err := c.NeedInputs(n); err != nil {
			return err
		}
		return infer(c)
	}
}

// Same gives output 0 the type and shape of input 0.
func Same(c *op.Call) error {
	c.SetOut(0, c.In[0].Type, slices.Clone(c.In[0].Shape))
	return nil
}
