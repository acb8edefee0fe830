// Package estimator derives the figures of a measurement from its inferences: the parts of an
// inference that its steps take, and the latency with the speeds that the machine ran at. Both
// are robust against inferences that other programs disturbed, whether the system reported the
// disturbance or not. The rules are those of docs/reference/measurement-quality.md.
package estimator
