package count

import "math"

// onnxRules are the operators of ONNX's default domain, all operator sets, and those without a
// domain that old exporters wrote.
func onnxRules() []Rule {
	return []Rule{
		{Group: groupConv, Names: []string{"Conv"}, MACs: "k1·…·kn·Cin/group·elements(output)", Ops: "2·MACs" + biasText, f: func(c *call) amount { return c.onnxConv(1, 2, 0) }},
		{Group: groupConv, Names: []string{"ConvInteger"}, MACs: "k1·…·kn·Cin/group·elements(output)", Ops: "2·MACs", f: func(c *call) amount { return c.onnxConv(1, -1, 0) }},
		{Group: groupConv, Names: []string{"QLinearConv"}, MACs: "k1·…·kn·Cin/group·elements(output)", Ops: "2·MACs" + biasText + " + 4·elements(output) (requantise)", f: func(c *call) amount { return c.onnxConv(3, 8, 4) }},
		{Group: groupConv, Names: []string{"ConvTranspose"}, MACs: "k1·…·kn·Cout/group·elements(input)", Ops: "2·MACs" + biasText, f: (*call).onnxTransposed},
		{Group: groupConv, Names: []string{"DeformConv"}, MACs: "kh·kw·Cin/group·elements(output)", Ops: "2·MACs" + biasText + " + 9·kh·kw·Cin·output positions (interpolation)", f: (*call).deform},
		{Group: groupConv, Names: []string{"CausalConvWithState"}, MACs: "k·Cin/group·elements(output)", Ops: "2·MACs" + biasText + actText, f: (*call).causal},
		{Group: groupConv, Names: []string{"Col2Im"}, MACs: "0", Ops: "elements(input)", f: func(c *call) amount { return opsOnly(c.nin(0)) }},

		{Group: groupProduct, Names: []string{"MatMul", "MatMulInteger"}, MACs: "K·elements(output)", Ops: "2·MACs", f: func(c *call) amount { return c.matmul(c.inner(0), 0) }},
		{Group: groupProduct, Names: []string{"QLinearMatMul"}, MACs: "K·elements(output)", Ops: "2·MACs + 4·elements(output) (requantise)", f: func(c *call) amount { return c.matmul(c.inner(0), c.mul(4, c.nout(0))) }},
		{Group: groupProduct, Names: []string{"Gemm"}, MACs: "K·elements(output)", Ops: "2·MACs + elements(output) if C", f: (*call).gemm},
		{Group: groupProduct, Names: []string{"Einsum"}, MACs: "(inputs - 1)·product of the sizes of all labels; 0 for one input", Ops: "2·MACs; product of the sizes of all labels for a sum over one input", f: (*call).einsum},
		{Group: groupProduct, Names: []string{"Det"}, MACs: "0", Ops: "2/3·n³ for each matrix", f: func(c *call) amount {
			x := c.in(0)
			n := c.dim(x, -1)
			if n == 0 {
				return amount{}
			}
			return opsOnly(c.mul(2, n, c.nin(0)) / 3)
		}},

		{Group: groupRNN, Names: []string{"LSTM"}, MACs: "batch·steps·(elements(W) + elements(R))", Ops: "2·MACs + batch·steps·(18·units + elements(B) + 2·elements(P))", f: func(c *call) amount { return c.onnxRecurrent(lstmUnit) }},
		{Group: groupRNN, Names: []string{"GRU"}, MACs: "batch·steps·(elements(W) + elements(R))", Ops: "2·MACs + batch·steps·(14·units + elements(B))", f: func(c *call) amount { return c.onnxRecurrent(gruUnit) }},
		{Group: groupRNN, Names: []string{"RNN"}, MACs: "batch·steps·(elements(W) + elements(R))", Ops: "2·MACs + batch·steps·(units + elements(B))", f: func(c *call) amount { return c.onnxRecurrent(1) }},

		{Group: groupAttend, Names: []string{"Attention", "FlexAttention"}, MACs: "batch·heads·Sq·Sk·(Dk + Dv), Sk with the past", Ops: attendText, f: (*call).onnxAttention},
		{Group: groupAttend, Names: []string{"LinearAttention"}, MACs: linearText, Ops: linearOpsText, f: (*call).linearAttention},
		perOutputElement(3, "two products, one sum", "RotaryEmbedding").in(groupAttend),

		{Group: groupPool, Names: []string{"AveragePool", "MaxPool"}, MACs: "0", Ops: "k1·…·kn·elements(output)", f: func(c *call) amount { return c.onnxPool(1, 0) }},
		{Group: groupPool, Names: []string{"LpPool"}, MACs: "0", Ops: "(2·k1·…·kn + 1)·elements(output)", f: func(c *call) amount { return c.onnxPool(2, 1) }},
		reduces(1, 1, "", "GlobalAveragePool").in(groupPool),
		reduces(1, 0, "", "GlobalMaxPool").in(groupPool),
		reduces(2, 1, "", "GlobalLpPool").in(groupPool),
		{Group: groupPool, Names: []string{"MaxRoiPool"}, MACs: "0", Ops: "unknown", f: func(*call) amount { return amount{ops: unknown} }},
		{Group: groupPool, Names: []string{"RoiAlign"}, MACs: "0", Ops: "10·sampling_ratio²·elements(output), unknown for an adaptive ratio", f: func(c *call) amount {
			r := c.attr("sampling_ratio", 0)
			if r == 0 {
				return amount{ops: unknown}
			}
			return opsOnly(c.mul(10, r, r, c.nout(0)))
		}},

		perOutputElement(softmaxOps, "compare, subtract, exp, add, divide", "Softmax").in(groupNorm),
		perOutputElement(softmaxOps, "compare, subtract, exp, add, subtract", "LogSoftmax").in(groupNorm),
		perOutputElement(1, "compare", "Hardmax").in(groupNorm),
		perOutputElement(2, "scale and shift, folded", "BatchNormalization", "SpatialBN").in(groupNorm),
		perOutputElement(layerNormOps, "add; subtract; square, add; multiply; scale; shift", "LayerNormalization", "InstanceNormalization", "GroupNormalization").in(groupNorm),
		perOutputElement(5, "add; subtract; square, add; divide", "MeanVarianceNormalization").in(groupNorm),
		perOutputElement(4, "square, add, multiply, scale", "RMSNormalization", "SimplifiedLayerNormalization").in(groupNorm),
		perOutputElement(3, "power, add, divide", "LpNormalization").in(groupNorm),
		{Group: groupNorm, Names: []string{"LRN"}, MACs: "0", Ops: "(2·size + 3)·elements(output) (squares and sums of the window; scale, add, pow, divide)", f: func(c *call) amount {
			return opsOnly(c.mul(2*c.attr("size", 0)+3, c.nout(0)))
		}},

		perOutputElement(1, "", "Add", "Sub", "Mul", "Div", "Mod", "Pow", "And", "Or", "Xor", "Not", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift",
			"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where", "Abs", "Neg", "Ceil", "Floor", "Round", "Sign", "Sqrt", "Reciprocal", "Exp",
			"Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Relu", "IsNaN", "IsInf", "Cast",
			"CastLike", "Range"),
		perOutputElement(2, "compare, multiply", "LeakyRelu", "PRelu", "ThresholdedRelu"),
		perOutputElement(2, "two comparisons", "Clip"),
		perOutputElement(2, "exp, log", "Softplus"),
		perOutputElement(1, "multiply", "Scale"),
		perOutputElement(2, "multiply, add", "Affine", "ImageScaler"),
		perOutputElement(3, "multiply, tanh, multiply", "ScaledTanh"),
		perOutputElement(4, "multiply, exp, log, multiply", "ParametricSoftplus"),
		perOutputElement(3, "absolute value, add, divide", "Softsign"),
		perOutputElement(3, "two comparisons, subtract", "Shrink"),
		perOutputElement(4, "multiply, add, two comparisons", "HardSigmoid"),
		perOutputElement(sigmoidOps, "negate, exp, add, divide", "Sigmoid"),
		perOutputElement(4, "compare, exp, subtract, multiply", "Elu", "Selu"),
		perOutputElement(5, "divide, compare, exp, subtract, multiply", "Celu"),
		perOutputElement(5, "multiply, add, two comparisons, multiply", "HardSwish"),
		perOutputElement(5, "sigmoid, multiply", "Swish", "SwiGLU"),
		perOutputElement(5, "multiply, erf, add, two products", "Gelu"),
		perOutputElement(4, "exp, log, tanh, multiply", "Mish"),
		perOutputElement(3, "random number, compare, multiply", "Bernoulli"),
		{Group: groupElement, Names: []string{"Sum", "Max", "Min"}, MACs: "0", Ops: "(inputs - 1)·elements(output)", f: func(c *call) amount { return opsOnly(c.mul(int64(max(0, len(c.ins)-1)), c.nout(0))) }},
		{Group: groupElement, Names: []string{"Mean"}, MACs: "0", Ops: "inputs·elements(output)", f: func(c *call) amount { return opsOnly(c.mul(int64(len(c.ins)), c.nout(0))) }},
		perOutputElement(5, "products, cosines and sums", "HannWindow", "HammingWindow", "BlackmanWindow"),
		perOutputElement(4, "two differences, divide, compare", "MelWeightMatrix"),
		{Group: groupElement, Names: []string{"Dropout"}, MACs: "0", Ops: "0 (inference)", f: func(*call) amount { return amount{} }},

		reduces(1, 0, "", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ArgMax", "ArgMin", "CumSum", "CumProd"),
		reduces(1, 1, "", "ReduceMean", "ReduceLogSum"),
		reduces(2, 0, "", "ReduceL1", "ReduceSumSquare"),
		reduces(2, 1, "", "ReduceL2", "ReduceLogSumExp"),

		{Group: groupResize, Names: []string{"Resize", "Upsample"}, MACs: "0", Ops: "nearest 0; linear 3·(2^d - 1) and cubic 2·4^d - 1 for every output element, d = number of resized axes", f: (*call).resize},
		{Group: groupResize, Names: []string{"GridSample"}, MACs: "0", Ops: "nearest 0; linear 3·(2^d - 1) and cubic 2·4^d - 1 for every output element, d = spatial axes", f: func(c *call) amount {
			return c.interpolate(len(c.in(0))-2, c.n.Attrs.Str("mode", "linear"))
		}},
		{Group: groupResize, Names: []string{"AffineGrid"}, MACs: "0", Ops: "2·(d + 1)·elements(output), d = spatial axes", f: func(c *call) amount { return opsOnly(c.mul(2, c.dim(c.out(0), -1)+1, c.nout(0))) }},

		{Group: groupFourier, Names: []string{"DFT"}, MACs: "0", Ops: "5·N·log2(N) for each transform of N points, half for real ones", f: (*call).dft},
		{Group: groupFourier, Names: []string{"STFT"}, MACs: "0", Ops: "5·N·log2(N) for each frame, half for real signals, + N products with a window", f: (*call).stft},

		perOutputElement(4, "scale, round, add, saturate", "QuantizeLinear").in(groupQuant),
		perOutputElement(2, "subtract, multiply", "DequantizeLinear").in(groupQuant),
		perOutputElement(6, "least, greatest; scale, round, add, saturate", "DynamicQuantizeLinear").in(groupQuant),
		perOutputElement(6, "quantise and back", "Quant", "BipolarQuant", "FakeQuant").in(groupQuant),

		dataMovement("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Concat", "Split", "Slice", "DynamicSlice", "Gather", "GatherElements", "GatherND",
			"Scatter", "ScatterElements", "ScatterND", "TensorScatter", "Expand", "Tile", "Pad", "Shape", "Size", "Constant", "ConstantOfShape", "ConstantFill", "EyeLike",
			"OneHot", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Trilu", "Crop", "CenterCropPad", "MaxUnpool", "BitCast", "SequenceEmpty", "SequenceConstruct",
			"SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "ConcatFromSequence", "SplitToSequence", "Optional", "OptionalGetElement",
			"OptionalHasElement", "StringConcat"),
		controlFlow("If", "Loop", "Scan", "SequenceMap"),
		dataDependent("TopK", "Unique", "NonZero", "Compress", "NonMaxSuppression", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
			"Multinomial", "TfIdfVectorizer", "StringNormalizer", "StringSplit", "RegexFullMatch", "ImageDecoder"),
		perOutputElement(2, "look up, add", "NegativeLogLikelihoodLoss").in(groupTrain),
		{Group: groupTrain, Names: []string{"SoftmaxCrossEntropyLoss"}, MACs: "0", Ops: "5·elements(input) + 2·elements(labels)", f: func(c *call) amount { return opsOnly(c.mul(softmaxOps, c.nin(0)) + c.mul(2, c.nin(1))) }},
	}
}

const (
	linearText    = "batch·tokens·Dk·Dv·(query heads + key heads, twice for a delta rule)"
	linearOpsText = "2·MACs + batch·tokens·Dk·Dv·key heads if gated"
)

const attendText = "2·MACs + 6·batch·heads·Sq·Sk (scale, softmax) + one more if masked"

// mlRules are the operators of ai.onnx.ml.
func mlRules() []Rule {
	return []Rule{
		{Group: groupProduct, Names: []string{"LinearClassifier", "LinearRegressor"}, MACs: "batch·coefficients", Ops: "2·MACs + batch·intercepts", f: func(c *call) amount {
			x := c.in(0)
			batch := int64(1)
			if len(x) > 1 {
				batch = c.dim(x, 0)
			}
			macs := c.mul(batch, int64(len(c.n.Attrs.Floats("coefficients"))))
			return product(macs, macs, c.mul(batch, int64(len(c.n.Attrs.Floats("intercepts")))))
		}},
		perOutputElement(2, "subtract, multiply", "Scaler"),
		perOutputElement(3, "square or absolute value, add, divide", "Normalizer"),
		perOutputElement(1, "compare", "Binarizer", "Imputer"),
		dataMovement("LabelEncoder", "CategoryMapper", "OneHotEncoder", "ZipMap", "CastMap", "DictVectorizer", "FeatureVectorizer", "ArrayFeatureExtractor"),
		dataDependent("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "SVMClassifier", "SVMRegressor"),
	}
}

// trainingRules are the optimisers. Inputs are rate, step, then tensors.
// ownRules are those of operators that plans and readers write.
func ownRules() []Rule {
	return []Rule{
		perOutputElement(1, "a look-up", "LookUp"),
		{Group: groupProduct, Names: []string{"CodesMatMul"}, MACs: "K·elements(output)", Ops: "2·MACs (unpacking not counted)" + biasText, f: func(c *call) amount { return c.matmul(c.inner(0), c.biased(4, c.nout(0))) }},
		{Group: groupProduct, Names: []string{"ExpertMatMul"}, MACs: "K·elements(output)", Ops: "2·MACs (unpacking not counted)", f: func(c *call) amount { return c.matmul(c.inner(0), 0) }},
		{Group: groupConv, Names: []string{"QLinearConvTranspose"}, MACs: "k1·…·kn·Cout/group·elements(input)", Ops: "2·MACs" + biasText + " + 4·elements(output) (requantise)", f: func(c *call) amount { return c.transposed(3, 8, 4) }},
	}
}

func trainingRules() []Rule {
	return []Rule{
		optimiser(9, 3, "Adagrad"),
		optimiser(14, 4, "Adam"),
		optimiser(7, 3, "Momentum"),
		{Group: groupTrain, Names: []string{"Gradient"}, MACs: "unknown", Ops: "unknown", f: func(*call) amount { return amount{ops: unknown, macs: unknown, exec: unknown} }},
	}
}

// optimiser is k operations per element of each optimised tensor; each of them has per tensors
// among the inputs.
func optimiser(k, per int64, name string) Rule {
	return Rule{Group: groupTrain, Names: []string{name}, MACs: "0", Ops: times(k, "elements(optimised tensors)"), f: func(c *call) amount {
		sum := int64(0)
		for i := 2; i < 2+(len(c.ins)-2)/int(per); i++ {
			sum += c.nin(i)
		}
		return opsOnly(c.mul(k, sum))
	}}
}

// microsoftRules are the operators of com.microsoft that exporters and optimisers write.
func microsoftRules() []Rule {
	return []Rule{
		{Group: groupConv, Names: []string{"FusedConv"}, MACs: "k1·…·kn·Cin/group·elements(output)", Ops: "2·MACs" + biasText + actText, f: func(c *call) amount {
			return c.onnxConv(1, 2, 0)
		}},
		{Group: groupConv, Names: []string{"QLinearConv"}, MACs: "k1·…·kn·Cin/group·elements(output); channels last unknown", Ops: "2·MACs" + biasText + " + 4·elements(output) (requantise)", f: func(c *call) amount {
			c.bad = c.bad || c.n.Attrs.Bool("channels_last", false)
			return c.onnxConv(3, 8, 4)
		}},
		{Group: groupConv, Names: []string{"CausalConvWithState"}, MACs: "k·Cin/group·elements(output)", Ops: "2·MACs" + biasText + actText, f: (*call).causal},
		{Group: groupProduct, Names: []string{"QGemm"}, MACs: "K·elements(output)", Ops: "2·MACs + elements(output) if C + 4·elements(output) (requantise)", f: func(c *call) amount {
			k := -1
			if c.n.Attrs.Bool("transA", false) {
				k = -2
			}
			n := c.nout(0)
			return c.matmul(c.dim(c.in(0), k), c.biased(6, n)+c.mul(4, n))
		}},
		{Group: groupAttend, Names: []string{"LinearAttention"}, MACs: linearText, Ops: linearOpsText, f: (*call).linearAttention},
		{Group: groupPool, Names: []string{"QLinearAveragePool"}, MACs: "0", Ops: "(k1·…·kn + 6)·elements(output) (with dequantise and quantise)", f: func(c *call) amount { return c.onnxPool(1, 6) }},
		perOutputElement(4, "square, add, multiply, scale", "SimplifiedLayerNormalization").in(groupNorm),
		perOutputElement(2, "two sums", "BiasAdd"),
		{Group: groupProduct, Names: []string{"CDist"}, MACs: "K·elements(output)", Ops: "2·MACs + 2·elements(inputs) + 3·elements(output), and a root of each if Euclidean", f: (*call).distances},
		{Group: groupProduct, Names: []string{"MatMulNBits", "MatMulBnb4", "MatMulFpQ4"}, MACs: "K·elements(output)", Ops: "2·MACs (unpacking not counted)", f: func(c *call) amount { return c.matmul(c.inner(0), 0) }},
		{Group: groupProduct, Names: []string{"MoE", "QMoE"}, MACs: "rows·k·weights of an expert", Ops: "2·MACs (routing, activation and unpacking not counted)", f: (*call).mixture},
		{Group: groupProduct, Names: []string{"FusedMatMul", "TransposeMatMul"}, MACs: "K·elements(output)", Ops: "2·MACs", f: (*call).fusedMatMul},
		{Group: groupProduct, Names: []string{"FusedGemm", "GemmFloat8"}, MACs: "K·elements(output)", Ops: "2·MACs + elements(output) if C + activation", f: (*call).gemm},
		{Group: groupProduct, Names: []string{"MatMulInteger16"}, MACs: "K·elements(output)", Ops: "2·MACs", f: func(c *call) amount { return c.matmul(c.inner(0), 0) }},
		{Group: groupProduct, Names: []string{"DynamicQuantizeMatMul"}, MACs: "K·elements(output)", Ops: "2·MACs + 6·elements(input) + 2·elements(output)", f: func(c *call) amount {
			return c.matmul(c.inner(0), c.mul(6, c.nin(0))+c.mul(2, c.nout(0)))
		}},
		{Group: groupProduct, Names: []string{"MatMulIntegerToFloat"}, MACs: "K·elements(output)", Ops: "2·MACs + 2·elements(output)", f: func(c *call) amount { return c.matmul(c.inner(0), c.mul(2, c.nout(0))) }},
		{Group: groupAttend, Names: []string{"Attention"}, MACs: "batch·S·inputs·elements of a row of the weights + batch·heads·S·Sk·(Dk + Dv)", Ops: attendText + " + biases", f: (*call).msAttention},
		{Group: groupAttend, Names: []string{"QAttention"}, MACs: "batch·S·inputs·elements of a row of the weights + batch·heads·S·Sk·(Dk + Dv)", Ops: attendText + " + biases + 2·batch·S·elements of a row of the weights (dequantise)", f: (*call).msAttention},
		{Group: groupRNN, Names: []string{"DynamicQuantizeLSTM"}, MACs: "batch·steps·(elements(W) + elements(R))", Ops: "2·MACs + batch·steps·(18·units + elements(B) + 2·elements(P) + 6·directions·(inputs + hidden) + 16·units) (with quantise and dequantise)", f: func(c *call) amount { return c.onnxRecurrent(lstmUnit) }},
		{Group: groupAttend, Names: []string{"MultiHeadAttention"}, MACs: "batch·heads·Sq·Sk·(Dk + Dv); packed forms unknown", Ops: attendText, f: (*call).msMultiHead},
		{Group: groupAttend, Names: []string{"GroupQueryAttention"}, MACs: "2·batch·heads·Sq·Sk·D, Sk the length of the present key, or the total length in a longer buffer", Ops: attendText + " + 3·elements of query and key if rotary", f: (*call).msGroupQuery},
		perOutputElement(3, "two products, one sum", "RotaryEmbedding").in(groupAttend),
		perOutputElement(layerNormOps+1, "add; layer normalisation", "SkipLayerNormalization").in(groupNorm),
		perOutputElement(5, "add; root-mean-square normalisation", "SkipSimplifiedLayerNormalization").in(groupNorm),
		perOutputElement(layerNormOps+2, "two sums of embeddings; layer normalisation", "EmbedLayerNormalization").in(groupNorm),
		perOutputElement(layerNormOps+8, "dequantise and sum three embeddings; layer normalisation", "QEmbedLayerNormalization").in(groupNorm),
		perOutputElement(layerNormOps, "as GroupNormalization", "GroupNorm").in(groupNorm),
		perOutputElement(8, "square, two products, two sums, tanh, two products", "FastGelu"),
		perOutputElement(5, "multiply, erf, add, two products", "Gelu"),
		perOutputElement(6, "add; gelu", "BiasGelu"),
		perOutputElement(5, "sigmoid, multiply", "QuickGelu"),
		perOutputElement(5, "add; softmax less the shift", "BiasSoftmax").in(groupNorm),
		perOutputElement(7, "dequantise both, operate, quantise", "QLinearAdd", "QLinearMul"),
		perOutputElement(10, "dequantise, sigmoid, quantise", "QLinearSigmoid"),
		perOutputElement(softmaxOps+6, "dequantise, softmax, quantise", "QLinearSoftmax").in(groupNorm),
		perOutputElement(7, "dequantise both, choose, quantise", "QLinearWhere"),
		perOutputElement(8, "dequantise, compare and multiply, quantise", "QLinearLeakyRelu"),
		reduces(1, 6, "", "QLinearGlobalAveragePool").in(groupPool),
		reduces(1, 6, "", "QLinearReduceMean"),
		perOutputElement(4, "scale, round, add, saturate", "QuantizeLinear").in(groupQuant),
		perOutputElement(2, "subtract, multiply", "DequantizeLinear", "DequantizeBlockwise", "GatherBlockQuantized").in(groupQuant),
		dataMovement("QLinearConcat", "ExpandDims", "Pad", "GatherND", "Trilu", "Crop"),
		perOutputElement(1, "", "Range"),
		{Group: groupResize, Names: []string{"GridSample"}, MACs: "0", Ops: "nearest 0; bilinear 9 and bicubic 31 for every output element", f: func(c *call) amount {
			return c.interpolate(len(c.in(0))-2, c.n.Attrs.Str("mode", "bilinear"))
		}},
		{Group: groupResize, Names: []string{"CropAndResize"}, MACs: "0", Ops: "nearest 0; bilinear 9 for every output element", f: func(c *call) amount {
			return c.interpolate(len(c.in(0))-2, c.n.Attrs.Str("mode", "bilinear"))
		}},
		{Group: groupPool, Names: []string{"NhwcMaxPool", "MaxpoolWithMask"}, MACs: "0", Ops: "k1·…·kn·elements(output)", f: func(c *call) amount { return c.onnxPool(1, 0) }},
		{Group: groupConv, Names: []string{"ConvTransposeWithDynamicPads"}, MACs: "k1·…·kn·Cout/group·elements(input)", Ops: "2·MACs" + biasText, f: func(c *call) amount { return c.transposed(1, 3, 0) }},
		{Group: groupProduct, Names: []string{"Inverse"}, MACs: "0", Ops: "2·n³ for each matrix", f: func(c *call) amount {
			return opsOnly(c.mul(2, c.dim(c.in(0), -1), c.nout(0)))
		}},
		dataDependent("MurmurHash3", "Tokenizer", "Unique", "NGramRepeatBlock"),
	}
}

// distances counts distances between rows: squares of both, and their products.
func (c *call) distances() amount {
	root := int64(0)
	if c.n.Attrs.Str("metric", "sqeuclidean") == "euclidean" {
		root = 1
	}
	return c.matmul(c.dim(c.in(0), -1), c.mul(2, c.nin(0)+c.nin(1))+c.mul(3+root, c.nout(0)))
}

func (c *call) deform() amount {
	a := c.onnxConv(1, 3, 0)
	y, w, x := c.out(0), c.in(1), c.in(0)
	if !c.rank(y, 4) || !c.rank(w, 4) || !c.rank(x, 4) {
		return amount{}
	}
	// Tap positions are data-dependent: padding taps are unknown.
	a.exec = a.macs
	a.ops += c.mul(9, int64(w[2]), int64(w[3]), int64(x[1]), int64(y[0]), int64(y[2]), int64(y[3]))
	return a
}

// causal is a one-dimensional convolution whose state replaces padding.
func (c *call) causal() amount {
	w := c.in(1)
	if !c.rank(w, 3) {
		return amount{}
	}
	n := c.nout(0)
	macs := c.mul(n, int64(w[1]), int64(w[2]))
	extra := c.biased(2, n)
	switch c.n.Attrs.Str("activation", "none") {
	case "none", "":
	case "silu", "swish":
		extra += c.mul(5, n)
	default:
		c.bad = true
	}
	return product(macs, macs, extra)
}

func (c *call) resize() amount {
	x, y := c.in(0), c.out(0)
	if len(x) != len(y) {
		c.bad = true
		return amount{}
	}
	d := 0
	for i := range x {
		if x[i] != y[i] {
			d++
		}
	}
	return c.interpolate(d, c.n.Attrs.Str("mode", "nearest"))
}

// interpolate is the work of interpolating over d axes for every output element.
func (c *call) interpolate(d int, mode string) amount {
	if d < 0 || d > 8 {
		c.bad = true
		return amount{}
	}
	switch mode {
	case "nearest":
		return amount{}
	case "linear", "bilinear":
		return opsOnly(c.mul(3*(1<<d-1), c.nout(0)))
	case "cubic", "bicubic":
		return opsOnly(c.mul(2*(1<<(2*d))-1, c.nout(0)))
	}
	c.bad = true
	return amount{}
}

// fft is the nominal 5 N log2 N of a complex transform, half of it when real.
func (c *call) fft(n, transforms int64, real bool) int64 {
	if n < 1 || transforms < 0 || n > 1<<40 {
		c.bad = true
		return 0
	}
	ops := 5 * float64(n) * math.Log2(float64(n)) * float64(transforms)
	if real {
		ops /= 2
	}
	if ops > limit {
		c.bad = true
		return 0
	}
	return int64(math.Round(ops))
}

func (c *call) dft() amount {
	x, y := c.in(0), c.out(0)
	if !c.rank(x, 2) || len(y) != len(x) {
		c.bad = true
		return amount{}
	}
	axis := c.n.Attrs.Int("axis", 1) // an attribute below version 20, then input 2
	if c.n.Version >= 20 {
		axis = -2
		if c.has(2) {
			v := c.ints(2)
			if len(v) != 1 {
				c.bad = true
				return amount{}
			}
			axis = int(v[0])
		}
	}
	n := c.dim(x, axis)
	if v := c.ints(1); len(v) == 1 {
		n = v[0]
	} else if c.has(1) {
		n = c.dim(y, axis) // exact unless one-sided
	}
	line := c.mul(c.dim(y, axis), c.dim(y, -1))
	if c.bad || line == 0 {
		return amount{}
	}
	inverse := c.n.Attrs.Bool("inverse", false)
	real := x[len(x)-1] == 1 || inverse && c.n.Attrs.Bool("onesided", false)
	return opsOnly(c.fft(n, c.nout(0)/line, real))
}

func (c *call) stft() amount {
	x, y := c.in(0), c.out(0)
	if !c.rank(x, 2) || !c.rank(y, 4) {
		return amount{}
	}
	frames := c.mul(int64(y[0]), int64(y[1]))
	var n int64
	switch v := c.ints(3); {
	case len(v) == 1:
		n = v[0]
	case c.has(2):
		n = c.nin(2)
	case !c.n.Attrs.Bool("onesided", true):
		n = int64(y[2])
	default:
		c.bad = true
		return amount{}
	}
	real := len(x) == 2 || x[len(x)-1] == 1
	ops := c.fft(n, frames, real)
	if c.has(2) {
		ops += c.mul(n, frames)
	}
	return opsOnly(ops)
}
