// Package stacks holds what formats of sampling profilers have in common: stacks of
// functions with what was counted while they were there. It makes layers of the functions,
// each with its own share and that with what it called, and bars of samples that
// follow one another in time.
//
// It knows no format. A stack is a path in a tree from its outermost function on, so that
// memory goes with the different stacks and not with the samples.
package stacks
