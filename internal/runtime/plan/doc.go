// Package plan says what becomes of each node of a model for given inputs, before
// anything runs: types and shapes of all values, nodes that are computed once
// because all they read is constant, and nodes that are computed together.
//
// [Make] plans a whole model, the graphs that control flow runs among it; the
// engine plans the graphs that it runs with [New], so that both decide alike. What
// is decided stands in one list of passes, [Passes], each of which works on a
// [Graph].
//
// A plan never claims what may be wrong. Where a shape depends on elements that
// are known only in a run, or changes from turn to turn of a loop, it is unknown.
//
// No weights are packed and no kernel is prepared for a run: only the few values
// that shapes depend on are computed, up to [Options.FoldBytes]. The package may
// import internal/model/graph, internal/model/tensor and internal/runtime/op, whose definitions it is
// given in a registry; it never imports the engine, kernels, measuring or
// profiles.
package plan
