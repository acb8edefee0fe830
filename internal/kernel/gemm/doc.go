// Package gemm multiplies matrices of float32, quantised, low-bit or sparse values. Functions do
// not check their arguments: operators check shapes. The SIMD kernels are in internal/kernel/simd;
// this package packs operands and splits the work over the given pool of workers.
//
// float32, each with the packed right-hand matrix [PackedB]:
//
//	f32.go                 parameters, packing, plain Go loops
//	f32_simd.go            panels in L1, row blocks in L2, tiles in registers
//	f32_dynamic.go         right-hand matrix that is packed in each run
//	f32_16bit_weights.go   weights that are exact in float16 or bfloat16
//	f32_split_bf16.go      float32 as sums of bfloat16 values in AMX tiles
//	f32_syrk.go            a·aᵀ, lower triangle
//	gemv_f32.go            matrix times column vector
//	plain_microkernel.go   2×4 micro-kernel in plain Go; packs panels of two rows and of four columns
//
// Integers, with the packed weights [PackedInt8]:
//
//	int8.go                packed weights, plain Go with two sums in a float64
//	int8_simd.go           pairs, 4-way dot products or tiles
//	int8_pack.go           packing of integer weights
//	int8_fused_requant.go  requantisation of sums in registers
//	int8_rescaled.go       multiplication with requantised results
//	int16.go               16-bit activations, 8- or 16-bit weights, 64-bit sums
//	int16_split.go         the same as two float32 multiplications
//
// Low-bit block-quantised weights:
//
//	lowbit_gemm.go         2-, 4- and 8-bit weights (ONNX)
//	lowbit_digits.go       float rows as 8-bit digits, int8 dot products
//	lowbit_int4_gemv.go    4-bit weights, single rows, bit-exact (TFLite)
//
// Sparse weights, where skipping zeros is faster:
//
//	sparse_f32.go          float32: lists of nonzero weights
//	sparse_f32_bitmask.go  float32: single rows, weights without zeros plus a bitmask
//	sparse_f32_columns.go  float32: single rows, a list of weights for each column
//	sparse_int8.go         int8: lists of 4-way groups
//	sparse_int8_count.go   int8: counting zeros before listing
//	sparse_int8_bitmask.go int8: single rows
//	sparse_int8_4of8.go    int8: 4:8 structured sparsity, 2:4 included
package gemm
