package conv

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.Fusing(op.Def{Name: "Conv", Since: 1, Types: elem.Floats, Infer: op.Needs(2, InferConv), Prepare: prepareConv}),
		elem.Fusing(elem.RealDef("ConvTranspose", op.Needs(2, op.Infer(newTransposed)), prepareConvTranspose[float32], prepareConvTranspose[float64])),
		elem.RealDef("DeformConv", op.Needs(3, inferDeformConv), prepareDeformConv[float32], prepareDeformConv[float64]),
		{Name: "ConvInteger", Since: 10, Types: elem.Bytes, Infer: op.Needs(2, inferConvInteger), Prepare: prepareConvInteger},
		{Name: "QLinearConv", Since: 10, Fuses: true, Types: elem.Bytes, Infer: op.Needs(8, InferQLinearConv), Prepare: PrepareQLinearConv, NHWC: lastQLinearConv},
		{Domain: graph.Own, Name: "QLinearConvTranspose", Since: 1, Fuses: true, Types: elem.Bytes, Infer: op.Needs(8, op.Infer(newCodesTransposed)), Prepare: prepareCodesTransposed},
	}
}
