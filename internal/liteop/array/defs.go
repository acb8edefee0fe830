package array

import (
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/liteop/layout"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(shapeDefs(), joinDefs(), sliceDefs(), gatherDefs(), scatterDefs(), padDefs(), spaceDefs(), orderDefs(), fillDefs(), diagDefs(), sparseDefs(), textDefs())
}

type prepare = func(c *op.Call) (op.Run, error)

// lite makes a definition of TFLite's domain. Packed element types are widened
// around the prepared function.
func lite(name string, infer func(c *op.Call) error, p prepare) op.Def {
	return op.Def{Domain: graph.TFLite, Name: name, Infer: infer, Variants: op.Plain(layout.Widened(p))}
}

// planned makes the run function once, while preparing, when the inputs whose
// elements decide over it are constants of the model, and anew for each run
// otherwise.
func planned(build prepare, params ...int) prepare {
	return func(c *op.Call) (op.Run, error) {
		for _, i := range params {
			if c.Has(i) && !c.Const(i) {
				return func(c *op.Call) error {
					run, err := build(c)
					if err != nil {
						return err
					}
					return run(c)
				}, nil
			}
		}
		return build(c)
	}
}

// storeFor returns the store of a type or says that it has none.
func storeFor(t tensor.Type) (layout.Store, error) {
	if s := layout.StoreFor(t); s != nil {
		return s, nil
	}
	return nil, op.Unsupported("elements of type %v", t)
}

// like returns a copy of shape.
func like(shape []int) []int { return slices.Clone(shape) }

// outer and inner multiply the dimensions before and after an axis.
func outer(shape []int, axis int) int { return tensor.Elements(shape[:axis]) }
func inner(shape []int, axis int) int { return tensor.Elements(shape[axis+1:]) }

// declared is the type that the file gives to output i. While planning it is
// also c.Out[i].Type, but not any more when a step is planned again at run time.
func declared(c *op.Call, i int) tensor.Type {
	if i < len(c.Node.Outputs) && c.Node.Outputs[i] >= 0 {
		if t := c.Graph.Values[c.Node.Outputs[i]].Type; t != tensor.Invalid {
			return t
		}
	}
	return c.Out[i].Type
}
