// Package cortexm estimates processor cycles of a model on a microcontroller
// without accelerator, from a structural model: every operator is reduced to the
// work that its kernel does (multiply-accumulates by kind of kernel, elements
// gathered, outputs requantised, elements moved), and cycles are a sum of that
// work with non-negative coefficients of one core and runtime family.
//
// The name is that of the most common cores; RISC-V, RX and Xtensa cores are
// described by the same work and other coefficients.
package cortexm
