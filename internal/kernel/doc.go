// Package kernel computes: matrix products and convolutions over plain slices,
// without graphs or tensors.
//
// All products go through one micro-kernel that multiplies a panel of two rows by
// a panel of four columns, both packed so that it reads memory in order. Packing
// is done once for constant weights and block by block for activations. 3×3
// convolutions of stride 1 take it after Winograd's minimal filtering, 8-bit
// integers two to a float64 without rounding. The micro-kernel is the one place
// where an assembly version has to be put in; the plain Go one stays as its twin.
//
// Functions trust their arguments: shapes are checked by the operators.
package kernel
