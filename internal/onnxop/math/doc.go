// Package math holds ONNX's element-wise, logical, comparison, cast,
// quantisation and reduction operators, of all operator-set versions.
//
// Element-wise kernels come in three layers. A [Broadcast] plan turns any shapes
// into contiguous runs; typed loops work on runs; a definition picks the loops for
// its element type. float16 and bfloat16 are computed in float32 and rounded once
// at the end ([Widen]). Types of eight bits and fewer appear only where the
// standard has them: cast, quantisation, classification.
package math
