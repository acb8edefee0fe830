// Package tflm computes how much memory TensorFlow Lite Micro needs for a model on a 32-bit
// microcontroller: the planned part of the arena and the persistent part to the byte, the peak of
// each operator, and whether the model fits a chip. Persistent memory is the sum of the runtime's
// structures and of the buffers that its kernels request, in their order. For kernels whose
// structures are not public it is a formula.
//
// The package imports internal/estimate/mvp, internal/runtime/memplan, internal/model/count,
// internal/model/graph and internal/model/tensor. It runs nothing.
package tflm
