// Package neuralengine writes the two files of the profiler in Intel's Neural Engine (Intel
// Extension for Transformers, earlier Neural Compressor): the comma-separated table with the
// formulas of its what-if model, and the trace of all iterations. For a run they go into
// folders as that profiler has them, numbered by instance.
//
// What its readers rely upon is kept: names and order of columns, formulas, levels of the
// trace and keys of its arguments, times laid end to end. What nobody could rely upon is put
// right: texts are quoted and escaped, times keep their digits, files are never written over.
package neuralengine
