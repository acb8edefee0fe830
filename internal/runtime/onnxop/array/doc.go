// Package array implements ONNX's operators that create, reshape, move, slice and join tensors.
// Elements of a byte and more are moved unchanged; smaller types are unpacked for the duration of
// the run.
package array
