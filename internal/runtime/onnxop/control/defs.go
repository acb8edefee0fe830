package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(flowDefs(), sequenceDefs(), splitDefs(), optionalDefs())
}

// body finds the nested graph of an attribute and its runner.
func body(c *op.Call, attr string) (op.Body, *graph.Graph, error) {
	g, err := nested(c, attr)
	if err != nil {
		return nil, nil, err
	}
	i, _ := c.Node.Attrs.Graph(attr)
	b, err := c.Env.Body(i)
	return b, g, err
}

func nested(c *op.Call, attr string) (*graph.Graph, error) {
	i, ok := c.Node.Attrs.Graph(attr)
	if !ok || i < 0 || i >= len(c.Model.Graphs) {
		return nil, fmt.Errorf("attribute %s is not a graph", attr)
	}
	return c.Model.Graphs[i], nil
}

// truth reads a condition.
func truth(x *tensor.Tensor) (bool, error) {
	if x == nil {
		return false, errors.New("condition was not computed")
	}
	if x.Type != tensor.Bool || x.Len() != 1 || len(x.Data) != 1 {
		return false, fmt.Errorf("condition is %v with %d elements, not one bool", x.Type, x.Len())
	}
	return x.Data[0] != 0, nil
}

// give assigns a result that no one else writes to output i, if it is requested.
func give(c *op.Call, i int, x *tensor.Tensor) error {
	if !c.Wants(i) {
		return nil
	}
	if x == nil {
		return fmt.Errorf("output %d was not computed", i)
	}
	*c.Out[i] = *x
	return nil
}

// own copies a tensor so that it outlives its memory. Containers are copied without their
// elements.
func own(x *tensor.Tensor) *tensor.Tensor {
	if x == nil {
		return nil
	}
	if x.Type.IsContainer() {
		y := *x
		y.Elems = slices.Clone(x.Elems)
		return &y
	}
	return x.Clone()
}
