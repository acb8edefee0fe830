// Package ml holds the classical models of the ai.onnx.ml domain: tree
// ensembles, linear models, support vector machines, encoders and scalers.
package ml
