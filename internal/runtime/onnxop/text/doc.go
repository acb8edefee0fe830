// Package text holds ONNX's operators on strings.
package text
