// Package study holds what is known of making a model smaller or faster: the layers that
// have weights, what each would gain ([Speed]) and lose ([Loss]) with fewer or narrower
// weights, choices of changes for all of them ([Plan]), and comparisons of models that were
// changed with the one that was not ([Bench]).
//
// A [Study] is of one model. It lies in one file, to which results are appended as they are
// found, so that what was measured outlives whatever ends the process. Speeds, losses, plans and
// benches have names, so that several stand side by side: latency and throughput, say.
//
// Figures are absent where they are not known. Times are in seconds, sizes in bytes, sparsity
// and shares are fractions of 1.
package study
