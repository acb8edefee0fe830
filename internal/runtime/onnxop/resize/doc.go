// Package resize holds ONNX's operators that sample pictures: Resize, GridSample,
// regions of interest and the suppression of boxes.
package resize
