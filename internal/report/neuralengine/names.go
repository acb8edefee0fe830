package neuralengine

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/report/whatif"
	"github.com/opmeter/opmeter/profile"
)

// engineNames are the engine's names of operators by those of ONNX and TFLite, where it has
// the same operator. Others keep the model's name.
var engineNames = map[string]string{
	"Gemm": "InnerProduct", "FULLY_CONNECTED": "InnerProduct",
	"Conv": "Convolution", "CONV_2D": "Convolution", "ConvInteger": "Convolution", "QLinearConv": "Convolution",
	"Softmax": "Softmax", "SOFTMAX": "Softmax", "LogSoftmax": "LogSoftmax", "LOG_SOFTMAX": "LogSoftmax",
	"LayerNormalization": "LayerNorm", "GroupNormalization": "GroupNorm",
	"Reshape": "Reshape", "RESHAPE": "Reshape", "Add": "BinaryAdd", "ADD": "BinaryAdd",
	"Gather": "Gather", "GATHER": "Gather", "Gelu": "Gelu", "GELU": "Gelu", "Relu": "Relu", "RELU": "Relu",
	"Tanh": "Tanh", "TANH": "Tanh", "Sigmoid": "Sigmoid", "LOGISTIC": "Sigmoid", "Erf": "Erf", "Sqrt": "Sqrt", "SQRT": "Sqrt", "Pow": "Pow", "POW": "Pow",
	"QuantizeLinear": "Quantize", "QUANTIZE": "Quantize", "DequantizeLinear": "Dequantize", "DEQUANTIZE": "Dequantize",
	"Concat": "Concat", "CONCATENATION": "Concat", "Slice": "Slice", "SLICE": "Slice", "STRIDED_SLICE": "StridedSlice",
	"Split": "Split", "SPLIT": "Split", "ReduceMean": "ReduceMean", "MEAN": "ReduceMean", "ReduceSum": "ReduceSum", "SUM": "ReduceSum",
	"Unsqueeze": "Unsqueeze", "EXPAND_DIMS": "Unsqueeze", "Squeeze": "Squeeze", "SQUEEZE": "Squeeze", "Cast": "Cast", "CAST": "Cast", "Where": "Where", "SELECT_V2": "Where",
}

// Operator is the engine's name of a layer's operator: InnerProduct for a product with constant
// weights, Matmul for one of two activations; the model's where the engine has no such
// operator.
func Operator(l *profile.Layer) string {
	if l.Domain != "" && l.Domain != "ai.onnx" && l.Domain != "com.microsoft" {
		return l.Op
	}
	if name := engineNames[l.Op]; name != "" {
		return name
	}
	if whatif.Product(l) {
		if l.Weights != nil || slices.ContainsFunc(l.Inputs[:min(2, len(l.Inputs))], func(t profile.Tensor) bool { return t.Constant }) {
			return "InnerProduct"
		}
		return "Matmul"
	}
	return l.Op
}

// postOps are the engine's names of what is appended to an operator.
var postOps = map[string]string{"add": "binary_add", "gelu": "gelu_erf", "silu": "swish", "logistic": "sigmoid"}

// postOp is the engine's name of an operator that was fused into another one.
func postOp(s string) string {
	s = strings.ToLower(s)
	if name := postOps[s]; name != "" {
		return name
	}
	return s
}
