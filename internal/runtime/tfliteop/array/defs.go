// Package array implements TFLite's operators that move, select, count and order elements without
// arithmetic: shapes, slices, joins, gathers, scatters, padding, tiling, space-to-batch, sorting,
// and constants made from parameters. Nearly all of them are one or a few block copies of
// internal/kernel/move.
package array

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := slices.Concat(shapeDefs(), joinDefs(), sliceDefs(), gatherDefs(), scatterDefs(), padDefs(), spaceDefs(), orderDefs(), fillDefs(), diagDefs(), sparseDefs(), textDefs())
	for i := range defs {
		defs[i].Types = calculates[defs[i].Name]
	}
	return defs
}

// calculates lists the element types of the operators that read values; all others move any type.
var calculates = func() map[string][]tensor.Type {
	ordered := []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64}
	summed := append(slices.Clone(ordered), tensor.Float64, tensor.Uint32, tensor.Uint64, tensor.Bool)
	m := map[string][]tensor.Type{
		"ARG_MAX": append(slices.Clone(ordered), tensor.Float64, tensor.Bool), "TOPK_V2": ordered, "UNIQUE": append(slices.Clone(ordered), tensor.Bool),
		"BUCKETIZE": {tensor.Float32, tensor.Float64, tensor.Int32, tensor.Int64}, "RANGE": {tensor.Float32, tensor.Int32, tensor.Int64},
		"WHERE": {tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Float32, tensor.Int32, tensor.Uint32, tensor.Int64}, "SEGMENT_SUM": summed,
		"BROADCAST_ARGS": {tensor.Int32, tensor.Int64}, "SKIP_GRAM": {tensor.String},
	}
	m["ARG_MIN"] = m["ARG_MAX"]
	for _, name := range []string{"SUM", "PROD", "MAX", "MIN"} {
		m["UNSORTED_SEGMENT_"+name] = summed
	}
	return m
}()

// lite makes a definition of TFLite's domain for nodes with at least needs inputs. Packed element
// types are unpacked around the prepared function.
func lite(name string, needs int, infer func(c *op.Call) error, p layout.Prepare) op.Def {
	return op.Def{Domain: graph.TFLite, Name: name, Infer: layout.Needs(needs, infer), Prepare: layout.WithUnpacked(p)}
}

// moved is [layout.Def] in TFLite's domain.
func moved(name string, needs int, of func(c *op.Call) (layout.Geometry, error), params ...int) op.Def {
	return layout.Def(graph.TFLite, name, needs, of, params...)
}

// like returns a copy of shape.
func like(shape []int) []int { return slices.Clone(shape) }

// declared returns the type that the file gives to output i. While planning it is also
// c.Out[i].Type, but no longer when a step is planned again at run time.
func declared(c *op.Call, i int) tensor.Type {
	if i < len(c.Node.Outputs) && c.Node.Outputs[i] >= 0 {
		if t := c.Graph.Values[c.Node.Outputs[i]].Type; t != tensor.Invalid {
			return t
		}
	}
	return c.Out[i].Type
}

// axisOf resolves the axis in input i, a scalar, against a rank.
func axisOf(c *op.Call, i, rank int) (int, error) {
	a, err := layout.Scalar(c.In[i])
	if err != nil {
		return 0, err
	}
	return op.Axis(a, rank)
}

// byInts makes a function of a call of one that needs the list in input 1.
func byInts(of func(c *op.Call, list []int) (layout.Geometry, error)) func(c *op.Call) (layout.Geometry, error) {
	return func(c *op.Call) (layout.Geometry, error) {
		list, err := op.Ints(c.In[1])
		if err != nil {
			return layout.Geometry{}, err
		}
		return of(c, list)
	}
}

// byShape is [byInts] for functions of the shape of input 0 and the list.
func byShape(of func(shape, list []int) (layout.Geometry, error)) func(c *op.Call) (layout.Geometry, error) {
	return byInts(func(c *op.Call, list []int) (layout.Geometry, error) { return of(c.In[0].Shape, list) })
}

// withInts makes an Infer function of one that needs the list in input i.
func withInts(i int, infer func(c *op.Call, list []int) error) func(c *op.Call) error {
	return func(c *op.Call) error {
		list, err := op.Ints(c.In[i])
		if err != nil {
			return err
		}
		return infer(c, list)
	}
}

// withScalar makes an Infer function of one that needs the integer in input i.
func withScalar(i int, infer func(c *op.Call, v int) error) func(c *op.Call) error {
	return func(c *op.Call) error {
		v, err := layout.Scalar(c.In[i])
		if err != nil {
			return err
		}
		return infer(c, v)
	}
}
