// Package loop times things and says how far the times can be trusted: clock,
// warm-up, the loop of runs and the recorders of what happens within them.
//
// Conventions: times are float64 seconds, clock readings int64 nanoseconds.
// Samples keep the order in which they were taken. What they tell is a
// [stats.Summary] in seconds. Outliers are counted and never dropped.
//
// The package knows no models and no result type, and imports internal/base/stats only:
// what the machine does meanwhile is internal/measure/machine's.
package loop
