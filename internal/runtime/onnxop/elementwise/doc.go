// Package elementwise holds ONNX's operators on single elements: arithmetic,
// comparisons, logic, functions of one number, choices and casts, of all
// operator-set versions.
//
// Kernels come in three layers. A walk of internal/kernel/broadcast turns any
// shapes into contiguous runs; the loops of internal/kernel/element work on runs;
// a definition picks the loops for its element type. float16 and bfloat16 are
// computed in float32 and rounded once at the end. Types of eight bits and fewer
// appear only where the standard has them: casts and classification.
package elementwise
