// Package move copies elements without looking at what they mean: strided
// copies (transpositions, slices, tilings, joins), selections of blocks, padding
// and fills; matrices with rows and columns exchanged (turn.go, turnbytes.go). Its loops are generic over the width of an element and not over its
// type; [Slice] hides the width from callers, so that they need no list of types.
//
// It knows slices, strides and workers, neither tensors nor operators.
package move
