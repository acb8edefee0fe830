package cortexm

import (
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/tensor"
)

// simple handles operators without weights.
func simple(n *graph.Node, in, out []*tensor.Tensor) Layer {
	if views[n.Op] {
		return Each(MoveElement, "view", 0)
	}
	y := dims(out, 0)
	if y == nil {
		return unknown(n, "shapes are not known")
	}
	outs := tensor.Elements(y)
	reads := 0
	if x := dims(in, 0); x != nil {
		reads = tensor.Elements(x)
	}
	switch {
	case pools[n.Op]:
		window := reads
		if k := n.Attrs.Int("filter_height", 0) * n.Attrs.Int("filter_width", 0); k > 0 {
			window = outs * k
		}
		return Each(PoolElement, "pool", window)
	case reductions[n.Op]:
		return Each(PoolElement, "reduction", reads)
	case tables[n.Op]:
		return Each(TableElement, "transcendental", outs)
	case elements[n.Op]:
		return Each(Element, "element-wise", outs)
	case moves[n.Op]:
		return Each(MoveElement, "copy", max(outs, 0))
	}
	return unknown(n, "no cycle rule for this operator")
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

var (
	views  = set("SHAPE", "EXPAND_DIMS", "SQUEEZE", "Shape", "Squeeze", "Unsqueeze", "Identity", "Dropout", "CALL_ONCE", "VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE")
	pools  = set("AVERAGE_POOL_2D", "MAX_POOL_2D", "AveragePool", "MaxPool", "L2_POOL_2D", "GlobalAveragePool", "GlobalMaxPool")
	tables = set("SOFTMAX", "LOGISTIC", "TANH", "LOG_SOFTMAX", "EXP", "LOG", "SQRT", "RSQRT", "SIN", "COS", "GELU", "ELU", "DIV",
		"Softmax", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Gelu", "Elu", "Div", "Pow", "POW", "L2_NORMALIZATION")
	reductions = set("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin")
	elements   = set("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "QUANTIZE", "DEQUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU", "HARD_SWISH",
		"ABS", "NEG", "SQUARE", "SQUARED_DIFFERENCE", "ADD_N", "CAST", "CLIP", "GREATER", "LESS", "EQUAL", "NOT_EQUAL", "GREATER_EQUAL", "LESS_EQUAL",
		"LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "SELECT", "SELECT_V2", "ROUND", "FLOOR", "CEIL",
		"Add", "Sub", "Mul", "Max", "Min", "Relu", "Clip", "LeakyRelu", "PRelu", "HardSwish", "HardSigmoid", "QuantizeLinear", "DequantizeLinear",
		"QLinearAdd", "BatchNormalization", "Abs", "Neg", "Cast", "Where")
	moves = set("RESHAPE", "PAD", "PADV2", "MIRROR_PAD", "CONCATENATION", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "TRANSPOSE", "PACK", "UNPACK",
		"GATHER", "GATHER_ND", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "TILE", "FILL", "ZEROS_LIKE", "REVERSE_V2",
		"Reshape", "Flatten", "Pad", "Concat", "Split", "Slice", "Transpose", "Gather", "Expand", "Tile")
)
