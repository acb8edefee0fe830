package attention

import (
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	flex := elem.RealDef("FlexAttention", op.Needs(3, op.Infer(newFlex)), prepareFlexAttention[float32], prepareFlexAttention[float64])
	flex.Domain = "ai.onnx.preview"
	return []op.Def{
		elem.WithCaches(elem.RealDef("Attention", op.Needs(3, inferAttention), prepareAttention[float32], prepareAttention[float64]), prepareAttention[float32], [2]int{atPastK, 1}, [2]int{atPastV, 2}),
		flex,
		elem.RealDef("LinearAttention", op.Needs(3, InferLinearAttention), PrepareLinearAttention, nil),
		elem.RealDef("RotaryEmbedding", op.Needs(3, op.Infer(newRotary)), prepareRotary[float32], prepareRotary[float64]),
		{Name: "TensorScatter", Since: 24, Infer: op.Needs(2, inferTensorScatter), Prepare: prepareTensorScatter},
		elem.RealDef("CausalConvWithState", op.Needs(2, InferCausalConv), PrepareCausalConv[float32], nil),
	}
}
