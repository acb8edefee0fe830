// Package graph is a model in memory, whatever file it came from: graphs of
// nodes (operators) over values (tensors), with attributes and constants.
//
// Readers (internal/read/tflite, internal/read/onnx) make a [Model]; the engine, the
// counters and the estimators read it. Constants are views into the mapped file.
// The package imports only internal/tensor and never reads files.
package graph
