// Package reduce folds dimensions of row-major arrays: which elements belong to
// which result, in which order, shared out over threads, and the loops that both
// model formats compute alike.
//
// It knows slices, shapes and workers, and never a tensor or an operator.
package reduce
