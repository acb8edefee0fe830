// Package onnx reads ONNX model files and test tensors, and writes small models.
//
// A file is memory-mapped and walked once with internal/model/protoread. Weights stay where they
// are, as slices of the mapping, whether in the model file or in external data files. Supported
// are operator sets from 1 to current, nested subgraphs, model-local functions (inlined), sparse
// initialisers and all element types. Tolerated defects become warnings of the model; others give
// a single [Error] with file, message path and byte offset.
//
// Memory stays within a small multiple of the file size. Everything that could grow beyond it
// (functions called many times, sparse tensors, captured names) is charged to a budget that
// depends on the file size.
//
// Field numbers and semantics are those of the public ONNX schema, IR versions 1 to 13. The
// package interprets no operator except Constant, whose value becomes a constant of the graph so
// that consumers can inspect it in advance.
package onnx
