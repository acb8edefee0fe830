// Package pool holds ONNX's pooling over windows and over whole planes.
package pool
