// Package elementwise implements ONNX's element-wise operators: arithmetic, comparisons, logic,
// functions of one variable, selection and casts, of all operator-set versions.
//
// Kernels have three layers. A walk of internal/kernel/broadcast splits any shapes into
// contiguous runs; the loops of internal/kernel/element work on runs; a definition selects the
// loops for its element type. float16 and bfloat16 are computed in float32 and rounded once at
// the end. Types of eight bits and fewer occur only where the standard has them: casts and
// classification.
package elementwise
