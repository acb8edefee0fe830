package contrib

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/onnxop/attention"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/conv"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/loss"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/norm"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/pool"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/recurrent"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/resize"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// allDefs are the operators of the packages that share these tests.
func allDefs() []op.Def {
	return slices.Concat(matmul.Defs(), conv.Defs(), pool.Defs(), norm.Defs(), recurrent.Defs(), attention.Defs(), resize.Defs(), loss.Defs(), Defs())
}
