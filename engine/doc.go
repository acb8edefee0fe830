// Package engine describes the engines that run models: [Operators] lists what opmeter's own engine
// computes, [Find] finds external engines, such as ONNX Runtime and LiteRT, on this computer.
package engine
