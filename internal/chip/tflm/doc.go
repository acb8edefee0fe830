// Package tflm tells how much memory TensorFlow Lite Micro needs for a model on
// a 32-bit microcontroller: the planned part of the arena to the byte, the
// persistent part by formula, the largest need of each operator, and whether it
// fits a chip.
//
// The package imports internal/memplan, internal/count, internal/graph,
// internal/tensor and internal/chip. It runs nothing.
package tflm
