// Package speed makes performance profiles: it finds what each layer of a model gains when it is
// pruned or quantised.
//
// [Measure] runs models in which all layers have the same change, interleaved with the unchanged
// model, in one process and with the same kernels, so that drift of the machine affects both.
// Filters and channels, which make other layers smaller too, are removed group by group. Fused
// operators share one time: it belongs to the layer among them, or is divided among several by
// their multiply-accumulates. [Estimate] uses the cycle models of targets, [Count] counts
// operations.
package speed
