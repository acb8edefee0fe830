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
	onnxmath "github.com/opmeter/opmeter/internal/onnxop/math"
	onnxnn "github.com/opmeter/opmeter/internal/onnxop/nn"
	"github.com/opmeter/opmeter/internal/op"
)

// Registry returns all operators of all formats.
func Registry() *op.Registry {
	return op.NewRegistry(litenn.Defs(), litearray.Defs(), litewise.Defs(), litecontrol.Defs(), litesignal.Defs(), litestablehlo.Defs(), litevision.Defs(), onnxmath.Defs(), onnxnn.Defs(), onnxarray.Defs())
}
