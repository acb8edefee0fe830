// Package arith holds TFLite's arithmetic of two and more tensors, of floats, of
// integers and of quantised numbers with the reference kernels' roundings.
package arith
