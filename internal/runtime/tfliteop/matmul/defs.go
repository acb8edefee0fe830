// Package matmul implements TFLite's fully connected layers and batched matrix multiplications.
package matmul

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		layer.Shaped(op.Def{Name: "FULLY_CONNECTED", Types: layer.ConvTypes, Fuses: true}, shapeFC, inferFC, prepareFC),
		{Name: "BATCH_MATMUL", Types: []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}, Infer: inferMatmul, Prepare: prepareMatmul},
	}
	return layer.InTFLite(defs)
}
