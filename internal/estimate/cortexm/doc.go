// Package cortexm estimates the processor cycles of a model on a microcontroller without
// accelerator. The model is structural: each operator is reduced to the work of its kernel
// (multiply-accumulates by kind of kernel, gathered elements, requantised outputs, moved
// elements). Cycles are a weighted sum of that work, with non-negative coefficients of a core and
// runtime family.
//
// The package is named after the most common cores; RISC-V, RX and Xtensa cores use the same work
// terms with other coefficients.
package cortexm
