// Package op defines the contract between the engine and the operators.
//
// An operator goes through three stages.
//
//  1. Infer, while planning: derives types and shapes of the outputs from the types and shapes of
//     the inputs and from those elements that are already known. A shape that depends on unknown
//     elements is reported with [ErrDynamic]; the engine calls Infer again at run time.
//  2. Prepare, once per combination of shapes: validates, selects a kernel for the types and the
//     instruction set, computes multipliers, repacks constant weights and reserves scratch memory.
//     It returns the function to run.
//  3. Run, for every inference: no allocation in the steady state, no locks.
//
// SIMD kernels are not part of the definitions: many operators share them, and they are in
// packages below internal/kernel.
//
// The package imports internal/model/graph, internal/model/tensor and internal/base/workers only.
package op
