// Package memplan places buffers with known lifetimes in one block of memory.
//
// [Greedy] is the planner of the project's own engine. Where possible, it places a buffer and its
// copy at the same address, so that nothing has to be copied. [TFLM] reproduces, offset by
// offset, the greedy planner of TensorFlow Lite Micro, so that the tensor arena of a
// microcontroller is known without the device.
//
// The package imports only internal/model/graph and internal/model/tensor. It computes offsets
// and never allocates the memory itself.
package memplan
