// Package element holds the element-wise kernels that both model formats share: arithmetic,
// comparisons and bit operations of two operands, over rows that advance or repeat, and the loops
// over broadcast operands. Operations that the formats define differently, in order or rounding,
// stay with their operators.
//
// It takes slices, walks and workers, not tensors or operators.
package element
