// Package math holds ONNX's element-wise, logical, comparison, cast,
// quantisation and reduction operators.
package math
