// Package operators gathers every operator that the engine has.
package operators

import (
	litearray "github.com/opmeter/opmeter/internal/liteop/array"
	litecontrol "github.com/opmeter/opmeter/internal/liteop/control"
	litewise "github.com/opmeter/opmeter/internal/liteop/elementwise"
	litenn "github.com/opmeter/opmeter/internal/liteop/nn"
	litesignal "github.com/opmeter/opmeter/internal/liteop/signal"
	litestablehlo "github.com/opmeter/opmeter/internal/liteop/stablehlo"
	litevision "github.com/opmeter/opmeter/internal/liteop/vision"
	onnxarray "github.com/opmeter/opmeter/internal/onnxop/array"
	onnxcontrol "github.com/opmeter/opmeter/internal/onnxop/control"
	onnxwise "github.com/opmeter/opmeter/internal/onnxop/elementwise"
	onnximage "github.com/opmeter/opmeter/internal/onnxop/image"
	onnxindex "github.com/opmeter/opmeter/internal/onnxop/index"
	onnxml "github.com/opmeter/opmeter/internal/onnxop/ml"
	onnxnn "github.com/opmeter/opmeter/internal/onnxop/nn"
	onnxquant "github.com/opmeter/opmeter/internal/onnxop/quant"
	onnxrandom "github.com/opmeter/opmeter/internal/onnxop/random"
	onnxreduce "github.com/opmeter/opmeter/internal/onnxop/reduce"
	onnxsignal "github.com/opmeter/opmeter/internal/onnxop/signal"
	onnxtext "github.com/opmeter/opmeter/internal/onnxop/text"
	onnxtraining "github.com/opmeter/opmeter/internal/onnxop/training"
	"github.com/opmeter/opmeter/internal/op"
)

// Registry returns all operators of all formats.
func Registry() *op.Registry {
	return op.NewRegistry(
		litearray.Defs(), litecontrol.Defs(), litenn.Defs(), litesignal.Defs(), litestablehlo.Defs(), litevision.Defs(), litewise.Defs(),
		onnxarray.Defs(), onnxcontrol.Defs(), onnximage.Defs(), onnxindex.Defs(), onnxwise.Defs(), onnxquant.Defs(), onnxreduce.Defs(), onnxml.Defs(), onnxnn.Defs(),
		onnxrandom.Defs(), onnxsignal.Defs(), onnxtext.Defs(), onnxtraining.Defs(),
	)
}
