// Package scratch lends buffers to kernels: float32, float64, and views of them as integers.
package scratch
