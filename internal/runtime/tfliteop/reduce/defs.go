package reduce

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "MEAN", Types: layer.Numbers, Infer: inferReduce, Prepare: prepareSum(true)},
		{Name: "SUM", Types: layer.Numbers, Infer: inferReduce, Prepare: prepareSum(false)},
		{Name: "REDUCE_MAX", Types: layer.Numbers, Infer: inferReduce, Prepare: prepareExtreme(false)},
		{Name: "REDUCE_MIN", Types: layer.Numbers, Infer: inferReduce, Prepare: prepareExtreme(true)},
		{Name: "REDUCE_PROD", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, Infer: inferReduce, Prepare: prepareProd},
		{Name: "REDUCE_ANY", Types: []tensor.Type{tensor.Bool}, Infer: inferReduce, Prepare: prepareLogic(false)},
		{Name: "REDUCE_ALL", Types: []tensor.Type{tensor.Bool}, Infer: inferReduce, Prepare: prepareLogic(true)},
		{Name: "CUMSUM", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, Infer: inferCumsum, Prepare: prepareCumsum},
		{Name: "L2_NORMALIZATION", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareL2Norm, Fuses: true},
		{Name: "LOCAL_RESPONSE_NORMALIZATION", Types: layer.FloatOnly, Infer: layer.InferSame, Prepare: prepareLRN},
		{Name: "EMBEDDING_LOOKUP", Infer: inferEmbedding, Prepare: prepareEmbedding},
	}
	return layer.InTFLite(defs)
}
