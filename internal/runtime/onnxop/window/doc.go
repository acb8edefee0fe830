// Package window is the geometry of windows that slide over the spatial axes of an
// ONNX tensor, for convolutions and pooling.
package window
