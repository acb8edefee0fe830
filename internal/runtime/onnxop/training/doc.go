// Package training holds the operators of ONNX's training domain: one step of
// an optimiser each, and derivatives through arithmetic.
package training
