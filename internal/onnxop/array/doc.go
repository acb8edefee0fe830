// Package array holds ONNX's data movement, indexing, sequences, optionals,
// control flow, strings, random numbers, signal processing and training
// operators.
package array
