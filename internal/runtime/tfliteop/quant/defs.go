package quant

import (
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "QUANTIZE", Infer: layer.InferSame, Prepare: prepareQuantize},
		{Name: "DEQUANTIZE", Infer: inferDequantize, Prepare: prepareDequantize},
		{Name: "FAKE_QUANT", Types: layer.FloatOnly, Infer: layer.InferSame, Prepare: prepareFakeQuant, InPlace: true},
	}
	return layer.InTFLite(defs)
}
