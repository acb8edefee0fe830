package advise

import (
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// classed lists the layers that ran and that a function accepts.
func (f *Facts) classed(accept func(*profile.Layer) bool) (layers []int) {
	for i := range f.Profile.Layers {
		if l := &f.Profile.Layers[i]; l.State == profile.Ran && accept(l) {
			layers = append(layers, i)
		}
	}
	return layers
}

// floatWeights reports whether a layer multiplies float32 by constant weights, with kernels that
// int8 would replace.
func floatWeights(l *profile.Layer) bool {
	kernel := l.Kernel
	switch {
	case l.MACs == nil || *l.MACs == 0 || l.WeightsBytes == nil || *l.WeightsBytes == 0,
		l.ArithmeticType() != "float32", len(l.Inputs) == 0 || l.Inputs[0].DType != "float32",
		strings.HasPrefix(kernel, sparseName), strings.HasPrefix(kernel, "hybrid"), strings.HasPrefix(kernel, "nibbles"):
		return false
	}
	op := strings.ToLower(l.Op)
	return !strings.Contains(op, "transpose") &&
		(strings.HasPrefix(kernel, "depthwise") || strings.Contains(op, "conv") || op == "matmul" || op == "gemm" || op == "fully_connected")
}

// floatMatrix is [floatWeights] of the matrix multiplications of ONNX.
func floatMatrix(l *profile.Layer) bool {
	return (l.Op == "MatMul" || l.Op == "Gemm") && floatWeights(l)
}
