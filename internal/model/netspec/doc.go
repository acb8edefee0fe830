// Package netspec builds a .tflite model from a short description of an architecture, with random
// weights, so that a network can be profiled before it is trained. docs/reference/network-yaml.md
// describes the language.
//
// Time and memory of a network depend on its operators, shapes and types, hardly on the values of
// its weights. Weights are normally distributed around 0 with variance 2/fan-in, so that
// activations neither vanish nor overflow.
package netspec
