// Package activation implements TFLite's activations, softmax and mathematical functions of one
// tensor, for floats and quantised values.
package activation

import (
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	inf := float32(math.Inf(1))
	var defs []op.Def
	add := func(name string, types []tensor.Type, prepare func(c *op.Call) (op.Run, error)) {
		defs = append(defs, op.Def{Name: name, Types: types, Infer: layer.InferSame, Prepare: prepare, InPlace: true})
	}
	add("LOGISTIC", layer.ConvTypes, logisticOp.prepare)
	add("TANH", layer.ConvTypes, tanhOp.prepare)
	add("RELU", layer.ConvTypes, prepareClamp(0, inf))
	add("RELU6", layer.ConvTypes, prepareClamp(0, 6))
	add("RELU_N1_TO_1", layer.ConvTypes, prepareClamp(-1, 1))
	add("RELU_0_TO_1", layer.ConvTypes, prepareClamp(0, 1))
	add("LEAKY_RELU", layer.ConvTypes, prepareLeaky)
	add("GELU", layer.ConvTypes, prepareGelu)
	add("HARD_SWISH", layer.ByteTypes, prepareHardSwish)
	for _, name := range slices.Sorted(maps.Keys(unaries)) {
		add(name, layer.ConvTypes, prepareUnary(name))
	}
	return layer.InTFLite(append(defs,
		op.Def{Name: "SOFTMAX", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareSoftmax},
		op.Def{Name: "LOG_SOFTMAX", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareLogSoftmax},
		op.Def{Name: "PRELU", Types: layer.ByteTypes, Infer: inferPrelu, Prepare: preparePrelu}))
}
