// Package arith implements TFLite's arithmetic of two and more tensors, for floats, integers and
// quantised values, with the roundings of the reference kernels.
package arith
