// Package reduce implements ONNX's operators along axes: reductions, softmax and its variants,
// ArgMax and ArgMin, and cumulative sums, of all operator-set versions.
//
// internal/kernel/reduce plans which elements belong to a result; this package selects the
// accumulator types and the final conversion.
package reduce
