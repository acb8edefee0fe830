// Package memplan places buffers with known lifetimes in one block of memory.
//
// [Greedy] is the planner of the project's own engine. What is copied from one
// buffer to another lies, where it can, in both at once. [TFLM] repeats, offset
// by offset, the greedy planner of TensorFlow Lite Micro, so that the arena of a
// microcontroller is known without the device.
//
// The package imports only internal/model/graph and internal/model/tensor. It decides places
// and never allocates the memory itself.
package memplan
