// Package tensor holds the values that flow through a model: element types,
// dense tensors over little-endian bytes, and the containers that ONNX adds
// (sequences, optionals, maps).
//
// A Tensor's bytes may be a slice of a memory-mapped model file: they are then
// read-only, possibly unaligned, and must never be written. Typed access goes
// through [Of], which makes a view without a copy.
//
// The package imports nothing of the project and never does input or output.
package tensor
