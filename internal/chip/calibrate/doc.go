// Package calibrate fits the coefficients of the structural cycle model to
// measurements and says how well they hold: relative least squares with
// non-negative coefficients that are drawn towards those of the tier of cores,
// validated by leaving one source out at a time.
//
// Everything is deterministic: the same table gives the same coefficients.
package calibrate

//go:generate go run ./cmd -data ../../../../shared -out ../chips
