// Package element holds the loops over elements that both model formats compute
// alike: arithmetic, comparisons and bit patterns of two operands, over rows that
// advance or stand, and what walks broadcast operands with them. What the
// formats compute differently, in another order or with other roundings, stays
// with their operators.
//
// It knows slices, walks and workers, and never a tensor or an operator.
package element
