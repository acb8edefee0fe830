// Package pool implements ONNX's pooling over windows and over whole planes.
package pool
