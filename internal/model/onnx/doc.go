// Package onnx reads ONNX model files and test tensors, and writes small models.
//
// A file is memory-mapped and walked once with internal/model/protoread; weights stay where
// they are, as slices of the mapping, whether they lie in the model file or in
// external data files beside it. Operator sets 1 to current, nested bodies,
// model-local functions (inlined), sparse initialisers and all element types are
// taken. What the reader gets over is a warning in the model; what it cannot is
// one [Error] with file, path of the message and byte offset.
//
// Memory stays within a small multiple of the file: everything that could grow
// beyond it (functions called many times, sparse tensors, captured names) is
// drawn from a budget that depends on the file's size.
//
// Field numbers and semantics are those of the public ONNX schema, IR versions 1
// to 13. The package knows no operator's meaning except Constant, whose value
// becomes a constant of the graph so that consumers can look at it beforehand.
package onnx
