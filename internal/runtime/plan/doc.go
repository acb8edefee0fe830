// Package plan decides, before anything runs, how each node of a model is computed for given
// inputs.
//
// It infers types and shapes of all values, folds nodes that read only constants, and fuses nodes
// that are computed together. [Make] plans a whole model, including the graphs that control flow
// runs. The engine plans the graphs that it runs with [New], so that both decide alike. All
// decisions are in one list of passes, [Passes], each of which works on a [Graph].
//
// A plan never states what may be wrong. A shape is unknown where it depends on elements that are
// known only in a run, or where it changes between iterations of a loop.
//
// Planning packs no weights and prepares no kernels: it computes only the few values that shapes
// depend on, up to [Options.FoldBytes]. The package may import internal/model/graph,
// internal/model/tensor and internal/runtime/op, whose definitions it receives in a registry. It
// never imports the engine, kernels, measuring or profiles.
package plan
