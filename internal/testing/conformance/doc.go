// Package conformance runs reference tests on the engine: the ONNX backend tests
// (models with inputs and expected outputs, a few operators each) and, in its
// tests, whole models against outputs that ONNX Runtime computed.
//
// The material is not part of the repository; see internal/testing/material. The command
// in run prints the result by operator.
package conformance
