package contrib

import (
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/attention"
	"github.com/opmeter/opmeter/internal/onnxop/conv"
	"github.com/opmeter/opmeter/internal/onnxop/loss"
	"github.com/opmeter/opmeter/internal/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/onnxop/norm"
	"github.com/opmeter/opmeter/internal/onnxop/pool"
	"github.com/opmeter/opmeter/internal/onnxop/recurrent"
	"github.com/opmeter/opmeter/internal/onnxop/resize"
	"github.com/opmeter/opmeter/internal/op"
)

// allDefs are the operators of the fields that share these tests.
func allDefs() []op.Def {
	return slices.Concat(matmul.Defs(), conv.Defs(), pool.Defs(), norm.Defs(), recurrent.Defs(), attention.Defs(), resize.Defs(), loss.Defs(), Defs())
}
