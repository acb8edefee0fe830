// Package resize implements ONNX's operators that resample images: Resize, GridSample, regions of
// interest, and non-maximum suppression.
package resize
