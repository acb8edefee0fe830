// Package op is the contract between the engine and the operators: what an
// operator definition offers and what it is given when it is planned and run.
//
// An operator passes three stages.
//
//  1. Infer, while planning: from the types and shapes of the inputs, and the
//     elements of those that are already known, to types and shapes of the
//     outputs. A shape that depends on elements that are not known yet is
//     reported with [ErrDynamic]; the engine then asks again at run time.
//  2. Prepare, once for a set of shapes: check, choose a kernel for the types and
//     the instruction set, compute multipliers, repack constant weights, ask for
//     scratch memory. It returns the function to run.
//  3. Run, for every inference: no allocation in the steady state, no locks.
//
// Faster kernels are no business of definitions: they are further sets of loops
// below internal/kernel that many operators share.
//
// The package imports internal/model/graph, internal/model/tensor and internal/base/workers only.
package op
