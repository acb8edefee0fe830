package tfliteop

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// recorded are results of LiteRT 2.3.0's reference kernels (BUILTIN_REF), for inputs and weights
// that [recordedTensor] generates. Recorded on amd64.
var recorded = []recordedCase{
	{
		"float convolution with int8 weights, one scale", "CONV_2D",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 6, 6, 3}, seed: 101},
			{t: tensor.Int8, shape: []int{5, 3, 3, 3}, seed: 102, scale: []float32{0.011212789453566074}, fixed: true},
			{t: tensor.Float32, shape: []int{5}, seed: 103, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 360, hash: 0x684cc3816d66c2a0},
	},
	{
		"float convolution with int8 weights, scale a channel", "CONV_2D",
		graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2), "fused_activation_function": "RELU"},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 7, 4}, seed: 105},
			{t: tensor.Int8, shape: []int{6, 3, 3, 4}, seed: 106, scale: []float32{0.019108345732092857, 0.004594873171299696, 0.01907568983733654, 0.007612966001033783, 0.009619875811040401, 0.01689864695072174}, fixed: true},
			{t: tensor.Float32, shape: []int{6}, seed: 107, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 108, hash: 0xcda23f91c7b5cf3d},
	},
	{
		"float convolution with int8 weights, scale a channel, deep", "CONV_2D",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "RELU6"},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 4, 4, 64}, seed: 109},
			{t: tensor.Int8, shape: []int{3, 3, 3, 64}, seed: 110, scale: []float32{0.009365584701299667, 0.01189268659800291, 0.002496063942089677}, fixed: true},
			{t: tensor.Float32, shape: []int{3}, seed: 111, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 96, hash: 0xb77c51a6b19e07be},
	},
	{
		"float convolution with int8 weights, one scale, deep", "CONV_2D",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 3, 3, 128}, seed: 113},
			{t: tensor.Int8, shape: []int{2, 3, 3, 128}, seed: 114, scale: []float32{0.015563235618174076}, fixed: true},
			{t: tensor.Float32, shape: []int{2}, seed: 115, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 36, hash: 0xc605dc2c7ae3d450},
	},
	{
		"float depthwise convolution with int8 weights, multiplier 1", "DEPTHWISE_CONV_2D",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "NONE", "depth_multiplier": int64(1)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 7, 4}, seed: 117},
			{t: tensor.Int8, shape: []int{1, 3, 3, 4}, seed: 118, scale: []float32{0.011686579324305058, 0.007935171015560627, 0.016191717237234116, 0.0074575068429112434}, axis: 3, fixed: true},
			{t: tensor.Float32, shape: []int{4}, seed: 119, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 392, hash: 0xe5279a5dd278494f},
	},
	{
		"float depthwise convolution with int8 weights, multiplier 2", "DEPTHWISE_CONV_2D",
		graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2), "fused_activation_function": "NONE", "depth_multiplier": int64(2)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 7, 4}, seed: 121},
			{t: tensor.Int8, shape: []int{1, 3, 3, 8}, seed: 122, scale: []float32{0.010162961669266224, 0.004412750713527203, 0.009256034158170223, 0.005662194453179836, 0.006721640005707741, 0.01550656370818615, 0.007047357503324747, 0.010733437724411488}, axis: 3, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 123, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 144, hash: 0x1286b2dea2e9d948},
	},
	{
		"transposed convolution, stride 1", "TRANSPOSE_CONV",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{4}, whole: []int32{1, 5, 5, 4}},
			{t: tensor.Float32, shape: []int{4, 3, 3, 6}, seed: 126, fixed: true},
			{t: tensor.Float32, shape: []int{1, 5, 5, 6}, seed: 127},
			{t: tensor.Float32, shape: []int{4}, seed: 128, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 100, hash: 0xaca6e8ab2044d963},
	},
	{
		"transposed convolution of int8, stride 1", "TRANSPOSE_CONV",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{4}, whole: []int32{1, 5, 5, 4}},
			{t: tensor.Int8, shape: []int{4, 3, 3, 6}, seed: 131, scale: []float32{0.01965327002108097, 0.01930982992053032, 0.01504621934145689, 0.011742083355784416}, fixed: true},
			{t: tensor.Int8, shape: []int{1, 5, 5, 6}, seed: 132, scale: []float32{0.05000000074505806}, zero: -5},
		},
		recordedOutput{t: tensor.Int8, scale: 0.30000001192092896, zero: 3, len: 100, hash: 0xe7e50450392fdb7a},
	},
	{
		"transposed convolution of uint8, stride 1", "TRANSPOSE_CONV",
		graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{4}, whole: []int32{1, 5, 5, 4}},
			{t: tensor.Uint8, shape: []int{4, 3, 3, 6}, seed: 135, scale: []float32{0.010999999940395355}, zero: 130, fixed: true},
			{t: tensor.Uint8, shape: []int{1, 5, 5, 6}, seed: 136, scale: []float32{0.05000000074505806}, zero: 120},
		},
		recordedOutput{t: tensor.Uint8, scale: 0.30000001192092896, zero: 3, len: 100, hash: 0x8c29041f2556527c},
	},
	{
		"convolution of a volume, stride 1", "CONV_3D",
		graph.Attrs{"padding": "SAME", "stride_d": int64(1), "stride_h": int64(1), "stride_w": int64(1)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{1, 4, 5, 3, 3}, seed: 138},
			{t: tensor.Float32, shape: []int{2, 2, 2, 3, 4}, seed: 139, fixed: true},
			{t: tensor.Float32, shape: []int{4}, seed: 140, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 240, hash: 0x09222385acbadc82},
	},
	{
		"transposed convolution of a volume, stride 1", "CONV_3D_TRANSPOSE",
		graph.Attrs{"padding": "SAME", "stride_d": int64(1), "stride_h": int64(1), "stride_w": int64(1)},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{5}, whole: []int32{1, 4, 5, 3, 4}},
			{t: tensor.Float32, shape: []int{2, 2, 2, 4, 3}, seed: 143, fixed: true},
			{t: tensor.Float32, shape: []int{1, 4, 5, 3, 3}, seed: 144},
			{t: tensor.Float32, shape: []int{4}, seed: 145, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 240, hash: 0xf2545703f1fd2a91},
	},
	{
		"transposed convolution, stride 2", "TRANSPOSE_CONV",
		graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{4}, whole: []int32{1, 11, 11, 4}},
			{t: tensor.Float32, shape: []int{4, 3, 3, 6}, seed: 148, fixed: true},
			{t: tensor.Float32, shape: []int{1, 5, 5, 6}, seed: 149},
			{t: tensor.Float32, shape: []int{4}, seed: 150, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 484, hash: 0x31c87a14daa5ce1c},
	},
	{
		"transposed convolution of int8, stride 2", "TRANSPOSE_CONV",
		graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{4}, whole: []int32{1, 11, 11, 4}},
			{t: tensor.Int8, shape: []int{4, 3, 3, 6}, seed: 153, scale: []float32{0.006984041538089514, 0.004891735967248678, 0.019458657130599022, 0.011289234273135662}, fixed: true},
			{t: tensor.Int8, shape: []int{1, 5, 5, 6}, seed: 154, scale: []float32{0.05000000074505806}, zero: -5},
		},
		recordedOutput{t: tensor.Int8, scale: 0.30000001192092896, zero: 3, len: 484, hash: 0x1bf2f7946de42e75},
	},
	{
		"transposed convolution of uint8, stride 2", "TRANSPOSE_CONV",
		graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2), "fused_activation_function": "NONE"},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{4}, whole: []int32{1, 11, 11, 4}},
			{t: tensor.Uint8, shape: []int{4, 3, 3, 6}, seed: 157, scale: []float32{0.010999999940395355}, zero: 130, fixed: true},
			{t: tensor.Uint8, shape: []int{1, 5, 5, 6}, seed: 158, scale: []float32{0.05000000074505806}, zero: 120},
		},
		recordedOutput{t: tensor.Uint8, scale: 0.30000001192092896, zero: 3, len: 484, hash: 0xce8da696d7654ce5},
	},
	{
		"convolution of a volume, stride 2", "CONV_3D",
		graph.Attrs{"padding": "VALID", "stride_d": int64(2), "stride_h": int64(2), "stride_w": int64(2)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{1, 4, 5, 3, 3}, seed: 160},
			{t: tensor.Float32, shape: []int{2, 2, 2, 3, 4}, seed: 161, fixed: true},
			{t: tensor.Float32, shape: []int{4}, seed: 162, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 16, hash: 0x6e31a796c831e765},
	},
	{
		"transposed convolution of a volume, stride 2", "CONV_3D_TRANSPOSE",
		graph.Attrs{"padding": "VALID", "stride_d": int64(2), "stride_h": int64(2), "stride_w": int64(2)},
		[]recordedTensor{
			{t: tensor.Int32, shape: []int{5}, whole: []int32{1, 8, 10, 6, 4}},
			{t: tensor.Float32, shape: []int{2, 2, 2, 4, 3}, seed: 165, fixed: true},
			{t: tensor.Float32, shape: []int{1, 4, 5, 3, 3}, seed: 166},
			{t: tensor.Float32, shape: []int{4}, seed: 167, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 1920, hash: 0x645b42e55a753586},
	},
	{
		"fully connected with int8 weights, symmetric, 33 inputs", "FULLY_CONNECTED",
		graph.Attrs{"asymmetric_quantize_inputs": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 33}, seed: 169},
			{t: tensor.Int8, shape: []int{8, 33}, seed: 170, scale: []float32{0.0040855808183550835}, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 171, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0x8dfce668a74e1b48},
	},
	{
		"fully connected with int8 weights, symmetric, 20 inputs", "FULLY_CONNECTED",
		graph.Attrs{"asymmetric_quantize_inputs": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 20}, seed: 173},
			{t: tensor.Int8, shape: []int{8, 20}, seed: 174, scale: []float32{0.013222815468907356, 0.015980295836925507, 0.013034059666097164, 0.01851135864853859, 0.0027126718778163195, 0.011514606885612011, 0.010268045589327812, 0.003122292459011078}, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 175, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0x4418c107a8251d35},
	},
	{
		"fully connected with int8 weights, symmetric, 1500 inputs", "FULLY_CONNECTED",
		graph.Attrs{"asymmetric_quantize_inputs": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 1500}, seed: 177},
			{t: tensor.Int8, shape: []int{8, 1500}, seed: 178, scale: []float32{0.01354390662163496, 0.017347391694784164, 0.012672938406467438, 0.006681754253804684, 0.01711786724627018, 0.011170925572514534, 0.011195999570190907, 0.01555454358458519}, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 179, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0x9613884d1bf8dd1d},
	},
	{
		"matrix multiplication with int8, symmetric, transposed 0 0", "BATCH_MATMUL",
		graph.Attrs{"asymmetric_quantize_inputs": false, "adj_x": false, "adj_y": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 5, 9}, seed: 181},
			{t: tensor.Int8, shape: []int{2, 9, 7}, seed: 182, scale: []float32{0.004662596620619297}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0x2016669ebb91bb8f},
	},
	{
		"matrix multiplication with int8, symmetric, transposed 1 0", "BATCH_MATMUL",
		graph.Attrs{"asymmetric_quantize_inputs": false, "adj_x": true, "adj_y": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 9, 5}, seed: 184},
			{t: tensor.Int8, shape: []int{2, 9, 7}, seed: 185, scale: []float32{0.01675328053534031}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0x9a78e56e26a02413},
	},
	{
		"matrix multiplication with int8, symmetric, transposed 0 1", "BATCH_MATMUL",
		graph.Attrs{"asymmetric_quantize_inputs": false, "adj_x": false, "adj_y": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 5, 9}, seed: 187},
			{t: tensor.Int8, shape: []int{2, 7, 9}, seed: 188, scale: []float32{0.014299164526164532}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0xfd63950c7fe0574e},
	},
	{
		"recurrent layer with int8 weights, symmetric", "UNIDIRECTIONAL_SEQUENCE_RNN",
		graph.Attrs{"asymmetric_quantize_inputs": false, "time_major": true, "fused_activation_function": "RELU"},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{4, 1, 10}, seed: 190},
			{t: tensor.Int8, shape: []int{6, 10}, seed: 191, scale: []float32{0.016167744994163513}, fixed: true},
			{t: tensor.Int8, shape: []int{6, 6}, seed: 192, scale: []float32{0.005449092481285334}, fixed: true},
			{t: tensor.Float32, shape: []int{6}, seed: 193, fixed: true},
			{t: tensor.Float32, shape: []int{1, 6}, state: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0x430cafbd113b2188},
	},
	{
		"fully connected with int8 weights, asymmetric, 33 inputs", "FULLY_CONNECTED",
		graph.Attrs{"asymmetric_quantize_inputs": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 33}, seed: 196},
			{t: tensor.Int8, shape: []int{8, 33}, seed: 197, scale: []float32{0.0164425540715456}, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 198, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0x6bd7bc94f765b4e5},
	},
	{
		"fully connected with int8 weights, asymmetric, 20 inputs", "FULLY_CONNECTED",
		graph.Attrs{"asymmetric_quantize_inputs": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 20}, seed: 200},
			{t: tensor.Int8, shape: []int{8, 20}, seed: 201, scale: []float32{0.005443830508738756, 0.0034679470118135214, 0.017394086346030235, 0.017503103241324425, 0.017777668312191963, 0.010494374670088291, 0.006932870950549841, 0.0021276529878377914}, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 202, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0xd6a7dd7eaabe06fe},
	},
	{
		"fully connected with int8 weights, asymmetric, 1500 inputs", "FULLY_CONNECTED",
		graph.Attrs{"asymmetric_quantize_inputs": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 1500}, seed: 204},
			{t: tensor.Int8, shape: []int{8, 1500}, seed: 205, scale: []float32{0.013622975908219814, 0.014958368614315987, 0.017040245234966278, 0.007073801010847092, 0.005873926915228367, 0.0135079650208354, 0.016490986570715904, 0.019346075132489204}, fixed: true},
			{t: tensor.Float32, shape: []int{8}, seed: 206, fixed: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0xbbd5fdc1e589598d},
	},
	{
		"matrix multiplication with int8, asymmetric, transposed 0 0", "BATCH_MATMUL",
		graph.Attrs{"asymmetric_quantize_inputs": true, "adj_x": false, "adj_y": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 5, 9}, seed: 208},
			{t: tensor.Int8, shape: []int{2, 9, 7}, seed: 209, scale: []float32{0.004709446802735329}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0xe99e3f580d670de4},
	},
	{
		"matrix multiplication with int8, asymmetric, transposed 1 0", "BATCH_MATMUL",
		graph.Attrs{"asymmetric_quantize_inputs": true, "adj_x": true, "adj_y": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 9, 5}, seed: 211},
			{t: tensor.Int8, shape: []int{2, 9, 7}, seed: 212, scale: []float32{0.010679823346436024}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0x7139e2952770bb68},
	},
	{
		"matrix multiplication with int8, asymmetric, transposed 0 1", "BATCH_MATMUL",
		graph.Attrs{"asymmetric_quantize_inputs": true, "adj_x": false, "adj_y": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 5, 9}, seed: 214},
			{t: tensor.Int8, shape: []int{2, 7, 9}, seed: 215, scale: []float32{0.018104884773492813}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0xed574f637c806177},
	},
	{
		"recurrent layer with int8 weights, asymmetric", "UNIDIRECTIONAL_SEQUENCE_RNN",
		graph.Attrs{"asymmetric_quantize_inputs": true, "time_major": true, "fused_activation_function": "RELU"},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{4, 1, 10}, seed: 217},
			{t: tensor.Int8, shape: []int{6, 10}, seed: 218, scale: []float32{0.009608903899788857}, fixed: true},
			{t: tensor.Int8, shape: []int{6, 6}, seed: 219, scale: []float32{0.012611037120223045}, fixed: true},
			{t: tensor.Float32, shape: []int{6}, seed: 220, fixed: true},
			{t: tensor.Float32, shape: []int{1, 6}, state: true},
		},
		recordedOutput{t: tensor.Float32, len: 24, hash: 0x8274f51dae619b38},
	},
	{
		"mean along [1, 2]", "MEAN",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 223},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{1, 2}},
		},
		recordedOutput{t: tensor.Float32, len: 18, hash: 0xb9f9e3fb88536e5d},
	},
	{
		"mean along [0, 3]", "MEAN",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 226},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{0, 3}},
		},
		recordedOutput{t: tensor.Float32, len: 35, hash: 0x926d39d600ed1066},
	},
	{
		"mean along [3]", "MEAN",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 229},
			{t: tensor.Int32, shape: []int{1}, whole: []int32{3}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0x9cbe788ca78352fb},
	},
	{
		"sum along [1, 2]", "SUM",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 232},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{1, 2}},
		},
		recordedOutput{t: tensor.Float32, len: 18, hash: 0xf1e0d5b9783a7e7d},
	},
	{
		"sum along [0, 3]", "SUM",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 235},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{0, 3}},
		},
		recordedOutput{t: tensor.Float32, len: 35, hash: 0x830b2e14dcdeb109},
	},
	{
		"sum along [3]", "SUM",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 238},
			{t: tensor.Int32, shape: []int{1}, whole: []int32{3}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0x86eae364aac2c60a},
	},
	{
		"reduce prod along [1, 2]", "REDUCE_PROD",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 241},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{1, 2}},
		},
		recordedOutput{t: tensor.Float32, len: 18, hash: 0x45fd7560722b769a},
	},
	{
		"reduce prod along [0, 3]", "REDUCE_PROD",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 244},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{0, 3}},
		},
		recordedOutput{t: tensor.Float32, len: 35, hash: 0x72656cf4eaa26396},
	},
	{
		"reduce prod along [3]", "REDUCE_PROD",
		graph.Attrs{"keep_dims": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 7, 5, 9}, seed: 247},
			{t: tensor.Int32, shape: []int{1}, whole: []int32{3}},
		},
		recordedOutput{t: tensor.Float32, len: 70, hash: 0x6b74370baf997b3b},
	},
	{
		"running sum", "CUMSUM",
		graph.Attrs{"reverse": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{3, 40, 4}, seed: 250},
			{t: tensor.Int32, shape: []int{}, whole: []int32{1}},
		},
		recordedOutput{t: tensor.Float32, len: 480, hash: 0x5fe92356daa78ffa},
	},
	{
		"Euclidean norm", "L2_NORMALIZATION",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{1, 3, 5, 40}, seed: 253},
		},
		recordedOutput{t: tensor.Float32, len: 600, hash: 0x5863f31f2c953828},
	},
	{
		"Euclidean norm of int8", "L2_NORMALIZATION",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int8, shape: []int{1, 3, 5, 40}, seed: 255, scale: []float32{0.10000000149011612}, zero: 7},
		},
		recordedOutput{t: tensor.Int8, scale: 0.0078125, zero: 0, len: 600, hash: 0xc0844c36e94f7257},
	},
	{
		"Euclidean norm of uint8", "L2_NORMALIZATION",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Uint8, shape: []int{1, 3, 5, 40}, seed: 257, scale: []float32{0.10000000149011612}, zero: 117},
		},
		recordedOutput{t: tensor.Uint8, scale: 0.0078125, zero: 128, len: 600, hash: 0xda1005cad976bb51},
	},
	{
		"softmax", "SOFTMAX",
		graph.Attrs{"beta": float32(0.7)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5, 40}, seed: 259},
		},
		recordedOutput{t: tensor.Float32, len: 200, hash: 0x959c220de6ed2be2},
	},
	{
		"softmax of int16", "SOFTMAX",
		graph.Attrs{"beta": float32(0.7)},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{50, 40}, seed: 261, scale: []float32{0.00021300000662449747}},
		},
		recordedOutput{t: tensor.Int16, scale: 3.0517578125e-05, zero: 0, len: 2000, hash: 0xf46e1d917cd89edc},
	},
	{
		"logarithm of softmax", "LOG_SOFTMAX",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5, 40}, seed: 263},
		},
		recordedOutput{t: tensor.Float32, len: 200, hash: 0x7af389010e4f4bdc},
	},
	{
		"matrix multiplication, transposed 0 0", "BATCH_MATMUL",
		graph.Attrs{"adj_x": false, "adj_y": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 3, 60}, seed: 265},
			{t: tensor.Float32, shape: []int{2, 60, 7}, seed: 266},
		},
		recordedOutput{t: tensor.Float32, len: 42, hash: 0x96c93970afa52775},
	},
	{
		"matrix multiplication, transposed 0 1", "BATCH_MATMUL",
		graph.Attrs{"adj_x": false, "adj_y": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 3, 60}, seed: 268},
			{t: tensor.Float32, shape: []int{2, 7, 60}, seed: 269},
		},
		recordedOutput{t: tensor.Float32, len: 42, hash: 0xd5e8aec7259d5ae1},
	},
	{
		"matrix multiplication, transposed 1 0", "BATCH_MATMUL",
		graph.Attrs{"adj_x": true, "adj_y": false},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{2, 60, 3}, seed: 271},
			{t: tensor.Float32, shape: []int{2, 60, 7}, seed: 272},
		},
		recordedOutput{t: tensor.Float32, len: 42, hash: 0xa0c6e7b444fc2a97},
	},
	{
		"average pooling", "AVERAGE_POOL_2D",
		graph.Attrs{"padding": "SAME", "stride_h": int64(2), "stride_w": int64(2), "filter_height": int64(3), "filter_width": int64(3)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{1, 8, 9, 5}, seed: 274},
		},
		recordedOutput{t: tensor.Float32, len: 100, hash: 0x165a3e80a99a4733},
	},
	{
		"l2 pooling", "L2_POOL_2D",
		graph.Attrs{"padding": "SAME", "stride_h": int64(2), "stride_w": int64(2), "filter_height": int64(3), "filter_width": int64(3)},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{1, 8, 9, 5}, seed: 276},
		},
		recordedOutput{t: tensor.Float32, len: 100, hash: 0xe2c96a67d2bad875},
	},
	{
		"bilinear resizing of floats", "RESIZE_BILINEAR",
		graph.Attrs{"half_pixel_centers": true},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{1, 6, 7, 3}, seed: 278},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{11, 9}},
		},
		recordedOutput{t: tensor.Float32, len: 297, hash: 0xe32c1cfd24ce78db},
	},
	{
		"bilinear resizing of uint8", "RESIZE_BILINEAR",
		graph.Attrs{"half_pixel_centers": true},
		[]recordedTensor{
			{t: tensor.Uint8, shape: []int{1, 6, 7, 3}, seed: 281, scale: []float32{0.019999999552965164}, zero: 5},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{11, 9}},
		},
		recordedOutput{t: tensor.Uint8, scale: 0.019999999552965164, zero: 5, len: 297, hash: 0x48609a01f266ecee},
	},
	{
		"bilinear resizing of int8", "RESIZE_BILINEAR",
		graph.Attrs{"half_pixel_centers": true},
		[]recordedTensor{
			{t: tensor.Int8, shape: []int{1, 6, 7, 3}, seed: 284, scale: []float32{0.019999999552965164}, zero: 5},
			{t: tensor.Int32, shape: []int{2}, whole: []int32{11, 9}},
		},
		recordedOutput{t: tensor.Int8, scale: 0.019999999552965164, zero: 5, len: 297, hash: 0x54b435d910e1de8e},
	},
	{
		"product of int16 at 0.000311", "MUL",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{6000}, seed: 287, scale: []float32{0.0003110000106971711}},
			{t: tensor.Int16, shape: []int{6000}, seed: 288, scale: []float32{0.00041700000292621553}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0034000000450760126, zero: 0, len: 6000, hash: 0x7ba0bf141e73d295},
	},
	{
		"rectifier of int16 at 0.000311", "RELU",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{20000}, seed: 290, scale: []float32{0.0003110000106971711}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.00041700000292621553, zero: 0, len: 20000, hash: 0x08850ce321192852},
	},
	{
		"magnitude of int16 at 0.000311", "ABS",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{20000}, seed: 292, scale: []float32{0.00041700000292621553}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0003110000106971711, zero: 0, len: 20000, hash: 0x72182654beed40ba},
	},
	{
		"rectifier of int16 at 0.00052", "RELU",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{20000}, seed: 297, scale: []float32{0.0005200000014156103}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0002899999963119626, zero: 0, len: 20000, hash: 0x57be9430f1aa82eb},
	},
	{
		"magnitude of int16 at 0.00052", "ABS",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{20000}, seed: 299, scale: []float32{0.0002899999963119626}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0005200000014156103, zero: 0, len: 20000, hash: 0xd9feb182e9c5a92f},
	},
	{
		"rectifier of int16 at 0.000777", "RELU",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{20000}, seed: 304, scale: []float32{0.0007769999792799354}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0001230000052601099, zero: 0, len: 20000, hash: 0x4e5cfff031d76833},
	},
	{
		"magnitude of int16 at 0.000777", "ABS",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{20000}, seed: 306, scale: []float32{0.0001230000052601099}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0007769999792799354, zero: 0, len: 20000, hash: 0x4bef8e9db80da639},
	},
	{
		"logarithm of int8", "LOG",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int8, shape: []int{512}, seed: 308, scale: []float32{0.029999999329447746}, zero: -100},
		},
		recordedOutput{t: tensor.Int8, scale: 0.08500000089406967, zero: 40, len: 512, hash: 0x3461ebf9bda5b535},
	},
	{
		"logarithm of int16", "LOG",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Int16, shape: []int{4000}, seed: 310, scale: []float32{0.0003000000142492354}},
		},
		recordedOutput{t: tensor.Int16, scale: 0.0005000000237487257, zero: 0, len: 4000, hash: 0xbaea4ff5962c3f74},
	},
	{
		"sine", "SIN",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5000}, seed: 312},
		},
		recordedOutput{t: tensor.Float32, len: 5000, hash: 0xe37e96c30fd5c80e},
	},
	{
		"cosine", "COS",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5000}, seed: 314},
		},
		recordedOutput{t: tensor.Float32, len: 5000, hash: 0xf9f7d190c79d31d9},
	},
	{
		"exponential", "EXP",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5000}, seed: 316},
		},
		recordedOutput{t: tensor.Float32, len: 5000, hash: 0xdac6ab3babfe3276},
	},
	{
		"hyperbolic tangent", "TANH",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5000}, seed: 318},
		},
		recordedOutput{t: tensor.Float32, len: 5000, hash: 0xc623894d19bfa18a},
	},
	{
		"logistic function", "LOGISTIC",
		graph.Attrs{},
		[]recordedTensor{
			{t: tensor.Float32, shape: []int{5000}, seed: 320},
		},
		recordedOutput{t: tensor.Float32, len: 5000, hash: 0xb3c7cfd22092ead7},
	},
}
