// Package move copies elements without interpreting them: strided copies (transpose, slice, tile,
// concatenate), block selection (gather), padding, fills, and matrix transposes. Its functions
// are generic over the element width, not the type. [Slice] hides the width, so that callers need
// no list of types.
//
// It takes slices, strides and workers, not tensors or operators.
package move
