// Package conv implements ONNX's convolutions: plain, transposed, deformable and quantised.
package conv
