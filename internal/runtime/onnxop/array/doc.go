// Package array holds ONNX's operators that make, reshape, move and cut
// tensors. Element widths of a byte and more are moved as they are; narrower
// types are unpacked for the time of the run.
package array
