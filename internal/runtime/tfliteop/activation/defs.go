package activation

import (
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	inf := float32(math.Inf(1))
	defs := []op.Def{
		{Name: "SOFTMAX", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareSoftmax},
		{Name: "LOG_SOFTMAX", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareLogSoftmax},
		{Name: "LOGISTIC", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareLogistic, InPlace: true},
		{Name: "TANH", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareTanh, InPlace: true},
		{Name: "RELU", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareClamp(0, inf), InPlace: true},
		{Name: "RELU6", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareClamp(0, 6), InPlace: true},
		{Name: "RELU_N1_TO_1", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareClamp(-1, 1), InPlace: true},
		{Name: "RELU_0_TO_1", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareClamp(0, 1), InPlace: true},
		{Name: "LEAKY_RELU", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareLeaky, InPlace: true},
		{Name: "PRELU", Types: layer.ByteTypes, Infer: inferPrelu, Prepare: preparePrelu},
		{Name: "GELU", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareGelu, InPlace: true},
		{Name: "HARD_SWISH", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareHardSwish, InPlace: true},
	}
	for _, name := range slices.Sorted(maps.Keys(unaries)) {
		defs = append(defs, op.Def{Name: name, Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareUnary(name), InPlace: true})
	}
	return layer.InTFLite(defs)
}
