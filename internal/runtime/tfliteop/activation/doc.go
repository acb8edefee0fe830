// Package activation holds TFLite's functions of one tensor: activations, softmax and
// mathematics, of floats and of quantised numbers.
package activation
