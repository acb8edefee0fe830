package resize

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		{Name: "Resize", Since: 10, Infer: inferResize, Prepare: prepareResize},
		{Name: "Upsample", Since: 1, Infer: inferResize, Prepare: prepareResize},
		elem.RealDef("GridSample", inferGridSample, prepareGridSample[float32], prepareGridSample[float64]),
		elem.RealDef("AffineGrid", inferAffineGrid, prepareAffineGrid[float32], prepareAffineGrid[float64]),
		elem.RealDef("RoiAlign", inferRoiAlign, prepareRoiAlign32, prepareRoiAlign[float64]),
		elem.RealDef("MaxRoiPool", inferMaxRoiPool, prepareMaxRoiPool[float32], prepareMaxRoiPool[float64]),
		{Name: "NonMaxSuppression", Since: 10, Types: []tensor.Type{tensor.Float32}, Infer: inferNMS, Prepare: op.Simple(runNMS)},
	}
}
