// Package move copies elements between tensors without looking at what they
// mean: strided copies, block selections and the unpacking of types that are
// narrower than a byte. Kernels are generic over the width of the element and
// not over its type.
package move
