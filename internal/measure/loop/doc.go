// Package loop times functions and assesses the reliability of the times: clock, warm-up,
// measurement loop, and recorders for what happens within a run.
//
// Conventions: times are float64 seconds, clock readings int64 nanoseconds. Samples stay in
// chronological order. They are summarised by a [stats.Summary] in seconds. Outliers are counted
// and never dropped.
//
// The package knows no models and no result type, and imports internal/base/stats only. The state
// of the machine during the measurement is the task of internal/measure/machine.
package loop
