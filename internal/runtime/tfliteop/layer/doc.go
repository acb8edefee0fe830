// Package layer is what TFLite's layers share: scales and zero points, ranges of
// integers, fused activations, geometry of windows, and weights as numbers.
package layer
