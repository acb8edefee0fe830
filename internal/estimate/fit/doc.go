// Package fit fits the structural cycle model of a target to measurements of a board. It uses
// relative least squares with non-negative coefficients regularised towards the target's,
// validated by leave-one-source-out cross-validation. It writes the resulting target file.
//
// The result is deterministic: the same table gives the same coefficients. The package imports
// internal/estimate/chip, its cycle model for processors and the reader of model files; it does
// not contain the measurements behind the shipped targets.
package fit
