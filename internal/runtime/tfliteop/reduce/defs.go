// Package reduce implements TFLite's reductions, cumulative sums and normalisations along axes, and
// the lookup of embeddings.
package reduce

import (
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	ordered, truth := []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, []tensor.Type{tensor.Bool}
	reduction := func(name string, types []tensor.Type, prepare func(c *op.Call, r *reduction) (op.Run, error)) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: types}, shapeReduce, inferReduce, prepare)
	}
	return layer.InTFLite([]op.Def{
		reduction("MEAN", layer.Numbers, prepareSum(true)),
		reduction("SUM", layer.Numbers, prepareSum(false)),
		reduction("REDUCE_MAX", layer.Numbers, prepareExtreme(false)),
		reduction("REDUCE_MIN", layer.Numbers, prepareExtreme(true)),
		reduction("REDUCE_PROD", ordered, prepareProd),
		reduction("REDUCE_ANY", truth, prepareLogic(reduce.Max[uint8](0))),
		reduction("REDUCE_ALL", truth, prepareLogic(reduce.Min[uint8](1))),
		{Name: "CUMSUM", Types: ordered, Infer: inferCumsum, Prepare: prepareCumsum},
		{Name: "L2_NORMALIZATION", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareL2Norm, Fuses: true},
		{Name: "LOCAL_RESPONSE_NORMALIZATION", Types: layer.FloatOnly, Infer: layer.InferSame, Prepare: prepareLRN},
		{Name: "EMBEDDING_LOOKUP", Infer: inferEmbedding, Prepare: prepareEmbedding},
	})
}
