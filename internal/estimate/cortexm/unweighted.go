package cortexm

import (
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// simple handles operators without weights. The terms depend on whether the runtime has an
// optimised kernel for the operator; folds says that operators on constants are folded before
// deployment.
func simple(n *graph.Node, in, out []*tensor.Tensor, optimised, folds bool) Layer {
	if views[n.Op] || folds && constant(in) {
		return Each(MoveElement, "view", 0)
	}
	y := dims(out, 0)
	if y == nil {
		return unknown(n, chip.MissingShape, "its shapes are not known")
	}
	outs := tensor.Elements(y)
	for i := range out {
		if i > 0 {
			if y := dims(out, i); y != nil {
				outs += tensor.Elements(y)
			}
		}
	}
	reads := 0
	if x := dims(in, 0); x != nil {
		reads = tensor.Elements(x)
	}
	term := func(own, plain int) int {
		if optimised {
			return own
		}
		return plain
	}
	switch {
	case pools[n.Op]:
		window := reads
		if k := n.Attrs.Int("filter_height", 0) * n.Attrs.Int("filter_width", 0); k > 0 {
			window = outs * k
		}
		return Each(PoolElement, "pool", window)
	case reductions[n.Op]:
		return Each(term(PoolElement, PlainReduce), "reduction", reads)
	case tables[n.Op]:
		return Each(term(TableElement, PlainTable), "transcendental", outs)
	case elements[n.Op]:
		return Each(term(Element, PlainElement), "element-wise", outs)
	case moves[n.Op]:
		return Each(MoveElement, "copy", outs)
	case walks[n.Op]:
		return Each(term(MoveElement, PlainMove), "reorder", outs)
	}
	return unknown(n, chip.MissingOperator, "no rule for its work")
}

// constant reports whether all operands are constants.
func constant(in []*tensor.Tensor) bool {
	for _, t := range in {
		if t != nil && !t.Known() {
			return false
		}
	}
	return len(in) > 0
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

var (
	views = set("SHAPE", "EXPAND_DIMS", "SQUEEZE", "CALL_ONCE", "VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "RANK",
		"Shape", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Constant", "ConstantOfShape", "Size")
	pools  = set("AVERAGE_POOL_2D", "MAX_POOL_2D", "AveragePool", "MaxPool", "L2_POOL_2D", "GlobalAveragePool", "GlobalMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool")
	tables = set("SOFTMAX", "LOGISTIC", "TANH", "LOG_SOFTMAX", "EXP", "LOG", "SQRT", "RSQRT", "SIN", "COS", "GELU", "ELU", "DIV", "FLOOR_DIV", "FLOOR_MOD", "ATAN2",
		"Softmax", "LogSoftmax", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Gelu", "Elu", "Selu", "Softplus", "Mish", "Div", "Pow", "POW", "L2_NORMALIZATION",
		"Sin", "Cos", "Reciprocal", "QLinearSigmoid", "QLinearSoftmax", "LayerNormalization", "InstanceNormalization", "SkipLayerNormalization", "SimplifiedLayerNormalization", "FastGelu", "BiasGelu", "QuickGelu", "LpNormalization", "LRN", "LOCAL_RESPONSE_NORMALIZATION")
	reductions = set("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY", "ARG_MAX", "ARG_MIN", "CUMSUM",
		"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare", "ArgMax", "ArgMin", "CumSum")
	elements = set("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "QUANTIZE", "DEQUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU", "HARD_SWISH",
		"ABS", "NEG", "SIGN", "SQUARE", "SQUARED_DIFFERENCE", "ADD_N", "CAST", "CLIP", "GREATER", "LESS", "EQUAL", "NOT_EQUAL", "GREATER_EQUAL", "LESS_EQUAL",
		"LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "SELECT", "SELECT_V2", "WHERE", "ROUND", "FLOOR", "CEIL", "FAKE_QUANT", "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT",
		"Add", "Sub", "Mul", "Max", "Min", "Sum", "Relu", "Clip", "LeakyRelu", "PRelu", "ThresholdedRelu", "HardSwish", "HardSigmoid", "QuantizeLinear", "DequantizeLinear",
		"DynamicQuantizeLinear", "QLinearAdd", "QLinearMul", "QLinearLeakyRelu", "BatchNormalization", "Abs", "Neg", "Sign", "Cast", "Where", "Floor", "Ceil", "Round", "Not", "And", "Or", "Xor",
		"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Mod", "IsNaN")
	// moves copy contiguous runs of elements, walks compute an index for each element.
	moves = set("RESHAPE", "PAD", "PADV2", "CONCATENATION", "PACK", "UNPACK", "SLICE", "FILL", "ZEROS_LIKE", "RANGE",
		"Reshape", "Flatten", "Pad", "Concat", "QLinearConcat", "Range", "ReshapeLinear")
	walks = set("MIRROR_PAD", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "TRANSPOSE", "GATHER", "GATHER_ND", "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR", "EMBEDDING_LOOKUP", "ONE_HOT",
		"SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "TILE", "REVERSE_V2", "SCATTER_ND", "DYNAMIC_UPDATE_SLICE",
		"Split", "Slice", "Transpose", "Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements", "Expand", "Tile", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "OneHot", "Trilu")
)

// Describe returns the work of an operator without weights, by its TensorFlow Lite name, that
// produces or reads n elements.
func Describe(op string, n int, k Kernels) Layer {
	t := &tensor.Tensor{Type: tensor.Int8, Shape: []int{n}}
	return simple(&graph.Node{Op: op, Domain: graph.TFLite}, []*tensor.Tensor{t}, []*tensor.Tensor{t}, k.optimised(op, false), false)
}
