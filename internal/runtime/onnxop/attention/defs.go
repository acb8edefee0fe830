package attention

import (
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	flex := elem.RealDef("FlexAttention", inferFlexAttention, prepareFlexAttention[float32], prepareFlexAttention[float64])
	flex.Domain = "ai.onnx.preview"
	return []op.Def{
		elem.WithCaches(elem.RealDef("Attention", inferAttention, prepareAttention[float32], prepareAttention[float64]), prepareAttention[float32], [2]int{atPastK, 1}, [2]int{atPastV, 2}),
		flex,
		elem.RealDef("LinearAttention", InferLinearAttention, PrepareLinearAttention, nil),
		elem.RealDef("RotaryEmbedding", inferRotary, prepareRotary[float32], prepareRotary[float64]),
		{Name: "TensorScatter", Since: 24, Infer: inferTensorScatter, Prepare: prepareTensorScatter},
		elem.RealDef("CausalConvWithState", InferCausalConv, PrepareCausalConv[float32], nil),
	}
}
