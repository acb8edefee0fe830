// Package simd holds the innermost loops in the vector instructions of the
// processor, and the same loops in plain Go.
//
// A [Set] is a group of instructions that processors have together. The best one of
// this processor is chosen at start; the environment variable OPMETER_CPU asks for
// another. Each family of loops (products of matrices, windows, curves, ...) has a
// table with its functions for every set that has its own; a set without an entry
// takes that of the set below it, and plain Go is below all. What packs data for a
// function keeps the entry that it packed for, so that a change of the set in a test
// never mixes two layouts.
//
// Assembly is written by internal/kernel/gen (go generate) and committed.
// Every function has a twin in Go that is the definition of its result: tests compare
// the two over random lengths, tails, strides and special values. Those of which the
// comment says "exact" give the same bits, the others stay within the bound named there.
package simd

//go:generate go -C ../gen run . -out ../simd
