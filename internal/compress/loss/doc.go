// Package loss says what becomes of outputs when one layer of a model is pruned or stored as other
// numbers.
//
// Of operators that are linear in their weights, the error of the layer's own output follows from the
// second moments of its inputs: with weights W, changed by D, inputs x and G the sum of x·xᵀ over all positions of
// all samples, the squared error is the trace of D·G·Dᵀ. One pass over the data gives G, and each row of D
// the errors of all levels, weight by weight in the order in which they become zero. Other operators are
// run alone, with their inputs kept.
//
// End to end, the model is run from the changed layer on, from activations that are kept in groups, and its
// outputs are compared with those of the unchanged model, with labels, or by a program of the user's.
//
// By some changes of each layer that are run so on a few samples, errors of layers' own outputs become losses of the model (calibration).
//
// Intervals come from samples drawn again and again (bootstrap) with a fixed seed.
package loss
