// Package training holds the operators of ONNX's training domain: one step of
// an optimiser each.
package training
