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
	view := func(name string, needs int, infer func(c *op.Call) error) op.Def {
		return op.Def{Domain: graph.TFLite, Name: name, Infer: op.Needs(needs, infer), Prepare: layout.CopyAll, InPlace: true}
	}
	ask := func(name string, infer func(c *op.Call) error, of func(x *tensor.Tensor) []int) op.Def {
		run := func(c *op.Call) error { return layout.PutInts(c.Out[0], of(c.In[0])) }
		return op.Def{Domain: graph.TFLite, Name: name, Infer: op.Needs(1, infer), Prepare: op.Simple(run), ShapeOnly: true}
	}
	defs := []op.Def{
		view("RESHAPE", 1, inferReshape),
		view("SQUEEZE", 1, inferSqueeze),
		view("EXPAND_DIMS", 2, inferExpandDims),
		view("BITCAST", 1, inferBitcast),
		view("DENSIFY", 1, layout.SameAsInput),
		ask("SHAPE", inferShape, func(x *tensor.Tensor) []int { return x.Shape }),
		ask("RANK", inferRank, func(x *tensor.Tensor) []int { return []int{x.Rank()} }),
		moved("CONCATENATION", 1, concat, layout.None),
		moved("PACK", 1, pack, layout.None),
		lite("UNPACK", 1, inferUnpack, prepareUnpack),
		lite("SPLIT", 2, inferSplit, prepareSplit(1, 0, 0)),
		lite("SPLIT_V", 3, inferSplitV, prepareSplit(0, 2, 1, 2)),
		moved("SLICE", 3, slice),
		moved("STRIDED_SLICE", 4, stridedSlice),
		lite("DYNAMIC_UPDATE_SLICE", 3, layout.SameAsInput, prepareUpdateSlice),
		moved("REVERSE_V2", 2, byInts(reverse)),
		lite("REVERSE_SEQUENCE", 2, layout.SameAsInput, prepareReverseSequence),
		moved("GATHER", 2, gather, layout.None),
		moved("GATHER_ND", 2, gatherND, layout.None),
		moved("PAD", 2, byInts(pad), 1),
		moved("PADV2", 2, byInts(pad), 1),
		moved("MIRROR_PAD", 2, byInts(pad), 1),
		moved("DILATE", 3, byInts(dilate), 1),
		moved("TRANSPOSE", 2, byShape(layout.Transpose)),
		moved("TILE", 2, byShape(layout.Tile)),
		moved("BROADCAST_TO", 2, byShape(layout.Expand)),
		lite("BROADCAST_ARGS", 2, inferBroadcastArgs, op.Simple(runBroadcastArgs)),
		moved("SPACE_TO_DEPTH", 1, spaceToDepth),
		moved("DEPTH_TO_SPACE", 1, depthToSpace),
		moved("SPACE_TO_BATCH_ND", 3, spaceToBatch),
		moved("BATCH_TO_SPACE_ND", 3, batchToSpace),
		lite("ARG_MAX", 2, inferArg, layout.PrepareOnce(prepareArg(false), 1)),
		lite("ARG_MIN", 2, inferArg, layout.PrepareOnce(prepareArg(true), 1)),
		lite("TOPK_V2", 2, withScalar(1, inferTopK), prepareTopK),
		lite("UNIQUE", 1, inferUnique, op.Simple(runUnique)),
		lite("WHERE", 1, inferWhere, op.Simple(runWhere)),
		lite("BUCKETIZE", 1, func(c *op.Call) error { c.SetOut(0, tensor.Int32, like(c.In[0].Shape)); return nil }, prepareBucketize),
		lite("FILL", 2, withInts(0, inferFill), op.Simple(runFill)),
		lite("ZEROS_LIKE", 1, layout.SameAsInput, op.Simple(runZeros)),
		lite("RANGE", 3, inferRange, prepareRange),
		lite("ONE_HOT", 4, withScalar(1, inferOneHot), prepareOneHot),
		lite("MATRIX_DIAG", 1, inferDiag, prepareDiag),
		lite("MATRIX_SET_DIAG", 2, inferSetDiag, prepareDiag),
		lite("EMBEDDING_LOOKUP_SPARSE", 5, inferEmbeddingSparse, prepareEmbeddingSparse),
		lite("HASHTABLE_LOOKUP", 3, inferHashtableLookup, op.Simple(runHashtableLookup)),
		lite("SKIP_GRAM", 1, inferSkipGram, prepareSkipGram),
		lite("SCATTER_ND", 3, withInts(2, inferScatterND), prepareScatterND),
		lite("SPARSE_TO_DENSE", 4, withInts(1, inferSparseToDense), op.Simple(runSparseToDense)),
		lite("SEGMENT_SUM", 2, withInts(1, inferSegmentSum), prepareSegments("add")),
	}
	for _, r := range [][2]string{{"SUM", "add"}, {"PROD", "mul"}, {"MAX", "max"}, {"MIN", "min"}} {
		defs = append(defs, lite("UNSORTED_SEGMENT_"+r[0], 3, withScalar(2, inferUnsortedSegment), prepareSegments(r[1])))
	}
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
	return op.Def{Domain: graph.TFLite, Name: name, Infer: op.Needs(needs, infer), Prepare: layout.WithUnpacked(p)}
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
