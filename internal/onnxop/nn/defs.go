package nn

import (
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return slices.Concat(products(), windows(), normalizations(), sequences(), pictures(), losses(), microsoft())
}

// with adds types to the floating-point ones.
func with(more ...tensor.Type) []tensor.Type { return slices.Concat(elem.Floats, more) }

var matrixInts = []tensor.Type{tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64}

// floats makes a definition over floating-point types.
func floats(name string, infer func(*op.Call) error, p32, p64 elem.Prepare) op.Def {
	types := elem.Floats
	if p64 == nil {
		types = []tensor.Type{tensor.Float32, tensor.Float16, tensor.BFloat16}
	}
	return op.Def{Name: name, Since: 1, Types: types, Infer: infer, Prepare: elem.ByReal(p32, p64)}
}

// fusing marks a definition that applies a following clamp itself.
func fusing(d op.Def) op.Def { d.Fuses = true; return d }

func products() []op.Def {
	return []op.Def{
		{Name: "MatMul", Since: 1, Types: with(matrixInts...), Infer: inferMatMul, Prepare: prepareMatMul, Fuses: true},
		{Name: "Gemm", Since: 1, Types: with(matrixInts...), Infer: inferGemm, Prepare: prepareGemmAny, Fuses: true},
		{Name: "Einsum", Since: 12, Infer: inferEinsum, Prepare: prepareEinsum},
		{Name: "MatMulInteger", Since: 10, Types: smallInts, Infer: inferMatMulInteger, Prepare: prepareMatMulInteger},
		{Name: "QLinearMatMul", Since: 10, Types: smallInts, Infer: inferQLinearMatMul, Prepare: prepareQLinearMatMul},
	}
}

func windows() []op.Def {
	return []op.Def{
		fusing(floats("Conv", inferConv, prepareConv32, prepareConvAny[float64])),
		fusing(floats("ConvTranspose", inferConvTranspose, prepareConvTranspose[float32], prepareConvTranspose[float64])),
		floats("DeformConv", inferDeformConv, prepareDeformConv[float32], prepareDeformConv[float64]),
		{Name: "ConvInteger", Since: 10, Types: smallInts, Infer: inferConvInteger, Prepare: prepareConvInteger},
		{Name: "QLinearConv", Since: 10, Types: smallInts, Infer: inferQLinearConv, Prepare: prepareQLinearConv},
		fusing(floats("AveragePool", inferPool, prepareAveragePool[float32], prepareAveragePool[float64])),
		{Name: "MaxPool", Since: 1, Types: with(smallInts...), Infer: inferPool, Prepare: prepareMaxPool},
		floats("LpPool", inferPool, prepareLpPool[float32], prepareLpPool[float64]),
		floats("MaxUnpool", inferMaxUnpool, prepareMaxUnpool[float32], prepareMaxUnpool[float64]),
		fusing(floats("GlobalAveragePool", inferGlobalPool, globalPool(globalAverage[float32]), globalPool(globalAverage[float64]))),
		fusing(floats("GlobalMaxPool", inferGlobalPool, globalPool(globalMax[float32]), globalPool(globalMax[float64]))),
		floats("GlobalLpPool", inferGlobalPool, globalPool(globalLp[float32]), globalPool(globalLp[float64])),
		floats("CausalConvWithState", inferCausalConv, prepareCausalConv[float32], nil),
	}
}

func normalizations() []op.Def {
	return []op.Def{
		fusing(floats("BatchNormalization", inferBatchNormalization, prepareBatchNormalization[float32], prepareBatchNormalization[float64])),
		fusing(floats("InstanceNormalization", inferInstanceNormalization, prepareInstanceNormalization[float32], prepareInstanceNormalization[float64])),
		fusing(floats("GroupNormalization", inferGroupNormalization, prepareGroupNormalization[float32], prepareGroupNormalization[float64])),
		floats("LayerNormalization", inferLayerNormalization, prepareLayerNormalization[float32], prepareLayerNormalization[float64]),
		floats("RMSNormalization", inferLayerNormalization, prepareRMSNormalization[float32], prepareRMSNormalization[float64]),
		floats("SimplifiedLayerNormalization", inferLayerNormalization, prepareRMSNormalization[float32], prepareRMSNormalization[float64]),
		floats("LpNormalization", inferSame, prepareLpNormalization[float32], prepareLpNormalization[float64]),
		floats("LRN", inferSame, prepareLRN[float32], prepareLRN[float64]),
		floats("MeanVarianceNormalization", inferSame, prepareMVN[float32], prepareMVN[float64]),
	}
}

func sequences() []op.Def {
	flex := floats("FlexAttention", inferFlexAttention, prepareFlexAttention[float32], prepareFlexAttention[float64])
	flex.Domain = "ai.onnx.preview"
	return []op.Def{
		floats("RNN", inferCell(1, "Tanh"), prepareRNN[float32], prepareRNN[float64]),
		floats("GRU", inferCell(3, "Sigmoid", "Tanh"), prepareGRU[float32], prepareGRU[float64]),
		floats("LSTM", inferCell(4, "Sigmoid", "Tanh", "Tanh"), prepareLSTM[float32], prepareLSTM[float64]),
		floats("Attention", inferAttention, prepareAttention[float32], prepareAttention[float64]),
		flex,
		floats("LinearAttention", inferLinearAttention, prepareLinearAttention, nil),
		floats("RotaryEmbedding", inferRotary, prepareRotary[float32], prepareRotary[float64]),
		{Name: "TensorScatter", Since: 24, Infer: inferTensorScatter, Prepare: prepareTensorScatter},
	}
}

func pictures() []op.Def {
	return []op.Def{
		{Name: "Resize", Since: 10, Infer: inferResize, Prepare: prepareResize},
		{Name: "Upsample", Since: 1, Infer: inferResize, Prepare: prepareResize},
		floats("GridSample", inferGridSample, prepareGridSample[float32], prepareGridSample[float64]),
		floats("AffineGrid", inferAffineGrid, prepareAffineGrid[float32], prepareAffineGrid[float64]),
		floats("RoiAlign", inferRoiAlign, prepareRoiAlign[float32], prepareRoiAlign[float64]),
		floats("MaxRoiPool", inferMaxRoiPool, prepareMaxRoiPool[float32], prepareMaxRoiPool[float64]),
		{Name: "NonMaxSuppression", Since: 10, Types: []tensor.Type{tensor.Float32}, Infer: inferNMS, Prepare: op.Simple(runNMS)},
	}
}

func losses() []op.Def {
	nll, sce := "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"
	drop := floats("Dropout", inferDropout, prepareDropout[float32], prepareDropout[float64])
	drop.Stateful = true // random in training
	return []op.Def{
		floats(nll, inferClassLoss, prepareClassLoss[float32](false), prepareClassLoss[float64](false)),
		floats(sce, inferClassLoss, prepareClassLoss[float32](true), prepareClassLoss[float64](true)),
		drop,
	}
}

// domain moves definitions to another domain.
func domain(name string, defs ...op.Def) []op.Def {
	for i := range defs {
		defs[i].Domain = name
	}
	return defs
}
