// Package scratch lends buffers to kernels. They hold float32 or float64 values; functions view
// them as integers.
package scratch
