package tflm

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Refusal is a node that the runtime does not support, so that the model does not load.
type Refusal struct {
	// Graph and Node are the indices of the node.
	Graph, Node int
	Code        RefusalCode
	Text        string // for people only
}

// RefusalCode says what the runtime does not support.
type RefusalCode string

// Unsupported properties of a node.
const (
	RefusedOperator RefusalCode = "operator" // there is no such kernel
	RefusedType     RefusalCode = "type"     // the kernel does not compute in this element type
	// weights of another type than the kernel takes with these activations
	RefusedMixture RefusalCode = "mixture"
)

// Latest stands for the releases of TensorFlow Lite Micro of 2026.
const Latest = 2026

// since is the year of the first releases with a kernel for an operator, by the list of operators
// in the runtime's source (micro_mutable_op_resolver.h) at revisions of these years.
var since = years(map[int][]string{
	2020: {
		"ABS", "ADD", "ARG_MAX", "ARG_MIN", "AVERAGE_POOL_2D", "CEIL", "CONCATENATION", "CONV_2D", "COS", "DEPTHWISE_CONV_2D", "DEQUANTIZE", "EQUAL", "FLOOR",
		"FULLY_CONNECTED", "GREATER", "GREATER_EQUAL", "HARD_SWISH", "L2_NORMALIZATION", "LESS", "LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR",
		"LOGISTIC", "MAX_POOL_2D", "MAXIMUM", "MEAN", "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "PACK", "PAD", "PADV2", "PRELU", "QUANTIZE", "RELU", "RELU6", "RESHAPE",
		"RESIZE_NEAREST_NEIGHBOR", "ROUND", "RSQRT", "SHAPE", "SIN", "SOFTMAX", "SPLIT", "SPLIT_V", "SQRT", "SQUARE", "STRIDED_SLICE", "SUB", "SVDF", "TANH", "UNPACK",
	},
	2021: {
		"ADD_N", "ASSIGN_VARIABLE", "BATCH_TO_SPACE_ND", "BROADCAST_ARGS", "BROADCAST_TO", "CALL_ONCE", "CAST", "CUMSUM", "DEPTH_TO_SPACE", "ELU", "EXP", "EXPAND_DIMS",
		"FILL", "FLOOR_DIV", "FLOOR_MOD", "GATHER", "GATHER_ND", "IF", "L2_POOL_2D", "LEAKY_RELU", "LOG_SOFTMAX", "READ_VARIABLE", "REDUCE_MAX", "RESIZE_BILINEAR",
		"SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SQUEEZE", "TRANSPOSE", "TRANSPOSE_CONV", "VAR_HANDLE", "ZEROS_LIKE",
	},
	2022: {"EMBEDDING_LOOKUP", "MIRROR_PAD", "SELECT_V2", "SQUARED_DIFFERENCE", "SUM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "WHILE"},
	2023: {"BATCH_MATMUL", "DIV"},
	2024: {"DYNAMIC_UPDATE_SLICE", "REVERSE_V2"},
	2025: {"REDUCE_MIN"},
})

func years(by map[int][]string) map[string]int {
	out := map[string]int{}
	for year, names := range by {
		for _, n := range names {
			out[n] = year
		}
	}
	return out
}

// weights lists operators with weights, and the operands whose types must agree: activations and
// weights.
var weights = map[string][2]int{
	"CONV_2D": {0, 1}, "DEPTHWISE_CONV_2D": {0, 1}, "FULLY_CONNECTED": {0, 1}, "TRANSPOSE_CONV": {2, 1}, "UNIDIRECTIONAL_SEQUENCE_LSTM": {0, 2}, "SVDF": {0, 1},
}

// arithmetic lists operators whose kernels compute with their elements, and therefore support a
// few types only.
var arithmetic = set("ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "SOFTMAX", "LOG_SOFTMAX", "LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU", "PRELU", "ELU",
	"HARD_SWISH", "MEAN", "SUM", "BATCH_MATMUL", "SQUARED_DIFFERENCE", "L2_NORMALIZATION", "RESIZE_BILINEAR", "DIV", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "SIN", "COS")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// Refused lists the nodes that the runtime of a year does not support, in order, and the year of
// the first releases that support all others: an operator or a combination of types may be newer
// than the measured runtime. The rules are those that kernels check when they prepare.
// Activations are float32, int8 and, for most operators, int16. Weights have the same type, or 8
// bits with 16-bit activations, or 4 bits with 8-bit ones from 2023. Unsigned 8-bit types were
// supported only before 2021.
func Refused(m *graph.Model, year int) (out []Refusal, needs int) {
	for _, g := range m.Graphs {
		for i, n := range g.Nodes {
			code, text, first := refused(g, n, year)
			if code != "" {
				out = append(out, Refusal{g.Index, i, code, n.Key() + ": " + text})
				continue
			}
			needs = max(needs, first)
		}
	}
	return out, needs
}

// refused checks a node; first is the year of the first releases that support it.
func refused(g *graph.Graph, n *graph.Node, year int) (code RefusalCode, text string, first int) {
	if n.Domain == graph.TFLiteCustom {
		return "", "", 0 // part of the runtime, or registered by the program
	}
	first, ok := since[n.Op]
	switch {
	case !ok:
		return RefusedOperator, "TensorFlow Lite Micro has no kernel for it", 0
	case first > year:
		return RefusedOperator, fmt.Sprintf("a kernel came in %d, after this runtime", first), 0
	}
	typ := func(k int) tensor.Type {
		if k >= len(n.Inputs) || n.Inputs[k] < 0 {
			return tensor.Invalid
		}
		return g.Values[n.Inputs[k]].Type
	}
	if at, ok := weights[n.Op]; ok {
		return weighted(typ(at[0]), typ(at[1]), first, year)
	}
	switch x := typ(0); {
	case n.Op == "DEQUANTIZE" && x == tensor.Float16:
		return RefusedMixture, "weights in float16, which converters widen and the runtime does not", 0
	case x == tensor.Float16, x == tensor.BFloat16, x == tensor.Float64, x == tensor.Complex64, x == tensor.Complex128, x == tensor.String:
		return RefusedType, "no kernel takes " + x.String(), 0
	case arithmetic[n.Op] && (x == tensor.Uint8 && year > 2020 || x == tensor.Int4):
		return RefusedType, "no kernel computes in " + x.String(), 0
	}
	return "", "", first
}

// weighted checks the types of activations and weights.
func weighted(x, w tensor.Type, first, year int) (RefusalCode, string, int) {
	const fourBits = 2023
	if x == tensor.Invalid || w == tensor.Invalid {
		return "", "", first
	}
	switch {
	case x == tensor.Uint8 && w == tensor.Uint8 && year <= 2020:
		return "", "", first
	case !slices.Contains([]tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16}, x):
		return RefusedType, "no kernel computes in " + x.String(), 0
	case x == w && x != tensor.Int16, x == tensor.Int16 && w == tensor.Int8:
		return "", "", first
	case x == tensor.Int8 && w == tensor.Int4:
		if year < fourBits {
			return RefusedMixture, fmt.Sprintf("weights of 4 bits are taken from %d on", fourBits), 0
		}
		return "", "", max(first, fourBits)
	case x == tensor.Float32:
		return RefusedMixture, "a hybrid: activations in float32 with weights in " + w.String(), 0
	}
	return RefusedMixture, "activations in " + x.String() + " with weights in " + w.String(), 0
}
