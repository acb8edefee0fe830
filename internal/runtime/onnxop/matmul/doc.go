// Package matmul implements ONNX's matrix multiplications: MatMul, Gemm, Einsum and their
// quantised forms.
package matmul
