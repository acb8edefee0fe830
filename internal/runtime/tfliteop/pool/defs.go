package pool

import (
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "AVERAGE_POOL_2D", Types: layer.ConvTypes, Infer: inferPool, Prepare: preparePool(averagePool), Fuses: true},
		{Name: "MAX_POOL_2D", Types: layer.ConvTypes, Infer: inferPool, Prepare: preparePool(maxPool), Fuses: true},
		{Name: "L2_POOL_2D", Types: layer.FloatOnly, Infer: inferPool, Prepare: preparePool(l2Pool), Fuses: true},
		{Name: "RESIZE_BILINEAR", Types: layer.ConvTypes, Infer: inferResize, Prepare: prepareBilinear},
		{Name: "RESIZE_NEAREST_NEIGHBOR", Infer: inferResize, Prepare: prepareNearest},
	}
	return layer.InTFLite(defs)
}
