package pool

import (
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.Fusing(elem.RealDef("AveragePool", op.Needs(1, op.Infer(NewPool)), PrepareAveragePool[float32], PrepareAveragePool[float64])),
		{Name: "MaxPool", Since: 1, Types: elem.FloatsAnd(elem.Bytes...), Infer: op.Needs(1, op.Infer(NewPool)), Prepare: prepareMaxPool, NHWC: lastMaxPool},
		elem.RealDef("LpPool", op.Needs(1, op.Infer(NewPool)), prepareLpPool[float32], prepareLpPool[float64]),
		elem.RealDef("MaxUnpool", op.Needs(2, inferMaxUnpool), prepareMaxUnpool[float32], prepareMaxUnpool[float64]),
		elem.Fusing(elem.RealDef("GlobalAveragePool", op.Needs(1, inferGlobalPool), globalPool(globalAverage[float32]), globalPool(globalAverage[float64]))),
		elem.Fusing(elem.RealDef("GlobalMaxPool", op.Needs(1, inferGlobalPool), globalPool(globalMax[float32]), globalPool(globalMax[float64]))),
		elem.RealDef("GlobalLpPool", op.Needs(1, inferGlobalPool), globalPool(globalLp[float32]), globalPool(globalLp[float64])),
	}
}
