// Package study stores what is known about making a model smaller or faster: the layers that have
// weights, what each would gain ([Speed]) and lose ([Loss]) when pruned or quantised, plans that
// choose a change for each layer ([Plan]), and benchmarks of changed models against the unchanged
// one ([Bench]).
//
// A [Study] belongs to one model. It is stored in one file, to which results are appended as they
// are found, so that measurements survive a crash of the process. Speeds, losses, plans and
// benchmarks have names, so that several can coexist: latency and throughput, say.
//
// Unknown figures are absent. Times are in seconds, sizes in bytes; sparsity and shares are
// fractions of 1.
package study
