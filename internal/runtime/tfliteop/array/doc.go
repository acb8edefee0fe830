// Package array holds TFLite's operators that move, select, count and order
// elements without calculating with them: shapes, slices, joins, gathers,
// scatters, padding, tiling, blocks of space, sorting, and constants made from
// parameters. Nearly all of them are one or a few block copies of
// internal/kernel/move.
package array
