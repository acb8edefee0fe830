// Package kernel computes matrix multiplications, convolutions, pooling and related operations
// over plain slices, without graphs or tensors. Functions do not check their arguments: operators
// check shapes. The SIMD kernels are in internal/kernel/simd. This package splits the work, packs
// weights and loops over windows. A call takes the pool of workers that share it.
//
// File names begin with the family, then the data type. Names with "plain" hold the Go code for
// processors without SIMD kernels.
//
// # GEMM: gemm_*, gemv_*
//
//	gemm_f32.go                 float32: parameters, packed right-hand matrix, plain Go loops
//	gemm_f32_simd.go            float32: panels in L1, row blocks in L2, tiles in registers
//	gemm_f32_dynamic.go         float32: right-hand matrix that is packed in each run
//	gemm_f32_16bit_weights.go   weights that are exact in float16 or bfloat16
//	gemm_f32_split_bf16.go      float32 as sums of bfloat16 values in AMX tiles
//	gemm_f32_syrk.go            a·aᵀ, lower triangle
//	gemv_f32.go                 matrix times column vector
//	gemm_int8.go                int8: packed weights, plain Go with two sums in a float64
//	gemm_int8_simd.go           int8: pairs, 4-way dot products or tiles; also [N,C,H,W] convolution
//	gemm_int8_pack.go           packing of integer weights
//	gemm_int8_fused_requant.go  requantisation of sums in registers
//	gemm_int16.go               16-bit activations, 8- or 16-bit weights, 64-bit sums
//	gemm_int16_split.go         the same as two float32 multiplications
//	gemm_plain_microkernel.go   2×4 micro-kernel; packs panels of two rows and of four columns
//
// # Low-bit weights: lowbit_*
//
//	lowbit_gemm.go              block-quantised 2-, 4- and 8-bit weights (ONNX)
//	lowbit_digits.go            float rows as 8-bit digits, int8 dot products
//	lowbit_int4_gemv.go         4-bit weights, single rows, bit-exact (TFLite)
//
// # Sparse weights: sparse_*
//
//	sparse_f32.go               float32: lists of nonzero weights
//	sparse_f32_bitmask.go       float32: single rows, weights without zeros plus a bitmask
//	sparse_int8.go              int8: lists of 4-way groups
//	sparse_int8_count.go        int8: counting zeros before listing
//	sparse_int8_conv.go         int8: convolutions
//	sparse_int8_bitmask.go      int8: single rows
//	sparse_int8_4of8.go         int8: 4:8 structured sparsity, 2:4 included
//
// # Convolution of float32: conv_f32_*, winograd_*, conv_plain_*
//
// A [Conv] selects one algorithm by its shape, the instruction set and the weights:
//
//	conv_f32.go                 entry point: shape, selection, splitting of work
//	conv_f32_nchw.go            [N,C,H,W]: gathered panels (im2col), padded input copies
//	conv_f32_direct.go          [N,C,H,W]: direct, reads taps in the padded copy
//	conv_f32_direct_grouped.go  [N,C,H,W]: direct, grouped
//	conv_f32_im2row.go          [N,C,H,W]: few output positions, patches as rows
//	conv_f32_dilated_taps.go    large dilation: one GEMM per tap
//	conv_trim_taps.go           removes taps that only read padding
//	conv_f32_nhwc.go            [N,H,W,C]: reads windows in place
//	conv_f32_pixel_columns.go   [N,H,W,C]: few output channels, positions as columns
//	conv_f32_small_groups.go    [N,H,W,C]: small groups share registers
//	conv_fp16.go                [N,C,H,W] in float16: computes in float32
//	winograd_f4x4_simd.go       3×3: Winograd F(4×4, 3×3)
//	winograd_f2x2_plain.go      3×3: Winograd F(2×2, 3×3), plain Go
//	conv_plain_im2col.go        plain Go: patches
//	conv_plain_tiles.go         plain Go: GEMM over patches
//	conv3d_ncdhw.go             [N,C,D,H,W]: 2-D convolutions over planes
//	conv3d_ndhwc.go             [N,D,H,W,C]: sums of 2-D convolutions
//
// # Convolution of integers: conv_int8_*, conv_int16, conv_transposed_*
//
//	conv_int8.go                entry point: [ConvQ] over [N,H,W,C], [ConvSums] over [N,C,H,W]
//	conv_int8_nhwc.go           [N,H,W,C]: reads windows in place; transposes [N,C,H,W]
//	conv_int8_few_channels.go   few input channels: window rows as contiguous bands
//	conv_int8_groups.go         [N,H,W,C]: groups
//	conv_int8_epilogue.go       stores, requantises or dequantises sums
//	conv_int16.go               [N,H,W,C]: 16-bit activations
//	conv_transposed.go          [N,H,W,C]: float32 and int8, scatter-add (TFLite)
//	conv_transposed_int8.go     [N,H,W,C]: int8, one convolution per stride phase
//	conv_transposed_phases.go   stride phases of an axis
//
// # Depthwise convolution: depthwise_*
//
//	depthwise_f32_strips.go       float32: small windows, down the rows of an image
//	depthwise_f32_tiles.go        float32 [N,H,W,C]: small windows, register tiles along two rows
//	depthwise_f32_window_walk.go  float32: any window; also used for pooling
//	depthwise_f32_plain.go        float32: plain Go
//	depthwise_int8_strips.go      int8: small windows, down the rows of an image
//	depthwise_int8_window_walk.go int8: any window
//	depthwise_int8_plain.go       int8: plain Go
//
// # Pooling, element-wise operations, requantisation
//
//	pool_f32.go                 float32 maximum and sum
//	pool_int8_nchw.go           int8 maximum over [N,C,H,W]
//	pool_int8_nhwc.go           int8 maximum and average, int16 maximum, over [N,H,W,C]
//	elementwise_quant.go        sums, differences and products of two quantised operands
//	quant_requantise_tflite.go  fixed-point multipliers, TFLite's rounding
//	quant_requantise_onnx.go    float32 scales, ONNX's rounding
//	quant_dequantise.go         sums to float32 (hybrid layers)
//	scratch_pool.go             scratch buffers by size class
//
// Transposes and copies are in internal/kernel/move, sums of vectors in internal/kernel/vectors.
package kernel
