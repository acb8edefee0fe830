package resize

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		{Name: "Resize", Since: 10, Infer: op.Needs(1, inferResize), Prepare: prepareResize},
		{Name: "Upsample", Since: 1, Infer: op.Needs(1, inferResize), Prepare: prepareResize},
		elem.RealDef("GridSample", op.Needs(2, inferGridSample), prepareGridSample[float32], prepareGridSample[float64]),
		elem.RealDef("AffineGrid", op.Needs(2, inferAffineGrid), prepareAffineGrid[float32], prepareAffineGrid[float64]),
		elem.RealDef("RoiAlign", op.Needs(3, inferRoiAlign), prepareRoiAlign32, prepareRoiAlign[float64]),
		elem.RealDef("MaxRoiPool", op.Needs(2, inferMaxRoiPool), prepareMaxRoiPool[float32], prepareMaxRoiPool[float64]),
		{Name: "NonMaxSuppression", Since: 10, Types: []tensor.Type{tensor.Float32}, Infer: op.Needs(2, inferNMS), Prepare: op.Simple(runNMS)},
	}
}
