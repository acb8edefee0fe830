// Package engine runs a model on this computer.
//
// It plans the graph for given input shapes (shape inference, constant folding, fusion, memory),
// prepares each operator and executes the steps. It times each step on request.
//
// It has no knowledge of single operators: definitions come from internal/runtime/onnxop and
// internal/runtime/tfliteop through internal/runtime/op. It computes no statistics and prints
// nothing.
package engine
