// Package random holds ONNX's random operators. Every node has its own
// generator, which lives as long as the session and starts from the node's
// seed, or from a fixed one if absent: runs are reproducible.
package random
