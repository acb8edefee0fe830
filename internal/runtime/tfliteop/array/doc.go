// Package array implements TFLite's operators that move, select, count and order elements without
// arithmetic: shapes, slices, joins, gathers, scatters, padding, tiling, space-to-batch, sorting,
// and constants made from parameters. Nearly all of them are one or a few block copies of
// internal/kernel/move.
package array
