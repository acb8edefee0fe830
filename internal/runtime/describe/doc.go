// Package describe says what is known of a model without running it: its layers
// with shapes, options, work and provenance, its parameters, and the memory that its
// activations need.
//
// Every source of figures begins with this description and adds to it, so that the
// same model has the same counts, names and totals whether it ran here, was
// estimated, measured elsewhere or imported.
//
// The package may import the model (graph, tensor), its plan, count, memplan and
// profile; it never runs anything and knows no source.
package describe
