package nn

import (
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	inf := float32(math.Inf(1))
	defs := []op.Def{
		{Name: "CONV_2D", Types: convTypes, Infer: inferConv(false), Prepare: prepareConv(false), Fuses: true},
		{Name: "DEPTHWISE_CONV_2D", Types: convTypes, Infer: inferConv(true), Prepare: prepareConv(true), Fuses: true},
		{Name: "TRANSPOSE_CONV", Types: convTypes, Infer: inferTConv(shapeTConv), Prepare: prepareTConv(shapeTConv), Fuses: true},
		{Domain: graph.TFLiteCustom, Name: "Convolution2DTransposeBias", Types: convTypes, Infer: inferTConv(shapeTConvBias), Prepare: prepareTConv(shapeTConvBias), Fuses: true},
		{Name: "FULLY_CONNECTED", Types: convTypes, Infer: inferFC, Prepare: prepareFC, Fuses: true},
		{Name: "AVERAGE_POOL_2D", Types: convTypes, Infer: inferPool, Prepare: preparePool(averagePool), Fuses: true},
		{Name: "MAX_POOL_2D", Types: convTypes, Infer: inferPool, Prepare: preparePool(maxPool), Fuses: true},
		{Name: "L2_POOL_2D", Types: floatOnly, Infer: inferPool, Prepare: preparePool(l2Pool), Fuses: true},
		{Name: "SOFTMAX", Types: convTypes, Infer: inferSame, Prepare: prepareSoftmax},
		{Name: "LOG_SOFTMAX", Types: byteTypes, Infer: inferSame, Prepare: prepareLogSoftmax},
		{Name: "LOGISTIC", Types: convTypes, Infer: inferSame, Prepare: prepareLogistic, InPlace: true},
		{Name: "TANH", Types: convTypes, Infer: inferSame, Prepare: prepareTanh, InPlace: true},
		{Name: "RELU", Types: convTypes, Infer: inferSame, Prepare: prepareClamp(0, inf), InPlace: true},
		{Name: "RELU6", Types: convTypes, Infer: inferSame, Prepare: prepareClamp(0, 6), InPlace: true},
		{Name: "RELU_N1_TO_1", Types: convTypes, Infer: inferSame, Prepare: prepareClamp(-1, 1), InPlace: true},
		{Name: "RELU_0_TO_1", Types: convTypes, Infer: inferSame, Prepare: prepareClamp(0, 1), InPlace: true},
		{Name: "LEAKY_RELU", Types: convTypes, Infer: inferSame, Prepare: prepareLeaky, InPlace: true},
		{Name: "PRELU", Types: byteTypes, Infer: inferPrelu, Prepare: preparePrelu},
		{Name: "GELU", Types: convTypes, Infer: inferSame, Prepare: prepareGelu, InPlace: true},
		{Name: "HARD_SWISH", Types: byteTypes, Infer: inferSame, Prepare: prepareHardSwish, InPlace: true},
		{Name: "CONV_3D", Types: floatOnly, Infer: inferConv3D(shapeConv3D, 0), Prepare: prepareConv3D, Fuses: true},
		{Name: "CONV_3D_TRANSPOSE", Types: floatOnly, Infer: inferConv3D(shapeConv3DTranspose, 2), Prepare: prepareConv3DTranspose, Fuses: true},
		{Name: "BATCH_MATMUL", Types: []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}, Infer: inferMatmul, Prepare: prepareMatmul},
		{Name: "MEAN", Types: numbers, Infer: inferReduce, Prepare: prepareSum(true)},
		{Name: "SUM", Types: numbers, Infer: inferReduce, Prepare: prepareSum(false)},
		{Name: "REDUCE_MAX", Types: numbers, Infer: inferReduce, Prepare: prepareExtreme(false)},
		{Name: "REDUCE_MIN", Types: numbers, Infer: inferReduce, Prepare: prepareExtreme(true)},
		{Name: "REDUCE_PROD", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, Infer: inferReduce, Prepare: prepareProd},
		{Name: "REDUCE_ANY", Types: []tensor.Type{tensor.Bool}, Infer: inferReduce, Prepare: prepareLogic(false)},
		{Name: "REDUCE_ALL", Types: []tensor.Type{tensor.Bool}, Infer: inferReduce, Prepare: prepareLogic(true)},
		{Name: "CUMSUM", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, Infer: inferCumsum, Prepare: prepareCumsum},
		{Name: "RESIZE_BILINEAR", Types: convTypes, Infer: inferResize, Prepare: prepareBilinear},
		{Name: "RESIZE_NEAREST_NEIGHBOR", Infer: inferResize, Prepare: prepareNearest},
		{Name: "L2_NORMALIZATION", Types: byteTypes, Infer: inferSame, Prepare: prepareL2Norm, Fuses: true},
		{Name: "LOCAL_RESPONSE_NORMALIZATION", Types: floatOnly, Infer: inferSame, Prepare: prepareLRN},
		{Name: "EMBEDDING_LOOKUP", Infer: inferEmbedding, Prepare: prepareEmbedding},
		{Name: "SVDF", Types: byteTypes[:2], Infer: inferSVDF, Prepare: prepareSVDF},
		{Name: "LSTM", Types: lstmTypes, Infer: inferLSTM, Prepare: prepareLSTM},
		{Name: "UNIDIRECTIONAL_SEQUENCE_LSTM", Types: lstmTypes, Infer: inferLSTM, Prepare: prepareLSTM},
		{Name: "BIDIRECTIONAL_SEQUENCE_LSTM", Types: floatOnly, Infer: func(c *op.Call) error { return inferBoth(c, 8, 25, 1) }, Prepare: prepareBothLSTM},
		{Name: "RNN", Types: floatOnly, Infer: inferRNN, Prepare: prepareRNN},
		{Name: "UNIDIRECTIONAL_SEQUENCE_RNN", Types: floatOnly, Infer: inferRNN, Prepare: prepareRNN},
		{Name: "BIDIRECTIONAL_SEQUENCE_RNN", Types: floatOnly, Infer: func(c *op.Call) error { return inferBoth(c, 1, 5, 0) }, Prepare: prepareBothRNN},
		{Name: "ADD_N", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64, tensor.Int8}, Infer: inferAddN, Prepare: prepareAddN},
		{Name: "QUANTIZE", Infer: inferSame, Prepare: prepareQuantize},
		{Name: "DEQUANTIZE", Infer: inferDequantize, Prepare: prepareDequantize},
		{Name: "FAKE_QUANT", Types: floatOnly, Infer: inferSame, Prepare: prepareFakeQuant, InPlace: true},
	}
	for k, name := range []string{addOp: "ADD", subOp: "SUB", mulOp: "MUL", divOp: "DIV", maxOp: "MAXIMUM", minOp: "MINIMUM", sqdiffOp: "SQUARED_DIFFERENCE"} {
		defs = append(defs, op.Def{Name: name, Types: numbers, Infer: inferBroadcast, Prepare: prepareArith(arith(k)), Fuses: true})
	}
	for _, name := range slices.Sorted(maps.Keys(unaries)) {
		defs = append(defs, op.Def{Name: name, Types: convTypes, Infer: inferSame, Prepare: prepareUnary(name), InPlace: true})
	}
	for i := range defs {
		if defs[i].Domain == "" {
			defs[i].Domain = graph.TFLite
		}
	}
	return defs
}

var (
	floatOnly = []tensor.Type{tensor.Float32}
	lstmTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}
	byteTypes = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8}
	numbers   = []tensor.Type{tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64}
)
