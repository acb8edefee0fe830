// Package conv holds ONNX's convolutions: plain, transposed, deformable and of codes.
package conv
