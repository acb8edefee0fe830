// Package quant holds ONNX's operators that quantise, that take codes back to real
// numbers, and that compute on the codes of 8-bit tensors, of the standard, of
// Microsoft's domain and of QONNX.
//
// It may use the operators of elementwise and reduce, of which some quantised
// ones are made.
package quant
