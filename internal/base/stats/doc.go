// Package stats describes samples: location, spread, quantiles, distribution-free intervals, and
// the stability of a series in time.
//
// Functions are pure and take plain slices of float64 in any unit, which they do not change. An
// argument named sorted must be in ascending order, one named samples may be in any order.
// Functions that need time order say so. A figure that needs more samples is NaN, or absent if
// the type allows that, never zero. Samples are finite: infinities and NaN give meaningless
// figures, but no panic.
//
// Quantiles have two definitions: [Quantile] for describing samples, [Conformal] for the bound of
// a future sample.
//
// Outliers are counted and never dropped.
//
// The package imports the standard library only.
package stats
