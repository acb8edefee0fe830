// Package graph is the in-memory representation of a model, independent of the file format:
// graphs of nodes (operators) over values (tensors), with attributes and constants.
//
// Readers (internal/model/tflite, internal/model/onnx) build a [Model]; the engine, the counters
// and the estimators read it. Constants are views into the mapped file. The package imports only
// internal/model/tensor and never reads files.
package graph
