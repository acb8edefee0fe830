// Package loss measures how the outputs of a model change when one of its layers is pruned or
// stored in another number format.
//
// For operators that are linear in their weights, the error of the layer's own output follows
// from the second moments of its inputs. With weights W, changed by D, inputs x, and G the sum of
// x·xᵀ over all positions of all samples, the squared error is the trace of D·G·Dᵀ. One pass over
// the data gives G, and each row of D gives the errors of all levels, as weights become zero in
// pruning order. Other operators are run in isolation on their recorded inputs.
//
// End to end, the model is run from the changed layer on, starting from stored activations. Its
// outputs are compared with those of the unchanged model, with labels, or by a user's program.
//
// Calibration converts errors of layer outputs to losses of the model, by running a few changes
// of each layer end to end on a few samples.
//
// Intervals are bootstrap intervals over samples, with a fixed seed.
package loss
