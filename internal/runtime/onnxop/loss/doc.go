// Package loss holds ONNX's losses and Dropout.
package loss
