// Package window implements the geometry of kernel windows that slide over the spatial axes of an
// ONNX tensor, for convolutions and pooling.
package window
