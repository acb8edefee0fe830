// Package conv holds TFLite's convolutions: plain, depthwise, transposed and of
// volumes, of floats and of quantised numbers.
package conv
