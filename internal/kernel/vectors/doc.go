// Package vectors adds vectors of float32: inner products, sums and maxima of vectors times weights, sums of two neighbours as
// interpolation takes them, and products of values with those some distances on. What multiplies matrices is internal/kernel.
//
// It knows slices, neither tensors nor operators, and trusts its arguments. Loops in vectors are those of internal/kernel/simd.
package vectors
