// Package gguf reads GGUF files of llama.cpp and builds the ONNX graph that computes the same
// language model, with the caches of keys and values as inputs and outputs.
//
// [ParseFile] reads the header, metadata and list of tensors. [Parse] builds the graph, whose
// operators are those of ONNX and com.microsoft: linear layers of block-quantised weights become
// MatMulNBits. Its constants have shapes only until [graph.Model].Convert converts the weights.
//
// The package imports graph, tensor and mapped, and knows nothing of engines.
package gguf
