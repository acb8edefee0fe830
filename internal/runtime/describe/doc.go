// Package describe builds the profile of a model without running it: its layers with shapes,
// options, operation counts and provenance, its parameters, and its activation memory.
//
// Every source of measurements starts from this description and adds to it. The same model
// therefore has the same counts, names and totals whether it ran here, was estimated, was
// measured elsewhere or was imported.
//
// The package may import the model (graph, tensor), its plan, count, memplan and profile. It
// never runs anything and knows no source.
package describe
