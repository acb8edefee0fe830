// Package engine runs a model on this computer: it plans the graph for given
// input shapes (shape inference, constant folding, fusion, memory), prepares
// each operator and executes the steps, timing each when asked.
//
// It knows no operator: definitions come from internal/runtime/onnxop and
// internal/runtime/tfliteop through internal/runtime/op. It does no statistics and prints nothing.
package engine
