// Package vectors computes sums of float32 vectors: dot products, weighted sums and maxima,
// linear interpolation, and autocorrelation. Matrix multiplication is in internal/kernel.
//
// It takes slices, not tensors or operators, and does not check its arguments. The SIMD kernels
// are in internal/kernel/simd.
package vectors
