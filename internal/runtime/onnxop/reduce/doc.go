// Package reduce holds ONNX's operators along axes: reductions, softmax and its
// kin, the places of extremes and running sums, of all operator-set versions.
//
// Which elements belong to a result is planned by internal/kernel/reduce; the
// types of accumulators and what becomes of them are chosen here.
package reduce
