// Package stats says what samples tell: middle, spread, quantiles, intervals that
// hold whatever the distribution, and whether a series is steady in time.
//
// Functions are pure and take plain slices of float64 in any unit, which they do not
// change; an argument called sorted must be in ascending order, one called samples
// may be in any. What needs an order in time says so. A figure of too few samples is
// NaN, or absent where there is a way to be absent, never zero. Samples are finite:
// infinities and NaN give no meaningful figures, and no panic.
//
// Quantiles have two definitions, each under its name: [Quantile] for samples that
// are described, [Conformal] for the bound that a next sample is to keep.
//
// Outliers are counted and never dropped.
//
// The package imports the standard library and nothing else.
package stats
