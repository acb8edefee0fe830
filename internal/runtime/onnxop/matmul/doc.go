// Package matmul holds ONNX's products of matrices: MatMul, Gemm, Einsum and the
// products of codes.
package matmul
