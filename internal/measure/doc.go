// Package measure times things and says how far the times can be trusted: clock,
// warm-up, sampling and the state of the machine.
//
// Conventions: times are float64 seconds, clock readings int64 nanoseconds.
// Samples keep the order in which they were taken. What they tell is a
// [stats.Summary] in seconds. Outliers are counted and never dropped.
//
// The package knows no models.
package measure
