package graph

// elementwise lists operators that map each element on its own, the same way wherever it lies, if
// their further operands are constants of one element.
var elementwise = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{
		"Abs", "Add", "Cast", "Ceil", "Celu", "Clip", "DequantizeLinear", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity",
		"LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign",
		"Softplus", "Softsign", "Sqrt", "Sub", "Swish", "Tanh", "ThresholdedRelu",
		"ABS", "ADD", "CAST", "CEIL", "DEQUANTIZE", "DIV", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "MAXIMUM", "MINIMUM",
		"MUL", "NEG", "POW", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "RSQRT", "SQRT", "SQUARE", "SUB", "TANH",
	} {
		names[name] = true
	}
	return names
}()

// Elementwise reports whether a node maps each element of an operand on its own, if its further
// operands are constants of one element.
func (n *Node) Elementwise() bool {
	return (n.Domain == ONNX || n.Domain == TFLite) && len(n.Outputs) == 1 && elementwise[n.Op]
}

// Inverse reports whether one permutation of axes undoes another.
func Inverse(a, b []int) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	for k, axis := range b {
		if axis < 0 || axis >= len(a) || a[axis] != k {
			return false
		}
	}
	return true
}
