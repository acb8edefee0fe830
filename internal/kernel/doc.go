// Package kernel computes: matrix products and convolutions over plain slices,
// without graphs or tensors.
//
// Where the processor has vectors, products of float32 go through the tiles of
// internal/kernel/simd (product.go, lines.go for [N,H,W,C], planes.go for [N,C,H,W]):
// the left-hand matrix is read where it lies, the right-hand one comes in panels,
// packed once for constant weights or gathered block by block.
//
// Products of 8-bit numbers do the same with pairs of 16-bit numbers (ints.go), and are
// quantised a register of channels at a time (requant.go).
//
// Depthwise convolutions and pooling walk windows over values that lie side by side
// (windows.go); depthwise ones of 3×3 and 5×5 go down the lines in strips (strips.go),
// or over [N,H,W,C] along them in tiles (lanetiles.go).
//
// Weights of which many are zero are listed without the zeros (sparse.go).
//
// In plain Go they go through one micro-kernel that multiplies a panel of two rows by
// a panel of four columns, both packed so that it reads memory in order. 3×3
// convolutions of stride 1 take it after Winograd's minimal filtering, 8-bit
// integers two to a float64 without rounding.
//
// Functions trust their arguments: shapes are checked by the operators.
package kernel
