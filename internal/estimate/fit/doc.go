// Package fit fits the structural cycle model of a target to measurements of a
// board: relative least squares with coefficients that are not negative and drawn
// towards those that the target has, validated by leaving one source out at a
// time. It writes the target file that comes of it.
//
// Everything is deterministic: the same table gives the same coefficients. The
// package imports internal/estimate/chip, its cycle model for processors and the reader of
// model files; it knows nothing of the measurements that shipped targets are made
// from.
package fit
