package conv

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "CONV_2D", Types: layer.ConvTypes, Infer: inferConv(false), Prepare: prepareConv(false), Fuses: true},
		{Name: "DEPTHWISE_CONV_2D", Types: layer.ConvTypes, Infer: inferConv(true), Prepare: prepareConv(true), Fuses: true},
		{Name: "TRANSPOSE_CONV", Types: layer.ConvTypes, Infer: inferTConv(shapeTConv), Prepare: prepareTConv(shapeTConv), Fuses: true},
		{Domain: graph.TFLiteCustom, Name: "Convolution2DTransposeBias", Types: layer.ConvTypes, Infer: inferTConv(shapeTConvBias), Prepare: prepareTConv(shapeTConvBias), Fuses: true},
		{Name: "CONV_3D", Types: layer.FloatOnly, Infer: inferConv3D(shapeConv3D, 0), Prepare: prepareConv3D, Fuses: true},
		{Name: "CONV_3D_TRANSPOSE", Types: layer.FloatOnly, Infer: inferConv3D(shapeConv3DTranspose, 2), Prepare: prepareConv3DTranspose, Fuses: true},
	}
	return layer.InTFLite(defs)
}
