// Package conv computes convolutions over plain slices. Functions do not check their arguments:
// operators check shapes. The SIMD kernels are in internal/kernel/simd; this package packs weights,
// splits the work over the given pool of workers and loops over windows.
//
// Two tables list the algorithms in order of preference: f32_algorithms.go and int8_algorithms.go.
// A convolution uses the first entry that supports its shape, layout and instruction set. Entries
// for float32 also compare estimated times. The weights can then replace that entry: if skipping
// zeros is faster or, for constant float32 weights, im2row or one GEMM per tap.
//
// Names with "plain" hold the Go code for processors without SIMD kernels.
//
// # float32: f32_*, winograd_*, plain_*
//
//	f32.go                 entry point [Float32]: shape, splitting of work
//	f32_algorithms.go      table of the algorithms
//	f32_nchw.go            [N,C,H,W]: gathered panels (im2col), padded input copies
//	f32_direct.go          [N,C,H,W]: direct, reads taps in the padded copy
//	f32_direct_grouped.go  [N,C,H,W]: direct, grouped
//	f32_im2row.go          [N,C,H,W]: few output positions, patches as rows
//	f32_split_bf16.go      [N,C,H,W]: float32 as sums of bfloat16 values in AMX tiles
//	f32_dilated_taps.go    large dilation: one GEMM per tap
//	trim_taps.go           removes taps that only read padding
//	f32_nhwc.go            [N,H,W,C]: reads windows in place
//	f32_pixel_columns.go   [N,H,W,C]: few output channels, positions as columns
//	f32_small_groups.go    [N,H,W,C]: small groups share registers
//	fp16.go                [N,C,H,W] in float16: computes in float32
//	winograd_f4x4_simd.go  3×3: Winograd F(4×4, 3×3)
//	winograd_f2x2_plain.go 3×3: Winograd F(2×2, 3×3), plain Go
//	plain_im2col.go        plain Go: patches
//	plain_tiles.go         plain Go: GEMM over patches
//	ncdhw.go               [N,C,D,H,W]: 2-D convolutions over planes
//	ndhwc.go               [N,D,H,W,C]: sums of 2-D convolutions
//
// # Integers: int8_*, int16, transposed_*
//
//	int8.go                entry points: [Int8] over [N,H,W,C], [Sums] over [N,C,H,W]
//	int8_algorithms.go     table of the algorithms
//	int8_nhwc.go           [N,H,W,C]: reads windows in place; transposes [N,C,H,W]
//	int8_nchw.go           [N,C,H,W]: gathered panels
//	int8_weights.go        packing of weights
//	int8_few_channels.go   few input channels: window rows as contiguous bands
//	int8_groups.go         [N,H,W,C]: groups
//	int8_sparse.go         weights with zeros that are skipped
//	int8_epilogue.go       stores, requantises or dequantises sums
//	int8_fused_requant.go  requantisation of sums in registers
//	int8_dequantise.go     sums to float32 (hybrid layers)
//	int16.go               [N,H,W,C]: 16-bit activations
//	transposed.go          [N,H,W,C]: float32 and int8, scatter-add (TFLite)
//	transposed_int8.go     [N,H,W,C]: int8, one convolution per stride phase
//	transposed_phases.go   stride phases of an axis
//
// # Depthwise: depthwise_*
//
//	depthwise_f32_strips.go       float32: small windows, down the rows of an image
//	depthwise_f32_tiles.go        float32 [N,H,W,C]: small windows, register tiles along two rows
//	depthwise_f32_window_walk.go  float32: any window; also used for pooling
//	depthwise_f32_plain.go        float32: plain Go
//	depthwise_int8_strips.go      int8: small windows, down the rows of an image
//	depthwise_int8_window_walk.go int8: any window
//	depthwise_int8_plain.go       int8: plain Go
package conv
