// Package measure times things and says how far the times can be trusted: clock,
// warm-up, sampling, statistics and the state of the machine.
//
// Conventions: times are float64 seconds, clock readings int64 nanoseconds.
// Samples keep the order in which they were taken. Quantiles are those of Hyndman
// and Fan's type 7 (linear between order statistics at 1+(n-1)p). Percentiles
// exist only with as many samples as a two-sided 95 % interval of them needs.
// Outliers are counted and never dropped.
//
// The package imports profile, for the shape of its results, and nothing else of
// the project. It knows no models.
package measure
