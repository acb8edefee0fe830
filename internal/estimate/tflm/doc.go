// Package tflm computes how much memory TensorFlow Lite Micro needs for a model on a 32-bit
// microcontroller: the planned part of the arena exactly, the persistent part by formula, the
// peak of each operator, and whether the model fits a chip.
//
// The package imports internal/runtime/memplan, internal/model/count, internal/model/graph,
// internal/model/tensor and internal/estimate/chip. It runs nothing.
package tflm
