// Package quant implements ONNX's operators that quantise, dequantise, and compute on 8-bit
// quantised tensors, of the standard, of Microsoft's domain and of QONNX.
//
// It may use the operators of elementwise and reduce, from which some quantised ones are built.
package quant
