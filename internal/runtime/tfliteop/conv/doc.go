// Package conv implements TFLite's convolutions: plain, depthwise, transposed and
// three-dimensional, for floats and quantised values.
package conv
