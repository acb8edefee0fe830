// Package operators gathers every operator that the engine has.
package operators

import (
	litearray "github.com/opmeter/opmeter/internal/liteop/array"
	litecontrol "github.com/opmeter/opmeter/internal/liteop/control"
	litewise "github.com/opmeter/opmeter/internal/liteop/elementwise"
	litenn "github.com/opmeter/opmeter/internal/liteop/nn"
	onnxarray "github.com/opmeter/opmeter/internal/onnxop/array"
	onnxcontrol "github.com/opmeter/opmeter/internal/onnxop/control"
	onnximage "github.com/opmeter/opmeter/internal/onnxop/image"
	onnxindex "github.com/opmeter/opmeter/internal/onnxop/index"
	onnxmath "github.com/opmeter/opmeter/internal/onnxop/math"
	onnxnn "github.com/opmeter/opmeter/internal/onnxop/nn"
	onnxrandom "github.com/opmeter/opmeter/internal/onnxop/random"
	onnxsignal "github.com/opmeter/opmeter/internal/onnxop/signal"
	onnxtext "github.com/opmeter/opmeter/internal/onnxop/text"
	onnxtraining "github.com/opmeter/opmeter/internal/onnxop/training"
	"github.com/opmeter/opmeter/internal/op"
)

// Registry returns all operators of all formats.
func Registry() *op.Registry {
	return op.NewRegistry(litenn.Defs(), litearray.Defs(), litewise.Defs(), litecontrol.Defs(), onnxmath.Defs(), onnxnn.Defs(), onnxarray.Defs(),
		onnxindex.Defs(), onnxcontrol.Defs(), onnxtext.Defs(), onnxrandom.Defs(), onnxsignal.Defs(), onnxtraining.Defs(), onnximage.Defs())
}
