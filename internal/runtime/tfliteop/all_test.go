package tfliteop

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/activation"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/arith"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/conv"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/pool"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/quant"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recurrent"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/reduce"
)

func allDefs() []op.Def {
	return slices.Concat(conv.Defs(), matmul.Defs(), pool.Defs(), activation.Defs(), reduce.Defs(), recurrent.Defs(), arith.Defs(), quant.Defs())
}
