package count_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
)

// Operations per element of the output, as in docs/reference/counting.md.
func TestOperationsAnElement(t *testing.T) {
	t.Parallel()
	for domain, byCost := range map[string]map[int][]string{
		graph.ONNX: {
			0:  {"Identity", "Reshape", "Transpose", "Concat", "Slice", "Gather", "Expand", "Pad", "ConstantOfShape", "OneHot", "If", "Loop", "Scan"},
			1:  {"Add", "Sub", "Div", "Pow", "Mod", "And", "Equal", "Where", "Abs", "Sqrt", "Exp", "Tanh", "Erf", "Relu", "Cast", "Hardmax", "Scale"},
			2:  {"LeakyRelu", "PRelu", "ThresholdedRelu", "Clip", "Softplus", "BatchNormalization", "DequantizeLinear", "Affine"},
			3:  {"Softsign", "Shrink", "ScaledTanh", "Bernoulli", "LpNormalization", "RotaryEmbedding"},
			4:  {"Sigmoid", "HardSigmoid", "Elu", "Selu", "Mish", "QuantizeLinear", "RMSNormalization", "ParametricSoftplus"},
			5:  {"Softmax", "LogSoftmax", "Celu", "HardSwish", "Swish", "Gelu", "MeanVarianceNormalization"},
			6:  {"DynamicQuantizeLinear", "Quant"},
			7:  {"LayerNormalization", "InstanceNormalization", "GroupNormalization"},
			-1: {"TopK", "NonZero", "Unique", "NonMaxSuppression", "RegexFullMatch", "MaxRoiPool"},
		},
		graph.TFLite: {
			0:  {"RESHAPE", "CONCATENATION", "STRIDED_SLICE", "GATHER", "TRANSPOSE", "PAD", "RESIZE_NEAREST_NEIGHBOR", "IF", "WHILE", "DENSIFY"},
			1:  {"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "TANH", "SQRT", "RELU", "CAST", "STABLEHLO_ADD"},
			2:  {"RSQRT", "SQUARED_DIFFERENCE", "LEAKY_RELU", "PRELU", "RELU6", "RELU_N1_TO_1", "DEQUANTIZE"},
			3:  {"ELU", "L2_NORMALIZATION"},
			4:  {"LOGISTIC", "COMPLEX_ABS", "QUANTIZE"},
			5:  {"SOFTMAX", "LOG_SOFTMAX", "HARD_SWISH", "GELU"},
			6:  {"FAKE_QUANT"},
			9:  {"RESIZE_BILINEAR"},
			-1: {"TOPK_V2", "UNIQUE", "NON_MAX_SUPPRESSION_V4", "REDUCE_WINDOW"},
		},
		graph.Microsoft: {
			0: {"QLinearConcat", "ExpandDims"}, 2: {"BiasAdd", "DequantizeLinear"}, 3: {"RotaryEmbedding"}, 4: {"QuantizeLinear", "SimplifiedLayerNormalization"},
			5: {"SkipSimplifiedLayerNormalization", "Gelu", "QuickGelu", "BiasSoftmax"}, 6: {"BiasGelu"}, 7: {"QLinearAdd", "QLinearMul", "QLinearWhere", "GroupNorm"},
			8: {"SkipLayerNormalization", "FastGelu", "QLinearLeakyRelu"}, 9: {"EmbedLayerNormalization"}, 10: {"QLinearSigmoid"}, 11: {"QLinearSoftmax"},
		},
		graph.ONNXML: {0: {"LabelEncoder", "ZipMap"}, 1: {"Binarizer", "Imputer"}, 2: {"Scaler"}, 3: {"Normalizer"}, -1: {"TreeEnsemble", "SVMClassifier"}},
	} {
		for cost, names := range byCost {
			for _, name := range names {
				n := &graph.Node{Domain: domain, Op: name, Version: 20}
				w := count.Count(&graph.Model{}, &graph.Graph{}, n, list(x(2, 3), x(2, 3), x(2, 3)), list(x(2, 5)))
				var want any = 10 * cost
				if cost < 0 {
					want = nil
				}
				if got := number(w.Ops); got != want {
					t.Errorf("%s: %v operations, want %v", n.Key(), got, want)
				}
				if number(w.MACs) != 0 || number(w.MACsExecuted) != 0 {
					t.Errorf("%s: %v products", n.Key(), number(w.MACs))
				}
			}
		}
	}
	// The domains that exporters write beside the default one have its rules.
	for _, d := range []string{"ai.onnx", "ai.onnx.preview", "qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"} {
		if !count.Has(&graph.Node{Domain: d, Op: "Relu"}) {
			t.Errorf("no rule for Relu of %s", d)
		}
	}
	if count.Has(&graph.Node{Domain: "of.somebody", Op: "Relu"}) {
		t.Error("an unknown domain has rules")
	}
}

// Counts that follow from the shapes by hand.
func TestCountsByHand(t *testing.T) {
	t.Parallel()
	lite, on, ms, ml := graph.TFLite, graph.ONNX, graph.Microsoft, graph.ONNXML
	fused := func(name string) graph.Attrs { return graph.Attrs{"fused_activation_function": name} }
	heads := graph.Attrs{"num_heads": int64(2)}
	peep := list(x(5, 2, 3), x(1, 16, 3), x(1, 16, 4), x(1, 32), nil, nil, nil, x(1, 12))
	// A TFLite LSTM of 4 units over 3 inputs: four gates, projection to 2 outputs.
	lstm := func() []*tensor.Tensor {
		in := make([]*tensor.Tensor, 24)
		in[0] = x(5, 2, 3)
		for i := 1; i <= 4; i++ {
			in[i], in[i+4] = x(4, 3), x(4, 2)
		}
		for i := 12; i <= 15; i++ {
			in[i] = x(4)
		}
		return in
	}
	whole, coupled, normed, projected, peeped := lstm(), lstm(), lstm(), lstm(), lstm()
	coupled[1], coupled[5], coupled[12] = nil, nil, nil
	for i := 20; i < 24; i++ {
		normed[i] = x(4)
	}
	projected[16], projected[17] = x(2, 4), x(2)
	peeped[9], peeped[10], peeped[11] = x(4), x(4), x(4)
	both := make([]*tensor.Tensor, 48)
	copy(both, whole[:18])
	copy(both[18:], whole[1:18])
	aux := append([]*tensor.Tensor{}, both...)
	aux[39] = x(5, 2, 6)
	for i := 40; i < 48; i++ {
		aux[i] = x(4, 6)
	}
	const step = 4*12 + 4*8 // products of the gates in a step: input, recurrent
	rnn := list(x(5, 2, 3), x(4, 3), x(4, 4), x(4), nil)
	two := list(x(5, 2, 3), x(4, 3), x(4, 4), x(4), nil, x(4, 3), x(4, 4), x(4), nil)
	twoAux := append(append([]*tensor.Tensor{}, two...), x(5, 2, 6), x(4, 6), x(4, 6))
	tests := []struct {
		name   string
		domain string
		op     string
		attrs  graph.Attrs
		in     []*tensor.Tensor
		out    []*tensor.Tensor
		want   numbers
	}{
		{"dense without bias", lite, "FULLY_CONNECTED", nil, list(x(3, 10), x(4, 10)), list(x(3, 4)), numbers{240, 120, 120}},
		{"dense, two comparisons", lite, "FULLY_CONNECTED", fused("RELU6"), list(x(3, 10), x(4, 10)), list(x(3, 4)), numbers{240 + 24, 120, 120}},
		{"dense, the other two", lite, "FULLY_CONNECTED", fused("RELU_N1_TO_1"), list(x(3, 10), x(4, 10)), list(x(3, 4)), numbers{240 + 24, 120, 120}},
		{"dense, tanh", lite, "FULLY_CONNECTED", fused("TANH"), list(x(3, 10), x(4, 10)), list(x(3, 4)), numbers{240 + 12, 120, 120}},
		{"add, fused", lite, "ADD", fused("RELU6"), list(x(6), x(6)), list(x(6)), numbers{18, 0, 0}},
		{"maximum has no activation", lite, "MAXIMUM", fused("RELU6"), list(x(6), x(6)), list(x(6)), numbers{6, 0, 0}},
		{"batched product", lite, "BATCH_MATMUL", nil, list(x(2, 3, 7), x(2, 7, 5)), list(x(2, 3, 5)), numbers{420, 210, 210}},
		{"pool", lite, "MAX_POOL_2D", graph.Attrs{"filter_height": int64(2), "filter_width": int64(3), "fused_activation_function": "RELU"}, list(x(1, 4, 6, 2)), list(x(1, 2, 2, 2)), numbers{8*6 + 8, 0, 0}},
		{"norm of a pool", lite, "L2_POOL_2D", graph.Attrs{"filter_height": int64(2), "filter_width": int64(3)}, list(x(1, 4, 6, 2)), list(x(1, 2, 2, 2)), numbers{8 * 13, 0, 0}},
		{"pool without window", lite, "MAX_POOL_2D", nil, list(x(1, 4, 6, 2)), list(x(1, 2, 2, 2)), numbers{}},
		{"local response", lite, "LOCAL_RESPONSE_NORMALIZATION", graph.Attrs{"radius": int64(2)}, list(x(1, 2, 2, 3)), list(x(1, 2, 2, 3)), numbers{12 * 13, 0, 0}},
		{"negative radius", lite, "LOCAL_RESPONSE_NORMALIZATION", graph.Attrs{"radius": int64(-2)}, list(x(1, 2, 2, 3)), list(x(1, 2, 2, 3)), numbers{}},
		{"sum of three", lite, "ADD_N", nil, list(x(6), x(6), x(6)), list(x(6)), numbers{12, 0, 0}},
		{"sum of one", lite, "ADD_N", nil, list(x(6)), list(x(6)), numbers{0, 0, 0}},
		{"buckets", lite, "BUCKETIZE", graph.Attrs{"boundaries": make([]float32, 4)}, list(x(6)), list(x(6)), numbers{6 * 3, 0, 0}},
		{"buckets, power of two", lite, "BUCKETIZE", graph.Attrs{"boundaries": make([]float32, 3)}, list(x(6)), list(x(6)), numbers{6 * 2, 0, 0}},
		{"no buckets", lite, "BUCKETIZE", nil, list(x(6)), list(x(6)), numbers{0, 0, 0}},
		{"mean", lite, "MEAN", nil, list(x(3, 4)), list(x(3)), numbers{12 + 3, 0, 0}},
		{"sum", lite, "SUM", nil, list(x(3, 4)), list(x(3)), numbers{12, 0, 0}},
		{"real transform", lite, "RFFT2D", nil, list(x(2, 4, 8)), list(x(2, 4, 5)), numbers{2 * 5 * 32 * 5 / 2, 0, 0}},
		{"window of attributes", lite, "STABLEHLO_REDUCE_WINDOW", graph.Attrs{"window_dimensions": []int64{1, 2, 3}}, list(x(1, 4, 6)), list(x(1, 2, 2)), numbers{4 * 6, 0, 0}},
		{"window of an input", lite, "REDUCE_WINDOW", nil, list(x(1, 4, 6), x(), ints(1, 2, 3)), list(x(1, 2, 2)), numbers{4 * 6, 0, 0}},
		{"depth", lite, "CONV_3D", graph.Attrs{"padding": "VALID"}, list(x(1, 3, 4, 5, 2), x(2, 3, 3, 2, 6), x(6)), list(x(1, 2, 2, 3, 6)), numbers{2*72*36 + 72, 72 * 36, 72 * 36}},
		{"depth, same", lite, "CONV_3D", nil, list(x(1, 2, 2, 2, 1), x(3, 3, 3, 1, 1)), list(x(1, 2, 2, 2, 1)), numbers{2 * 8 * 27, 8 * 27, 4 * 4 * 4}},
		{"depth, strides", lite, "CONV_3D", graph.Attrs{"padding": "VALID", "stride_d": int64(2), "stride_h": int64(3), "stride_w": int64(4)}, list(x(1, 3, 4, 5, 1), x(1, 1, 1, 1, 1)), list(x(1, 2, 2, 2, 1)), numbers{16, 8, 8}},
		{"depth, transposed", lite, "CONV_3D_TRANSPOSE", graph.Attrs{"padding": "VALID"}, list(x(5), x(2, 3, 3, 6, 2), x(1, 2, 2, 3, 2), x(6)), list(x(1, 3, 4, 5, 6)), numbers{2*24*18*6 + 360, 24 * 18 * 6, 24 * 18 * 6}},
		{"media pipe", graph.TFLiteCustom, "Convolution2DTransposeBias", nil, list(x(1, 2, 2, 3), x(4, 2, 2, 3), x(4)), list(x(1, 4, 4, 4)), numbers{2*12*16 + 64, 12 * 16, nil}},
		{"transposed with bias", lite, "TRANSPOSE_CONV", graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2), "fused_activation_function": "RELU"}, list(x(4), x(5, 3, 3, 2), x(1, 2, 2, 2), x(5)), list(x(1, 5, 5, 5)), numbers{720 + 125 + 125, 360, 360}},
		{"convolution of another framework", lite, "STABLEHLO_CONVOLUTION", graph.Attrs{"kernel_output_feature_dimension": int64(0)}, list(x(1, 4, 4, 2), x(5, 3, 3, 2)), list(x(1, 2, 2, 5)), numbers{2 * 20 * 18, 20 * 18, nil}},
		{"its features come last", lite, "STABLEHLO_CONVOLUTION", nil, list(x(1, 4, 4, 2), x(3, 3, 2, 5)), list(x(1, 2, 2, 5)), numbers{2 * 20 * 18, 20 * 18, nil}},
		{"contractions", lite, "STABLEHLO_DOT_GENERAL", graph.Attrs{"lhs_contracting_dimensions": []int64{1, 2}}, list(x(2, 3, 4), x(3, 4, 5)), list(x(2, 5)), numbers{240, 120, 120}},

		{"LSTM", lite, "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, whole, list(x(5, 2, 2)), numbers{10 * (2*step + 18*4 + 16), 10 * step, 10 * step}},
		{"without input gate", lite, "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, coupled, list(x(5, 2, 2)), numbers{10 * (2*60 + 15*4 + 12), 600, 600}},
		{"layer norm", lite, "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, normed, list(x(5, 2, 2)), numbers{10 * (2*step + 72 + 16 + 7*16), 10 * step, 10 * step}},
		{"projection", lite, "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, projected, list(x(5, 2, 2)), numbers{10 * (2*(step+8) + 72 + 16 + 2), 10 * (step + 8), 10 * (step + 8)}},
		{"peepholes", lite, "UNIDIRECTIONAL_SEQUENCE_LSTM", nil, peeped, list(x(5, 2, 2)), numbers{10 * (2*step + 72 + 16 + 24), 10 * step, 10 * step}},
		{"one step", lite, "LSTM", nil, append(list(x(2, 3)), whole[1:]...), list(x(2, 2)), numbers{2 * (2*step + 72 + 16), 2 * step, 2 * step}},
		{"basic", lite, "LSTM", graph.Attrs{"kernel_type": "BASIC"}, list(x(2, 3), x(2, 4), x(16, 7), x(16), x(2, 4)), list(x(2, 4)), numbers{2 * (2*112 + 4*22), 224, 224}},
		{"two directions", lite, "BIDIRECTIONAL_SEQUENCE_LSTM", nil, both, list(x(5, 2, 2)), numbers{20 * (2*step + 72 + 16), 20 * step, 20 * step}},
		{"auxiliary input", lite, "BIDIRECTIONAL_SEQUENCE_LSTM", nil, aux, list(x(5, 2, 2)), numbers{20 * (2*(step+96) + 72 + 16), 20 * (step + 96), 20 * (step + 96)}},
		{"RNN", lite, "UNIDIRECTIONAL_SEQUENCE_RNN", fused("TANH"), rnn, list(x(5, 2, 4)), numbers{10 * (2*28 + 4 + 4), 280, 280}},
		{"RNN, one step", lite, "RNN", nil, append(list(x(2, 3)), rnn[1:]...), list(x(2, 4)), numbers{2 * (2*28 + 4), 56, 56}},
		{"RNN, two directions", lite, "BIDIRECTIONAL_SEQUENCE_RNN", nil, two, list(x(5, 2, 4)), numbers{20 * (2*28 + 4), 560, 560}},
		{"RNN, auxiliary", lite, "BIDIRECTIONAL_SEQUENCE_RNN", nil, twoAux, list(x(5, 2, 4)), numbers{20 * (2*52 + 4), 20 * 52, 20 * 52}},
		{"SVDF of rank 1", lite, "SVDF", graph.Attrs{"rank": int64(1)}, list(x(2, 8), x(6, 8), x(6, 5)), list(x(2, 6)), numbers{2 * 156, 156, 156}},
		{"LSTM with peepholes", on, "LSTM", nil, peep, list(x(5, 1, 2, 4)), numbers{2*1120 + 10*18*4 + 320 + 2*10*12, 1120, 1120}},
		{"GRU takes no peepholes", on, "GRU", nil, list(x(5, 2, 3), x(1, 12, 3), x(1, 12, 4), x(1, 24)), list(x(5, 1, 2, 4)), numbers{2*840 + 10*14*4 + 240, 840, 840}},

		{"product, adjoint", ms, "FusedMatMul", graph.Attrs{"transA": int64(1)}, list(x(7, 3), x(7, 5)), list(x(3, 5)), numbers{210, 105, 105}},
		{"product", ms, "FusedMatMul", nil, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{210, 105, 105}},
		{"Gemm", on, "Gemm", nil, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{210, 105, 105}},
		{"fused Gemm", ms, "FusedGemm", graph.Attrs{"activation": "Relu"}, list(x(3, 7), x(7, 5), x(5)), list(x(3, 5)), numbers{240, 105, 105}},
		{"fused Gemm, leaky", ms, "FusedGemm", graph.Attrs{"activation": "LeakyRelu"}, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{240, 105, 105}},
		{"fused Gemm, sigmoid", ms, "FusedGemm", graph.Attrs{"activation": "Sigmoid"}, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{270, 105, 105}},
		{"fused Gemm, unknown", ms, "FusedGemm", graph.Attrs{"activation": "Mystery"}, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{}},
		{"no activation outside", on, "Gemm", graph.Attrs{"activation": "Mystery"}, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{210, 105, 105}},
		{"QGemm", ms, "QGemm", nil, list(x(3, 7), x(), x(), x(7, 5), x(), x(), x(5)), list(x(3, 5)), numbers{210 + 15 + 60, 105, 105}},
		{"QGemm, adjoint", ms, "QGemm", graph.Attrs{"transA": int64(1)}, list(x(7, 3), x(), x(), x(7, 5), x(), x()), list(x(3, 5)), numbers{210 + 60, 105, 105}},
		{"QLinearMatMul", on, "QLinearMatMul", nil, list(x(3, 7), x(), x(), x(7, 5)), list(x(3, 5)), numbers{270, 105, 105}},
		{"quantised while it runs", ms, "DynamicQuantizeMatMul", nil, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{210 + 126 + 30, 105, 105}},
		{"to floating point", ms, "MatMulIntegerToFloat", nil, list(x(3, 7), x(7, 5)), list(x(3, 5)), numbers{240, 105, 105}},
		{"channels last", ms, "QLinearConv", graph.Attrs{"channels_last": int64(1)}, list(x(1, 2, 3, 3), x(), x(), x(4, 2, 3, 3), x(), x(), x(), x(), x(4)), list(x(1, 4, 1, 1)), numbers{}},
		{"fused convolution", ms, "FusedConv", graph.Attrs{"activation": "Clip"}, list(x(1, 2, 3, 3), x(4, 2, 3, 3)), list(x(1, 4, 1, 1)), numbers{144 + 8, 72, 72}},
		{"deformed", on, "DeformConv", nil, list(x(1, 2, 3, 3), x(4, 2, 3, 3), x(1, 18, 1, 1), x(4)), list(x(1, 4, 1, 1)), numbers{144 + 4 + 9*9*2, 72, 72}},
		{"with state", on, "CausalConvWithState", graph.Attrs{"activation": "silu"}, list(x(1, 2, 6), x(4, 2, 3), x(4)), list(x(1, 4, 6)), numbers{288 + 24 + 120, 144, 144}},
		{"with state, plain", on, "CausalConvWithState", nil, list(x(1, 2, 6), x(4, 2, 3)), list(x(1, 4, 6)), numbers{288, 144, 144}},
		{"with state, unknown", on, "CausalConvWithState", graph.Attrs{"activation": "x"}, list(x(1, 2, 6), x(4, 2, 3)), list(x(1, 4, 6)), numbers{}},
		{"back to an image", on, "Col2Im", nil, list(x(1, 8, 9)), list(x(1, 2, 4, 4)), numbers{72, 0, 0}},
		{"VALID by name", on, "Conv", graph.Attrs{"auto_pad": "VALID", "pads": []int64{3, 3}}, list(x(1, 1, 4), x(1, 1, 2)), list(x(1, 1, 3)), numbers{12, 6, 6}},
		{"SAME_UPPER", on, "Conv", graph.Attrs{"auto_pad": "SAME_UPPER", "strides": []int64{2}}, list(x(1, 1, 5), x(1, 1, 4)), list(x(1, 1, 3)), numbers{24, 12, 9}},

		{"three factors", on, "Einsum", graph.Attrs{"equation": "ij,jk,kl->il"}, list(x(2, 3), x(3, 4), x(4, 5)), list(x(2, 5)), numbers{2 * 2 * 120, 240, 240}},
		{"two ellipses", on, "Einsum", graph.Attrs{"equation": "...i,...i->..."}, list(x(2, 3, 4), x(3, 4)), list(x(2, 3)), numbers{48, 24, 24}},
		{"broadcast label", on, "Einsum", graph.Attrs{"equation": "ij,ij->ij"}, list(x(1, 4), x(3, 4)), list(x(3, 4)), numbers{24, 12, 12}},
		{"no equation", on, "Einsum", nil, list(x(3, 4)), list(x(3)), numbers{}},
		{"an input too few", on, "Einsum", graph.Attrs{"equation": "ij,jk->ik"}, list(x(3, 4)), list(x(3, 4)), numbers{}},

		{"masked attention", on, "Attention", graph.Attrs{"q_num_heads": int64(2)}, list(x(1, 3, 8), x(1, 5, 8), x(1, 5, 8), x(3, 5)), list(x(1, 3, 8)), numbers{2*240 + 7*30, 30 * 8, 240}},
		{"no heads", on, "Attention", nil, list(x(1, 3, 8), x(1, 5, 8), x(1, 5, 8)), list(x(1, 3, 8)), numbers{}},
		{"many heads", ms, "MultiHeadAttention", heads, list(x(1, 3, 8), x(1, 5, 8), x(1, 5, 12)), list(x(1, 3, 12)), numbers{2*300 + 6*30, 300, 300}},
		{"many heads, masked", ms, "MultiHeadAttention", heads, list(x(1, 3, 8), x(1, 5, 8), x(1, 5, 8), nil, x(1, 5)), list(x(1, 3, 8)), numbers{2*240 + 7*30, 240, 240}},
		{"many heads, bias", ms, "MultiHeadAttention", heads, list(x(1, 3, 8), x(1, 5, 8), x(1, 5, 8), nil, nil, x(1, 2, 3, 5)), list(x(1, 3, 8)), numbers{2*240 + 7*30, 240, 240}},
		{"many heads, past", ms, "MultiHeadAttention", heads, list(x(1, 3, 8), x(1, 5, 8), x(1, 5, 8), nil, nil, nil, x(1, 2, 7, 4)), list(x(1, 3, 8)), numbers{2*576 + 6*72, 576, 576}},
		{"many heads, keys of four dimensions", ms, "MultiHeadAttention", heads, list(x(1, 3, 8), x(1, 2, 5, 4), x(1, 2, 5, 6)), list(x(1, 3, 12)), numbers{2*300 + 6*30, 300, 300}},
		{"packed", ms, "MultiHeadAttention", heads, list(x(1, 3, 2, 3, 4)), list(x(1, 3, 8)), numbers{}},
		{"projected, past and mask", ms, "Attention", heads, list(x(1, 3, 8), x(8, 24), nil, x(1, 10), x(2, 1, 2, 7, 4)), list(x(1, 3, 8)), numbers{2*(576+480) + 7*60, 576 + 480, 576 + 480}},
		{"projected from codes, past and mask", ms, "QAttention", heads, list(x(1, 3, 8), x(8, 24), x(24), x(), x(), x(1, 10), x(), x(), x(2, 1, 2, 7, 4)), list(x(1, 3, 8)), numbers{2*(576+480) + 7*60 + 72 + 144, 576 + 480, 576 + 480}},
		{"recurrent codes, both directions", ms, "DynamicQuantizeLSTM", nil, list(x(2, 1, 3), x(2, 3, 16), x(2, 4, 16), x(2, 32)), list(x(2, 2, 1, 4)), numbers{2*448 + 2*(18*8+64) + 6*2*(2*3+8) + 2*16*8, 448, 448}},
		{"projected to other sizes", ms, "Attention", graph.Attrs{"num_heads": int64(2), "qkv_hidden_sizes": []int64{4, 4, 12}}, list(x(1, 3, 8), x(8, 20)), list(x(1, 3, 12)), numbers{2*(480+18*8) + 6*18, 480 + 144, 480 + 144}},
		{"groups of queries, packed, turned", ms, "GroupQueryAttention", graph.Attrs{"num_heads": int64(4), "kv_num_heads": int64(2), "do_rotary": int64(1)}, list(x(1, 3, 32)), list(x(1, 3, 16)), numbers{2*288 + 6*36 + 3*3*6*4, 288, 288}},
		{"grid of this domain", ms, "GridSample", nil, list(x(1, 1, 4, 4), x(1, 2, 2, 2)), list(x(1, 1, 2, 2)), numbers{36, 0, 0}},
		{"crops", ms, "CropAndResize", nil, list(x(1, 1, 4, 4), x(2, 4), x(2), x(2)), list(x(2, 1, 2, 2)), numbers{72, 0, 0}},
		{"channels-last pool", ms, "NhwcMaxPool", graph.Attrs{"kernel_shape": []int64{2, 2}}, list(x(1, 4, 4, 1)), list(x(1, 3, 3, 1)), numbers{36, 0, 0}},
		{"masked pool", ms, "MaxpoolWithMask", graph.Attrs{"kernel_shape": []int64{2, 2}}, list(x(1, 1, 4, 4), x(1, 1, 4, 4)), list(x(1, 1, 3, 3)), numbers{36, 0, 0}},
		{"transposed with padding as input", ms, "ConvTransposeWithDynamicPads", graph.Attrs{"strides": []int64{2}}, list(x(1, 2, 3), x(2, 4, 4), x(2), x(4)), list(x(1, 4, 6)), numbers{2*96 + 24, 96, 80}},
		{"inverse", ms, "Inverse", nil, list(x(2, 3, 3)), list(x(2, 3, 3)), numbers{108, 0, 0}},
		{"groups of queries, past", ms, "GroupQueryAttention", graph.Attrs{"num_heads": int64(4), "kv_num_heads": int64(2)}, list(x(1, 1, 16), x(1, 1, 8), x(1, 1, 8), x(1, 2, 9, 4), x(1, 2, 9, 4)), list(x(1, 1, 16)), numbers{2*320 + 6*40, 320, 320}},
		{"groups of queries, buffer", ms, "GroupQueryAttention", graph.Attrs{"num_heads": int64(4), "kv_num_heads": int64(2)}, list(x(1, 1, 16), x(1, 1, 8), x(1, 1, 8), x(1, 2, 90, 4), x(1, 2, 90, 4), x(1), ints(10)), list(x(1, 1, 16), x(1, 2, 90, 4), x(1, 2, 90, 4)), numbers{2*320 + 6*40, 320, 320}},
		{"experts", graph.Own, "ExpertMatMul", graph.Attrs{"experts": int64(8), "N": int64(5)}, list(x(1, 3, 1, 16), x(8, 5, 16)), list(x(1, 3, 2, 5)), numbers{2 * 480, 480, 480}},
		{"mixture", ms, "MoE", graph.Attrs{"k": int64(2)}, list(x(3, 16), x(3, 8), x(8, 10, 16), x(), x(8, 16, 5)), list(x(3, 16)), numbers{2 * 1440, 1440, 1440}},
		{"mixture with a gate", ms, "MoE", nil, list(x(1, 3, 16), x(3, 8), x(8, 5, 16), x(8, 5), x(8, 16, 5), x(8, 16), x(8, 5, 16)), list(x(1, 3, 16)), numbers{2 * 720, 720, 720}},
		{"mixture of 4-bit weights", ms, "QMoE", graph.Attrs{"k": int64(2)}, list(x(3, 16), x(3, 8), x(8, 10, 8), x(8, 10), x(), x(8, 16, 3), x(8, 16)), list(x(3, 16)), numbers{2 * 1536, 1536, 1536}},
		{"mixture of unknown weights", ms, "MoE", nil, list(x(3, 16), x(3, 8), nil, x(), x(8, 16, 5)), list(x(3, 16)), numbers{}},
		{"linear, plain", on, "LinearAttention", graph.Attrs{"q_num_heads": int64(4), "kv_num_heads": int64(2), "update_rule": "linear"}, list(x(1, 3, 16), x(1, 3, 8), x(1, 3, 10)), list(x(1, 3, 20)), numbers{2 * 360, 60 * 6, 360}},
		{"linear, gated", on, "LinearAttention", graph.Attrs{"q_num_heads": int64(4), "kv_num_heads": int64(2), "update_rule": "gated"}, list(x(1, 3, 16), x(1, 3, 8), x(1, 3, 10)), list(x(1, 3, 20)), numbers{2*360 + 120, 360, 360}},
		{"linear, delta", on, "LinearAttention", graph.Attrs{"q_num_heads": int64(4), "kv_num_heads": int64(2), "update_rule": "delta"}, list(x(1, 3, 16), x(1, 3, 8), x(1, 3, 10)), list(x(1, 3, 20)), numbers{2 * 480, 480, 480}},
		{"linear, both", on, "LinearAttention", graph.Attrs{"q_num_heads": int64(4), "kv_num_heads": int64(2)}, list(x(1, 3, 16), x(1, 3, 8), x(1, 3, 10)), list(x(1, 3, 20)), numbers{2*480 + 120, 480, 480}},

		{"LpPool", on, "LpPool", graph.Attrs{"kernel_shape": []int64{2, 3}}, list(x(1, 1, 4, 4)), list(x(1, 1, 3, 2)), numbers{6 * 13, 0, 0}},
		{"quantised pool", ms, "QLinearAveragePool", graph.Attrs{"kernel_shape": []int64{2, 3}}, list(x(1, 1, 4, 4)), list(x(1, 1, 3, 2)), numbers{6 * 12, 0, 0}},
		{"pool without kernel", on, "MaxPool", nil, list(x(1, 1, 4, 4)), list(x(1, 1, 3, 2)), numbers{}},
		{"global", on, "GlobalAveragePool", nil, list(x(1, 2, 4, 4)), list(x(1, 2, 1, 1)), numbers{34, 0, 0}},
		{"global maximum", on, "GlobalMaxPool", nil, list(x(1, 2, 4, 4)), list(x(1, 2, 1, 1)), numbers{32, 0, 0}},
		{"global norm", on, "GlobalLpPool", nil, list(x(1, 2, 4, 4)), list(x(1, 2, 1, 1)), numbers{66, 0, 0}},
		{"regions", on, "RoiAlign", graph.Attrs{"sampling_ratio": int64(2)}, list(x(1, 2, 4, 4), x(1, 4), x(1)), list(x(1, 2, 3, 3)), numbers{18 * 40, 0, 0}},
		{"regions, adaptive", on, "RoiAlign", nil, list(x(1, 2, 4, 4), x(1, 4), x(1)), list(x(1, 2, 3, 3)), numbers{nil, 0, 0}},
		{"LRN", on, "LRN", graph.Attrs{"size": int64(5)}, list(x(1, 6)), list(x(1, 6)), numbers{78, 0, 0}},
		{"sum of inputs", on, "Sum", nil, list(x(6), x(6), x(6)), list(x(6)), numbers{12, 0, 0}},
		{"mean of inputs", on, "Mean", nil, list(x(6), x(6), x(6)), list(x(6)), numbers{18, 0, 0}},
		{"cubic", on, "Resize", graph.Attrs{"mode": "cubic"}, list(x(1, 1, 2, 2)), list(x(1, 1, 4, 4)), numbers{16 * 31, 0, 0}},
		{"cubic, one axis", on, "Resize", graph.Attrs{"mode": "cubic"}, list(x(1, 1, 2, 4)), list(x(1, 1, 4, 4)), numbers{16 * 7, 0, 0}},
		{"linear, one axis", on, "Resize", graph.Attrs{"mode": "linear"}, list(x(1, 1, 2, 4)), list(x(1, 1, 4, 4)), numbers{16 * 3, 0, 0}},
		{"of another rank", on, "Resize", graph.Attrs{"mode": "linear"}, list(x(1, 2, 4)), list(x(1, 1, 4, 4)), numbers{}},
		{"another mode", on, "Resize", graph.Attrs{"mode": "x"}, list(x(1, 1, 2, 2)), list(x(1, 1, 4, 4)), numbers{}},
		{"matrices", on, "Det", nil, list(x(4, 3, 3)), list(x(4)), numbers{4 * 18, 0, 0}},
		{"no matrix", on, "Det", nil, list(x(2, 0, 0)), list(x(2)), numbers{0, 0, 0}},
		{"labels", on, "SoftmaxCrossEntropyLoss", nil, list(x(3, 4), x(3)), list(x()), numbers{66, 0, 0}},
		{"transform of a length", on, "DFT", nil, list(x(1, 12, 2), ints(16)), list(x(1, 16, 2)), numbers{5 * 16 * 4, 0, 0}},
		{"transform by a known axis", on, "DFT", nil, list(x(8, 1, 1), nil, ints(-3)), list(x(8, 1, 2)), numbers{5 * 8 * 3 / 2, 0, 0}},
		{"transform of an axis not known", on, "DFT", nil, list(x(8, 1, 1), nil, x()), list(x(8, 1, 2)), numbers{}},
		{"inverse, one-sided", on, "DFT", graph.Attrs{"inverse": int64(1), "onesided": int64(1)}, list(x(1, 9, 2), ints(16)), list(x(1, 16, 1)), numbers{5 * 16 * 4 / 2, 0, 0}},
		{"short transforms", on, "STFT", nil, list(x(2, 64), ints(8), x(16)), list(x(2, 7, 9, 2)), numbers{14*5*16*4/2 + 14*16, 0, 0}},
		{"of a length", on, "STFT", nil, list(x(2, 64, 2), ints(8), nil, ints(16)), list(x(2, 7, 16, 2)), numbers{14 * 5 * 16 * 4, 0, 0}},
		{"two-sided", on, "STFT", graph.Attrs{"onesided": int64(0)}, list(x(2, 64, 1), ints(8)), list(x(2, 7, 16, 2)), numbers{14 * 5 * 16 * 4 / 2, 0, 0}},
		{"of no length", on, "STFT", nil, list(x(2, 64), ints(8)), list(x(2, 7, 9, 2)), numbers{}},
		{"quantised global pool", ms, "QLinearGlobalAveragePool", nil, list(x(1, 2, 4, 4)), list(x(1, 2, 1, 1)), numbers{44, 0, 0}},
		{"one row", ml, "LinearRegressor", graph.Attrs{"coefficients": make([]float32, 4)}, list(x(4)), list(x(1)), numbers{8, 4, 4}},
		{"two tensors of Adam", graph.ONNXTraining, "Adam", nil, list(x(), x(), x(5), x(3), x(5), x(3), x(5), x(3), x(5), x(3)), list(x(5)), numbers{14 * 8, 0, 0}},
		{"Momentum", graph.ONNXTraining, "Momentum", nil, list(x(), x(), x(5), x(5), x(5)), list(x(5)), numbers{35, 0, 0}},
		{"Adagrad", graph.ONNXTraining, "Adagrad", nil, list(x(), x(), x(5), x(5), x(5)), list(x(5)), numbers{45, 0, 0}},
		{"Gradient", graph.ONNXTraining, "Gradient", nil, list(x(5)), list(x(5)), numbers{}},
	}
	for _, tt := range tests {
		n := &graph.Node{Domain: tt.domain, Op: tt.op, Attrs: tt.attrs, Version: 20}
		w := count.Count(&graph.Model{}, &graph.Graph{}, n, tt.in, tt.out)
		got := numbers{number(w.Ops), number(w.MACs), number(w.MACsExecuted)}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Figures up to 2^53 are exact in every reader of JSON; beyond, they are not known.
func TestLargest(t *testing.T) {
	t.Parallel()
	n := &graph.Node{Domain: graph.TFLite, Op: "RELU"}
	for _, tt := range []struct {
		in   []int
		want any
	}{{[]int{1 << 20, 1 << 10}, 1 << 30}, {[]int{1 << 31, 0}, 0}} {
		w := count.Count(&graph.Model{}, &graph.Graph{}, n, list(&tensor.Tensor{Type: tensor.Int8, Shape: tt.in}), list(&tensor.Tensor{Type: tensor.Int8, Shape: tt.in}))
		if got := number(w.Ops); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.in, got, tt.want)
		}
	}
	// 2^26 outputs of 2^27 products are 2^53, one more row is beyond.
	for rows, want := range map[int]any{1 << 26: 1 << 53, 1<<26 + 1: nil} {
		n := &graph.Node{Domain: graph.TFLite, Op: "FULLY_CONNECTED"}
		w := count.Count(&graph.Model{}, &graph.Graph{}, n, list(x(rows, 1<<27), x(1, 1<<27)), list(x(rows, 1)))
		if got := number(w.MACs); got != want {
			t.Errorf("%d rows: %v, want %v", rows, got, want)
		}
	}
}

// The counts of the MLTK profiler with its defects: the batch is ignored, softmax takes
// the first dimension unless there are two, unknown operators are not work.
func TestMLTKByHand(t *testing.T) {
	t.Parallel()
	relu := graph.Attrs{"fused_activation_function": "RELU"}
	with := func(k string, v any, more ...any) graph.Attrs {
		a := graph.Attrs{k: v}
		for i := 0; i < len(more); i += 2 {
			a[more[i].(string)] = more[i+1]
		}
		return a
	}
	for _, tt := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*tensor.Tensor
		out      *tensor.Tensor
		ops, mac any
	}{
		{"dense", "FULLY_CONNECTED", relu, list(x(3, 10), x(4, 10), x(4)), x(3, 4), 80 + 4 + 8, 40},
		{"dense, plain", "FULLY_CONNECTED", nil, list(x(3, 10), x(4, 10)), x(3, 4), 80, 40},
		{"conv", "CONV_2D", relu, list(x(2, 5, 5, 2), x(3, 3, 3, 2), x(3)), x(2, 3, 3, 3), 2*486 + 27 + 54, 486},
		{"depthwise", "DEPTHWISE_CONV_2D", with("depth_multiplier", int64(2)), list(x(2, 5, 5, 3), x(1, 3, 3, 6), x(6)), x(2, 3, 3, 6), 2*486 + 54, 486},
		{"transposed, same", "TRANSPOSE_CONV", with("stride_h", int64(2), "stride_w", int64(3)), list(x(4), x(5, 3, 4, 2), x(1, 3, 4, 2), x(5)), x(1, 6, 12, 5), 2*1440 + 2*2*5, 12 * 5 * 24},
		{"transposed, valid", "TRANSPOSE_CONV", with("padding", "VALID", "stride_h", int64(2), "stride_w", int64(2)), list(x(4), x(5, 3, 3, 2), x(1, 5, 4, 2), x(5)), x(1, 11, 9, 5), 2*9*5*40 + 2*1*5, 9 * 5 * 40},
		{"transposed without bias", "TRANSPOSE_CONV", nil, list(x(4), x(5, 3, 3, 2), x(1, 5, 4, 2)), x(1, 5, 4, 5), 2 * 9 * 5 * 40, 9 * 5 * 40},
		{"maximum", "MAX_POOL_2D", with("filter_height", int64(2), "filter_width", int64(3), "fused_activation_function", "RELU6"), list(x(2, 4, 6, 2)), x(2, 2, 2, 2), 8*6 + 16, 0},
		{"average", "AVERAGE_POOL_2D", with("filter_height", int64(2), "filter_width", int64(3)), list(x(2, 4, 6, 2)), x(2, 2, 2, 2), 8 * 7, 0},
		{"softmax", "SOFTMAX", nil, list(x(3, 10)), x(3, 10), 50, 0},
		{"softmax of three", "SOFTMAX", nil, list(x(3, 10, 7)), x(3, 10, 7), 15, 0},
		{"add", "ADD", nil, list(x(6), x(1)), x(6), 6, 0},
		{"mul", "MUL", nil, list(x(1), x(6)), x(6), 6, 0},
		{"quantize", "QUANTIZE", nil, list(x(6)), x(6), 24, 0},
		{"dequantize", "DEQUANTIZE", nil, list(x(6)), x(6), 12, 0},
		{"relu", "RELU", nil, list(x(6)), x(6), 12, 0},
		{"pad", "PAD", nil, list(x(6)), x(8), 48, 0},
		{"nearest", "RESIZE_NEAREST_NEIGHBOR", nil, list(x(1, 2, 3, 4)), x(1, 4, 6, 4), 4 * (8 + 48), 0},
		{"tanh", "TANH", nil, list(x(6)), x(6), 0, 0},
		{"no shape", "RELU", nil, list(x(-1)), x(-1), nil, nil},
		{"no stride", "TRANSPOSE_CONV", with("stride_h", int64(0)), list(x(4), x(5, 3, 3, 2), x(1, 5, 4, 2)), x(1, 5, 4, 5), nil, nil},
	} {
		w := count.Count(&graph.Model{}, &graph.Graph{}, &graph.Node{Domain: graph.TFLite, Op: tt.op, Attrs: tt.attrs}, tt.in, list(tt.out))
		if got := number(w.MLTKOps); got != tt.ops {
			t.Errorf("%s: %v operations, want %v", tt.name, got, tt.ops)
		}
		if got := number(w.MLTKMACs); got != tt.mac {
			t.Errorf("%s: %v products, want %v", tt.name, got, tt.mac)
		}
	}
	if w := count.Count(&graph.Model{}, &graph.Graph{}, &graph.Node{Domain: graph.ONNX, Op: "Relu"}, list(x(6)), list(x(6))); w.MLTKOps != nil || w.MLTKMACs != nil {
		t.Error("an ONNX operator has counts of the MLTK")
	}
}

// How often bodies run, where a loop's length or axis is odd.
func TestBodiesOdd(t *testing.T) {
	t.Parallel()
	truth := func(v byte) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Bool, Data: []byte{v}} }
	constant := func(v byte) *graph.Node {
		return &graph.Node{Op: "Constant", Outputs: []int{2}, Attrs: graph.Attrs{"value": truth(v)}}
	}
	body := func(nodes ...*graph.Node) *graph.Graph {
		return &graph.Graph{Inputs: []int{0, 1}, Outputs: []int{2}, Values: []*graph.Value{{}, {}, {}, {}}, Nodes: nodes}
	}
	never := body()
	never.Values[2] = &graph.Value{Type: tensor.Bool, Const: truth(0)}
	m := &graph.Model{Graphs: []*graph.Graph{
		{},
		body(constant(1)), body(constant(0)), never,
		body(&graph.Node{Op: "Identity", Inputs: []int{3}, Outputs: []int{2}}, &graph.Node{Op: "Identity", Inputs: []int{1}, Outputs: []int{3}}),
		body(&graph.Node{Op: "Identity", Inputs: []int{2}, Outputs: []int{2}}), // turns in a circle
		{Inputs: []int{0}, Outputs: []int{0}, Values: []*graph.Value{{}}},      // has no condition
		{Inputs: []int{0, 1}, Values: []*graph.Value{{}, {}}},
	}}
	loop := func(g int) graph.Attrs { return graph.Attrs{"body": graph.GraphRef(g)} }
	scan := func(a graph.Attrs) graph.Attrs { a["body"] = graph.GraphRef(1); return a }
	for _, tt := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*tensor.Tensor
		want     []any
	}{
		{"a constant node", "Loop", loop(1), list(ints(7), nil), []any{7}},
		{"a constant that ends it", "Loop", loop(2), list(ints(7), nil), []any{nil}},
		{"a value that ends it", "Loop", loop(3), list(ints(7), nil), []any{nil}},
		{"two identities", "Loop", loop(4), list(ints(7), truth(1)), []any{7}},
		{"a circle", "Loop", loop(5), list(ints(7), truth(1)), []any{nil}},
		{"no condition in the body", "Loop", loop(6), list(ints(7), truth(1)), []any{nil}},
		{"no outputs", "Loop", loop(7), list(ints(7), truth(1)), []any{nil}},
		{"a graph that is absent", "Loop", loop(8), list(ints(7), truth(1)), []any{nil}},
		{"a negative graph", "Loop", loop(-1), list(ints(7), truth(1)), []any{nil}},
		{"fewer than none", "Loop", loop(1), list(ints(-7), nil), []any{0}},
		{"a condition not known", "Loop", loop(1), list(ints(7), &tensor.Tensor{Type: tensor.Bool}), []any{nil}},
		{"two lengths", "Loop", loop(1), list(ints(7, 8), nil), []any{nil}},
		{"scan along an axis", "Scan", scan(graph.Attrs{"num_scan_inputs": int64(2), "scan_input_axes": []int64{1, 0}}), list(x(3), x(9, 2), x(2, 9)), []any{2}},
		{"scan from the end", "Scan", scan(graph.Attrs{"num_scan_inputs": int64(1), "scan_input_axes": []int64{-2}}), list(x(9, 2)), []any{9}},
		{"scan beyond", "Scan", scan(graph.Attrs{"num_scan_inputs": int64(1), "scan_input_axes": []int64{2}}), list(x(9, 2)), []any{nil}},
		{"scan before", "Scan", scan(graph.Attrs{"num_scan_inputs": int64(1), "scan_input_axes": []int64{-3}}), list(x(9, 2)), []any{nil}},
		{"scan of nothing", "Scan", scan(graph.Attrs{}), list(x(9, 2)), []any{nil}},
		{"scan of too many", "Scan", scan(graph.Attrs{"num_scan_inputs": int64(3)}), list(x(9, 2)), []any{nil}},
		{"call", "CALL_ONCE", loop(1), nil, []any{1}},
		{"composite", "STABLEHLO_COMPOSITE", loop(1), nil, []any{1}},
		{"cases", "STABLEHLO_CASE", graph.Attrs{"branches": []graph.GraphRef{1, 2}}, list(x()), []any{nil, nil}},
	} {
		var got []any
		for _, c := range count.Bodies(m, &graph.Node{Op: tt.op, Attrs: tt.attrs}, tt.in, nil) {
			got = append(got, number(c.Times))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Options that readers see, with what goes without saying left out.
func TestOptionsByHand(t *testing.T) {
	t.Parallel()
	long := make([]int64, 60)
	for _, tt := range []struct {
		n    graph.Node
		want string
	}{
		{graph.Node{Domain: graph.TFLite, Op: "DEPTHWISE_CONV_2D", Attrs: graph.Attrs{"depth_multiplier": int64(3), "padding": "VALID", "dilation_h_factor": int64(2)}}, "multiplier:3 padding:valid stride:1x1 dilation:1x2 activation:none"},
		{graph.Node{Domain: graph.TFLite, Op: "TRANSPOSE_CONV", Attrs: graph.Attrs{"stride_h": int64(2), "dilation_w_factor": int64(2)}}, "padding:same stride:1x2 activation:none"},
		{graph.Node{Domain: graph.TFLite, Op: "MAX_POOL_2D", Attrs: graph.Attrs{"filter_width": int64(3), "filter_height": int64(2)}}, "padding:same stride:1x1 filter:3x2 activation:none"},
		{graph.Node{Domain: graph.TFLite, Op: "ADD"}, "activation:none"},
		{graph.Node{Domain: graph.TFLiteCustom, Op: "X", Attrs: graph.Attrs{"axis": int64(1)}}, ""},
		{graph.Node{Op: "Conv", Attrs: graph.Attrs{"strides": []int64{2, 1}, "dilations": []int64{1, 1}, "group": int64(1), "auto_pad": "NOTSET", "pads": []int64{0, 0, 0, 0}}}, "stride:2x1"},
		{graph.Node{Op: "Gemm", Attrs: graph.Attrs{"alpha": float32(0.5), "beta": float32(1), "transB": int64(1)}}, "transB:1 alpha:0.5"},
		{graph.Node{Op: "Elu", Attrs: graph.Attrs{"alpha": float32(math.NaN())}}, ""},
		{graph.Node{Op: "Cast", Attrs: graph.Attrs{"to": int64(1)}}, "to:float32"},
		{graph.Node{Op: "Cast", Attrs: graph.Attrs{"to": int64(23)}}, "to:float4e2m1"},
		{graph.Node{Op: "Cast", Attrs: graph.Attrs{"to": int64(24)}}, "to:24"},
		{graph.Node{Op: "Cast", Attrs: graph.Attrs{"to": int64(0)}}, "to:0"},
		{graph.Node{Op: "Other", Attrs: graph.Attrs{"to": int64(1)}}, "to:1"},
		{graph.Node{Op: "Transpose", Attrs: graph.Attrs{"perm": []int64{1, 0}}}, "perm:1,0"},
		{graph.Node{Op: "Transpose", Attrs: graph.Attrs{"perm": long}}, ""},
		{graph.Node{Op: "Resize", Attrs: graph.Attrs{"mode": "LINEAR"}}, "mode:linear"},
	} {
		if got := words(describe.Options(&tt.n)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.n.Op, got, tt.want)
		}
	}
}
