// Package tflm tells how much memory TensorFlow Lite Micro needs for a model on
// a 32-bit microcontroller: the planned part of the arena to the byte, the
// persistent part by formula, the largest need of each operator, and whether it
// fits a chip.
//
// The package imports internal/runtime/memplan, internal/model/count, internal/model/graph,
// internal/model/tensor and internal/estimate/chip. It runs nothing.
package tflm
