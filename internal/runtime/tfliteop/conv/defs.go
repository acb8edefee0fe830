// Package conv implements TFLite's convolutions: plain, depthwise, transposed and
// three-dimensional, for floats and quantised values.
package conv

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	conv := func(name string) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: layer.ConvTypes, Fuses: true}, convShape, inferConv, prepareConv)
	}
	tconv := func(domain, name string, shape func(c *op.Call) (tconv, error)) op.Def {
		return layer.Shaped(op.Def{Domain: domain, Name: name, Types: layer.ConvTypes, Fuses: true}, shape, inferTConv, prepareTConv)
	}
	conv3D := func(name string, shape func(c *op.Call) (*conv3D, error), prepare func(c *op.Call, v *conv3D) (op.Run, error)) op.Def {
		return layer.Shaped(op.Def{Name: name, Types: layer.FloatOnly, Fuses: true}, shape, inferConv3D, prepare)
	}
	return layer.InTFLite([]op.Def{
		conv("CONV_2D"),
		conv("DEPTHWISE_CONV_2D"),
		tconv("", "TRANSPOSE_CONV", shapeTConv),
		tconv(graph.TFLiteCustom, "Convolution2DTransposeBias", shapeTConvBias),
		conv3D("CONV_3D", shapeConv3D, prepareConv3D),
		conv3D("CONV_3D_TRANSPOSE", shapeConv3DTranspose, prepareConv3DTranspose),
	})
}
