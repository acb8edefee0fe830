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
		{Name: "CONV_2D", Types: convTypes, Infer: inferConv(false), Variants: op.Plain(prepareConv(false)), Fuses: true},
		{Name: "DEPTHWISE_CONV_2D", Types: convTypes, Infer: inferConv(true), Variants: op.Plain(prepareConv(true)), Fuses: true},
		{Name: "TRANSPOSE_CONV", Types: convTypes, Infer: inferTConv(shapeTConv), Variants: op.Plain(prepareTConv(shapeTConv)), Fuses: true},
		{Domain: graph.TFLiteCustom, Name: "Convolution2DTransposeBias", Types: convTypes, Infer: inferTConv(shapeTConvBias), Variants: op.Plain(prepareTConv(shapeTConvBias)), Fuses: true},
		{Name: "FULLY_CONNECTED", Types: convTypes, Infer: inferFC, Variants: op.Plain(prepareFC), Fuses: true},
		{Name: "AVERAGE_POOL_2D", Types: convTypes, Infer: inferPool, Variants: op.Plain(preparePool(averagePool)), Fuses: true},
		{Name: "MAX_POOL_2D", Types: convTypes, Infer: inferPool, Variants: op.Plain(preparePool(maxPool)), Fuses: true},
		{Name: "L2_POOL_2D", Types: floatOnly, Infer: inferPool, Variants: op.Plain(preparePool(l2Pool)), Fuses: true},
		{Name: "SOFTMAX", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareSoftmax)},
		{Name: "LOG_SOFTMAX", Types: byteTypes, Infer: inferSame, Variants: op.Plain(prepareLogSoftmax)},
		{Name: "LOGISTIC", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareLogistic), InPlace: true},
		{Name: "TANH", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareTanh), InPlace: true},
		{Name: "RELU", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareClamp(0, inf)), InPlace: true},
		{Name: "RELU6", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareClamp(0, 6)), InPlace: true},
		{Name: "RELU_N1_TO_1", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareClamp(-1, 1)), InPlace: true},
		{Name: "RELU_0_TO_1", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareClamp(0, 1)), InPlace: true},
		{Name: "LEAKY_RELU", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareLeaky), InPlace: true},
		{Name: "PRELU", Types: byteTypes, Infer: inferPrelu, Variants: op.Plain(preparePrelu)},
		{Name: "GELU", Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareGelu), InPlace: true},
		{Name: "HARD_SWISH", Types: byteTypes, Infer: inferSame, Variants: op.Plain(prepareHardSwish), InPlace: true},
		{Name: "CONV_3D", Types: floatOnly, Infer: inferConv3D(shapeConv3D, 0), Variants: op.Plain(prepareConv3D), Fuses: true},
		{Name: "CONV_3D_TRANSPOSE", Types: floatOnly, Infer: inferConv3D(shapeConv3DTranspose, 2), Variants: op.Plain(prepareConv3DTranspose), Fuses: true},
		{Name: "BATCH_MATMUL", Types: []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}, Infer: inferMatmul, Variants: op.Plain(prepareMatmul)},
		{Name: "MEAN", Types: numbers, Infer: inferReduce, Variants: op.Plain(prepareSum(true))},
		{Name: "SUM", Types: numbers, Infer: inferReduce, Variants: op.Plain(prepareSum(false))},
		{Name: "REDUCE_MAX", Types: numbers, Infer: inferReduce, Variants: op.Plain(prepareExtreme(false))},
		{Name: "REDUCE_MIN", Types: numbers, Infer: inferReduce, Variants: op.Plain(prepareExtreme(true))},
		{Name: "REDUCE_PROD", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, Infer: inferReduce, Variants: op.Plain(prepareProd)},
		{Name: "REDUCE_ANY", Types: []tensor.Type{tensor.Bool}, Infer: inferReduce, Variants: op.Plain(prepareLogic(false))},
		{Name: "REDUCE_ALL", Types: []tensor.Type{tensor.Bool}, Infer: inferReduce, Variants: op.Plain(prepareLogic(true))},
		{Name: "CUMSUM", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64}, Infer: inferCumsum, Variants: op.Plain(prepareCumsum)},
		{Name: "RESIZE_BILINEAR", Types: convTypes, Infer: inferResize, Variants: op.Plain(prepareBilinear)},
		{Name: "RESIZE_NEAREST_NEIGHBOR", Infer: inferResize, Variants: op.Plain(prepareNearest)},
		{Name: "L2_NORMALIZATION", Types: byteTypes, Infer: inferSame, Variants: op.Plain(prepareL2Norm), Fuses: true},
		{Name: "LOCAL_RESPONSE_NORMALIZATION", Types: floatOnly, Infer: inferSame, Variants: op.Plain(prepareLRN)},
		{Name: "EMBEDDING_LOOKUP", Infer: inferEmbedding, Variants: op.Plain(prepareEmbedding)},
		{Name: "SVDF", Types: byteTypes[:2], Infer: inferSVDF, Variants: op.Plain(prepareSVDF)},
		{Name: "LSTM", Types: lstmTypes, Infer: inferLSTM, Variants: op.Plain(prepareLSTM)},
		{Name: "UNIDIRECTIONAL_SEQUENCE_LSTM", Types: lstmTypes, Infer: inferLSTM, Variants: op.Plain(prepareLSTM)},
		{Name: "BIDIRECTIONAL_SEQUENCE_LSTM", Types: floatOnly, Infer: func(c *op.Call) error { return inferBoth(c, 8, 25, 1) }, Variants: op.Plain(prepareBothLSTM)},
		{Name: "RNN", Types: floatOnly, Infer: inferRNN, Variants: op.Plain(prepareRNN)},
		{Name: "UNIDIRECTIONAL_SEQUENCE_RNN", Types: floatOnly, Infer: inferRNN, Variants: op.Plain(prepareRNN)},
		{Name: "BIDIRECTIONAL_SEQUENCE_RNN", Types: floatOnly, Infer: func(c *op.Call) error { return inferBoth(c, 1, 5, 0) }, Variants: op.Plain(prepareBothRNN)},
		{Name: "ADD_N", Types: []tensor.Type{tensor.Float32, tensor.Int32, tensor.Int64, tensor.Int8}, Infer: inferAddN, Variants: op.Plain(prepareAddN)},
		{Name: "QUANTIZE", Infer: inferSame, Variants: op.Plain(prepareQuantize)},
		{Name: "DEQUANTIZE", Infer: inferDequantize, Variants: op.Plain(prepareDequantize)},
		{Name: "FAKE_QUANT", Types: floatOnly, Infer: inferSame, Variants: op.Plain(prepareFakeQuant), InPlace: true},
	}
	for k, name := range []string{addOp: "ADD", subOp: "SUB", mulOp: "MUL", divOp: "DIV", maxOp: "MAXIMUM", minOp: "MINIMUM", sqdiffOp: "SQUARED_DIFFERENCE"} {
		defs = append(defs, op.Def{Name: name, Types: numbers, Infer: inferBroadcast, Variants: op.Plain(prepareArith(arith(k))), Fuses: true})
	}
	for _, name := range slices.Sorted(maps.Keys(unaries)) {
		defs = append(defs, op.Def{Name: name, Types: convTypes, Infer: inferSame, Variants: op.Plain(prepareUnary(name)), InPlace: true})
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
