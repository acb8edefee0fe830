// Package timeline says when things happened in a profile: lanes of bars, figures
// over time, dependencies and accesses to memories.
//
// Bars stand in columns side by side, slices of one length, so that millions of
// them stay small. What a column is called, holds and refers to stands once, in
// [Lane.Columns] and its like: the check, the saved file and the page all walk that
// list, so that a new column is one line.
//
// The package imports the standard library only; package profile imports it.
package timeline
