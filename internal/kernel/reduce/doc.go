// Package reduce reduces dimensions of row-major arrays: it maps elements to results, defines
// their order, splits the work over threads, and holds the kernels that both model formats share.
//
// It takes slices, shapes and workers, not tensors or operators.
package reduce
