// Package layer contains code that TFLite's layers share: scales and zero points, ranges of
// integers, fused activations, window geometry, and weights as numbers.
package layer
