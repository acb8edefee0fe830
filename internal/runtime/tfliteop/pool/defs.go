// Package pool implements TFLite's pooling and image resizing.
package pool

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	pool := func(name string, types []tensor.Type, kind kindOfPool) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: types, Fuses: true}, shapePool, inferPool, preparePool(kind))
	}
	return layer.InTFLite([]op.Def{
		pool("AVERAGE_POOL_2D", layer.ConvTypes, averagePool),
		pool("MAX_POOL_2D", layer.ConvTypes, maxPool),
		pool("L2_POOL_2D", layer.FloatOnly, l2Pool),
		layer.Shaped(op.Def{Name: "RESIZE_BILINEAR", Types: layer.ConvTypes}, shapeResize, inferResize, prepareBilinear),
		layer.Shaped(op.Def{Name: "RESIZE_NEAREST_NEIGHBOR"}, shapeResize, inferResize, prepareNearest),
	})
}
