// Package activation implements TFLite's activations, softmax and mathematical functions of one
// tensor, for floats and quantised values.
package activation
