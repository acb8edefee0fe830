package norm

import (
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.Fusing(elem.RealDef("BatchNormalization", op.Needs(5, inferBatchNormalization), prepareBatchNormalization[float32], prepareBatchNormalization[float64])),
		elem.Fusing(elem.RealDef("InstanceNormalization", inferInstanceNormalization, prepareInstanceNormalization[float32], prepareInstanceNormalization[float64])),
		elem.Fusing(elem.RealDef("GroupNormalization", inferGroupNormalization, prepareGroupNormalization[float32], prepareGroupNormalization[float64])),
		elem.RealDef("LayerNormalization", op.Needs(2, InferLayerNormalization), prepareLayerNormalization[float32], prepareLayerNormalization[float64]),
		elem.RealDef("RMSNormalization", op.Needs(2, InferLayerNormalization), PrepareRMSNormalization[float32], PrepareRMSNormalization[float64]),
		elem.RealDef("SimplifiedLayerNormalization", op.Needs(2, InferLayerNormalization), PrepareRMSNormalization[float32], PrepareRMSNormalization[float64]),
		elem.RealDef("LpNormalization", elem.Same, prepareLpNormalization[float32], prepareLpNormalization[float64]),
		elem.RealDef("LRN", elem.Same, prepareLRN[float32], prepareLRN[float64]),
		elem.RealDef("MeanVarianceNormalization", elem.Same, prepareMVN[float32], prepareMVN[float64]),
	}
}
