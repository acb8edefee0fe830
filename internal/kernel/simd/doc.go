// Package simd holds SIMD kernels in assembly, and their equivalents in plain Go.
//
// A [Set] is an instruction set: a group of instructions that processors have together. The best
// one of the processor is selected at start; the environment variable OPMETER_CPU selects
// another. Each family of kernels (GEMM, depthwise convolution, elementary functions, ...) has a
// table with its functions, indexed by instruction set. An instruction set without an entry uses
// the entry of the next lower one, down to plain Go.
//
// Data that is packed for a kernel belongs to one table entry. The code that packs it keeps this
// entry, so a change of the instruction set in a test cannot mix two layouts.
//
// The generator internal/kernel/gen writes the assembly (go generate), and it is committed. A
// plain Go implementation defines the result of each kernel. Tests compare the two over random
// lengths, tails, strides and special values. Kernels whose comment says "exact" are bit-exact;
// the others stay within the error that their comment states.
package simd

//go:generate go -C ../gen run . -out ../simd
