package count

import "strings"

const (
	biasText = " + elements(output) if bias"
	actText  = " + activation"
)

// liteRules are the builtin operators of TFLite.
func liteRules() []Rule {
	return []Rule{
		{Group: groupConv, Names: []string{"CONV_2D"}, MACs: "kh·kw·Cin/groups·elements(output)", Ops: "2·MACs" + biasText + actText, f: (*call).liteConv},
		{Group: groupConv, Names: []string{"DEPTHWISE_CONV_2D"}, MACs: "kh·kw·elements(output)", Ops: "2·MACs" + biasText + actText, f: (*call).liteDepthwise},
		{Group: groupConv, Names: []string{"TRANSPOSE_CONV"}, MACs: "kh·kw·Cout·elements(input)", Ops: "2·MACs" + biasText + actText, f: func(c *call) amount { return c.liteTransposed(2, 1, 3) }},
		{Group: groupConv, Names: []string{"CONV_3D"}, MACs: "kd·kh·kw·Cin·elements(output)", Ops: "2·MACs" + biasText + actText, f: (*call).liteConv3D},
		{Group: groupConv, Names: []string{"CONV_3D_TRANSPOSE"}, MACs: "kd·kh·kw·Cout·elements(input)", Ops: "2·MACs" + biasText + actText, f: (*call).liteTransposed3D},
		{Group: groupConv, Names: []string{"STABLEHLO_CONVOLUTION"}, MACs: "elements(kernel)/output features·elements(output)", Ops: "2·MACs", f: (*call).hloConv},

		{Group: groupProduct, Names: []string{"FULLY_CONNECTED"}, MACs: "inputs of a unit·elements(output)", Ops: "2·MACs" + biasText + actText, f: (*call).liteFullyConnected},
		{Group: groupProduct, Names: []string{"BATCH_MATMUL"}, MACs: "K·elements(output)", Ops: "2·MACs", f: (*call).liteBatchMatMul},
		{Group: groupProduct, Names: []string{"STABLEHLO_DOT_GENERAL"}, MACs: "contracted dimensions of the left factor·elements(output)", Ops: "2·MACs", f: (*call).dotGeneral},

		{Group: groupRNN, Names: []string{"LSTM"}, MACs: "batch·(elements of input, recurrent and projection weights)", Ops: lstmText, f: (*call).liteLSTMCell},
		{Group: groupRNN, Names: []string{"UNIDIRECTIONAL_SEQUENCE_LSTM"}, MACs: "batch·steps·(elements of input, recurrent and projection weights)", Ops: lstmText, f: (*call).liteSequenceLSTM},
		{Group: groupRNN, Names: []string{"BIDIRECTIONAL_SEQUENCE_LSTM"}, MACs: "batch·steps·(elements of input, recurrent, auxiliary and projection weights of both directions)", Ops: lstmText, f: (*call).liteBidirectionalLSTM},
		{Group: groupRNN, Names: []string{"RNN"}, MACs: "batch·(elements of input and recurrent weights)", Ops: "2·MACs + batch·(units if bias) + activation", f: (*call).liteRNNCell},
		{Group: groupRNN, Names: []string{"UNIDIRECTIONAL_SEQUENCE_RNN"}, MACs: "batch·steps·(elements of input and recurrent weights)", Ops: "2·MACs + batch·steps·(units if bias) + activation", f: (*call).liteSequenceRNN},
		{Group: groupRNN, Names: []string{"BIDIRECTIONAL_SEQUENCE_RNN"}, MACs: "batch·steps·(elements of input, recurrent and auxiliary weights of both directions)", Ops: "2·MACs + batch·steps·(units if bias) + activation", f: (*call).liteBidirectionalRNN},
		{Group: groupRNN, Names: []string{"SVDF"}, MACs: "batch·filters·(input size + memory)", Ops: "2·MACs + batch·filters - elements(output)" + biasText + actText, f: (*call).svdf},

		{Group: groupPool, Names: []string{"AVERAGE_POOL_2D", "MAX_POOL_2D"}, MACs: "0", Ops: "kh·kw·elements(output) + activation", f: func(c *call) amount { return c.litePool(1, 0) }},
		{Group: groupPool, Names: []string{"L2_POOL_2D"}, MACs: "0", Ops: "(2·kh·kw + 1)·elements(output) + activation", f: func(c *call) amount { return c.litePool(2, 1) }},
		{Group: groupPool, Names: []string{"STABLEHLO_REDUCE_WINDOW", "REDUCE_WINDOW"}, MACs: "0", Ops: "window·elements(output), unknown where the window is an input", f: (*call).reduceWindow},

		{Group: groupNorm, Names: []string{"SOFTMAX"}, MACs: "0", Ops: "5·elements(output) (compare, subtract, exp, add, divide)", f: func(c *call) amount { return opsOnly(c.mul(softmaxOps, c.nout(0))) }},
		{Group: groupNorm, Names: []string{"LOG_SOFTMAX"}, MACs: "0", Ops: "5·elements(output) (compare, subtract, exp, add, subtract)", f: func(c *call) amount { return opsOnly(c.mul(softmaxOps, c.nout(0))) }},
		perOutputElement(3, "square, add, divide", "L2_NORMALIZATION").in(groupNorm),
		{Group: groupNorm, Names: []string{"LOCAL_RESPONSE_NORMALIZATION"}, MACs: "0", Ops: "(2·(2·radius + 1) + 3)·elements(output) (squares and sums of the window; scale, add, pow, divide)", f: func(c *call) amount {
			return opsOnly(c.mul(2*(2*c.attr("radius", 0)+1)+3, c.nout(0)))
		}},

		perOutputElementFused(1, "", "ADD", "SUB", "MUL", "DIV"),
		perOutputElement(1, "", "MAXIMUM", "MINIMUM", "POW", "FLOOR_DIV", "FLOOR_MOD", "ATAN2", "ABS", "NEG", "SQRT", "EXP", "LOG", "SIN", "COS", "TANH", "SQUARE",
			"CEIL", "FLOOR", "ROUND", "SIGN", "RELU", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR",
			"LOGICAL_NOT", "BITWISE_XOR", "RIGHT_SHIFT", "SELECT", "SELECT_V2", "CAST", "RANGE",
			"STABLEHLO_ADD", "STABLEHLO_SUBTRACT", "STABLEHLO_MULTIPLY", "STABLEHLO_DIVIDE", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_POWER",
			"STABLEHLO_REMAINDER", "STABLEHLO_ABS", "STABLEHLO_NEGATE", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_LOG", "STABLEHLO_FLOOR", "STABLEHLO_CEIL",
			"STABLEHLO_TANH", "STABLEHLO_CBRT", "STABLEHLO_AND", "STABLEHLO_OR", "STABLEHLO_SHIFT_LEFT", "STABLEHLO_COMPARE", "STABLEHLO_SELECT",
			"STABLEHLO_CONVERT"),
		perOutputElement(2, "multiply by the reciprocal root: root, divide", "RSQRT", "STABLEHLO_RSQRT"),
		perOutputElement(2, "subtract, square", "SQUARED_DIFFERENCE"),
		perOutputElement(2, "compare, multiply", "LEAKY_RELU", "PRELU"),
		perOutputElement(2, "two comparisons", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "STABLEHLO_CLAMP"),
		perOutputElement(3, "compare, exp, subtract", "ELU"),
		perOutputElement(sigmoidOps, "negate, exp, add, divide", "LOGISTIC", "STABLEHLO_LOGISTIC"),
		perOutputElement(5, "add, two comparisons, two products", "HARD_SWISH"),
		perOutputElement(5, "multiply, erf, add, two products", "GELU"),
		perOutputElement(4, "two squares, add, root", "COMPLEX_ABS"),
		{Group: groupElement, Names: []string{"ADD_N"}, MACs: "0", Ops: "(inputs - 1)·elements(output)", f: func(c *call) amount { return opsOnly(c.mul(int64(max(0, len(c.ins)-1)), c.nout(0))) }},
		{Group: groupElement, Names: []string{"BUCKETIZE"}, MACs: "0", Ops: "log2(boundaries + 1)·elements(output)", f: func(c *call) amount {
			return opsOnly(c.mul(log2(int64(len(c.n.Attrs.Floats("boundaries")))+1), c.nout(0)))
		}},

		reduces(1, 0, "", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL", "ARG_MAX", "ARG_MIN", "CUMSUM", "SEGMENT_SUM",
			"UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "STABLEHLO_REDUCE", "WHERE"),
		reduces(1, 1, "", "MEAN"),

		{Group: groupResize, Names: []string{"RESIZE_BILINEAR"}, MACs: "0", Ops: "9·elements(output) (three linear interpolations)", f: func(c *call) amount { return opsOnly(c.mul(9, c.nout(0))) }},
		dataMovement("RESIZE_NEAREST_NEIGHBOR").in(groupResize),
		{Group: groupFourier, Names: []string{"RFFT2D"}, MACs: "0", Ops: "2.5·N·log2(N) for each transform of N = height·width real points", f: func(c *call) amount {
			y := c.out(0)
			n := c.mul(c.dim(y, -2), max(1, 2*(c.dim(y, -1)-1)))
			each := c.mul(c.dim(y, -2), c.dim(y, -1))
			if c.bad || each == 0 {
				return amount{}
			}
			return opsOnly(c.mul(5, n, log2(n), c.nout(0)/each) / 2)
		}},

		perOutputElement(4, "scale, round, add, saturate", "QUANTIZE").in(groupQuant),
		perOutputElement(2, "subtract, multiply", "DEQUANTIZE").in(groupQuant),
		perOutputElement(6, "quantise and back", "FAKE_QUANT").in(groupQuant),

		dataMovement("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "CONCATENATION", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "GATHER", "GATHER_ND", "TRANSPOSE",
			"PACK", "UNPACK", "TILE", "PAD", "PADV2", "MIRROR_PAD", "REVERSE_V2", "REVERSE_SEQUENCE", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE",
			"SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "FILL", "ZEROS_LIKE", "SHAPE", "RANK", "ONE_HOT", "BROADCAST_TO", "BROADCAST_ARGS", "SCATTER_ND",
			"DYNAMIC_UPDATE_SLICE", "MATRIX_DIAG", "MATRIX_SET_DIAG", "SPARSE_TO_DENSE", "DENSIFY", "BITCAST", "EMBEDDING_LOOKUP", "CONCAT_EMBEDDINGS",
			"REAL", "IMAG", "DILATE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "HASHTABLE", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
			"STABLEHLO_RESHAPE", "STABLEHLO_CONCATENATE", "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_SLICE", "STABLEHLO_DYNAMIC_SLICE",
			"STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA", "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE", "STABLEHLO_SCATTER"),
		controlFlow("IF", "WHILE", "CALL_ONCE", "CALL", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE", "STABLEHLO_CASE"),
		dataDependent("TOPK_V2", "UNIQUE", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "HASHTABLE_FIND", "HASHTABLE_LOOKUP", "LSH_PROJECTION",
			"EMBEDDING_LOOKUP_SPARSE", "SKIP_GRAM", "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_SORT", "STABLEHLO_RNG_BIT_GENERATOR"),
	}
}

const lstmText = "2·MACs + batch·steps·(18·units (15 without input gate) + biases + 2·peephole weights + 7·layer-norm coefficients)"

// customRules are common custom operators.
func customRules() []Rule {
	return []Rule{
		{Group: groupConv, Names: []string{"Convolution2DTransposeBias"}, MACs: "kh·kw·Cout·elements(input)", Ops: "2·MACs" + biasText, f: (*call).mediaPipeTransposed},
		dataDependent("TFLite_Detection_PostProcess"),
	}
}

// mediaPipeTransposed has inputs input, weights OHWI and bias. Its options are opaque, so
// executed taps are unknown.
func (c *call) mediaPipeTransposed() amount {
	w := c.in(1)
	if !c.rank(w, 4) {
		return amount{}
	}
	macs := c.mul(c.nin(0), int64(w[0]), int64(w[1]), int64(w[2]))
	return product(macs, unknown, c.biased(2, c.nout(0)))
}

// reduceWindow reads the window from the attributes; REDUCE_WINDOW has it in input 2.
func (c *call) reduceWindow() amount {
	w := wide(c.n.Attrs.Ints("window_dimensions"))
	if strings.HasPrefix(c.n.Op, "REDUCE") {
		w = c.ints(2)
	}
	if len(w) == 0 {
		return amount{ops: unknown}
	}
	return opsOnly(c.mul(c.mul(w...), c.nout(0)))
}
