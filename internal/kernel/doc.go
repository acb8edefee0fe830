// Package kernel computes: matrix products, convolutions, pooling and their like over plain
// slices, without graphs or tensors. Functions trust their arguments: shapes are checked by
// the operators. The loops in vectors are those of internal/kernel/simd; this package cuts
// the work, packs weights and walks windows. A call takes the pool of workers that share it.
//
// # Products
//
// [Gemm] and [GemmPacked] multiply float32 (gemm.go): the left-hand matrix is read where it
// lies, the right-hand one comes in panels, packed once for constant weights (product.go).
// again.go packs what changes from run to run, narrow.go weights that fit 16 bits, column.go
// has single columns, symmetric.go products of vectors with themselves. Weights of few bits
// in blocks stay as the file has them (fewbits.go and fewbitdigits.go for ONNX, fourbits.go
// for TFLite). Where a processor has tiles of bfloat16, parts.go multiplies in these.
//
// Products of 8-bit numbers are those of gemmq.go: pairs of 16-bit numbers, fours of 8 bits or
// tiles, by the set (ints.go, packints.go). wide.go multiplies 16 bits by 8 or 16, and
// split16.go does it by two products of float32.
//
// Weights with zeros: sparse.go has float32, sparsebytes.go 8 bits, sifted.go those of 8 bits with
// four of eight, expand.go and expandints.go single rows that wait for memory.
//
// # Convolutions
//
// A [Conv] takes one of several ways, by its shape, its set and what its weights are:
//
//	weights with many zeros                    sparse.go, sparselines.go
//	3×3 with fewer products                    minimal.go; winograd.go in plain Go
//	few positions                              few.go
//	gaps as large as the picture               gaps.go, taps.go
//	[N,C,H,W], lines that fill panels          direct.go; groups: flat.go
//	[N,C,H,W], gathered or in frames           planes.go
//	[N,C,H,W] in tiles of bfloat16             parts.go, planes.go
//	[N,H,W,C]                                  lines.go; small groups: grouplanes.go; few output channels: positions.go
//	depthwise                                  strips.go, lanetiles.go, windows.go, depthwise.go
//	three axes                                 volume.go, volumelines.go
//	float16                                    halves.go
//	plain Go                                   tiles.go, micro.go, patch.go
//
// Those of 8-bit numbers begin at convq.go: intlines.go, few channels in bands.go, groups in intgroups.go, depthwise ones in
// bytestrips.go, intwindows.go and depthwiseq.go. Their sums become codes in tilesink.go, by TFLite's rounding
// (requant.go) or that of ONNX (rescale.go). Those of 16-bit numbers are in wideconv.go,
// transposed ones of TFLite in transposed.go.
//
// # The rest
//
// Pooling: pool.go, which walks as windows.go does, bytepool.go, poolq.go. Sums and products of two operands of codes:
// pairq.go. Working memory: rooms.go. Matrices with rows and columns exchanged, and lines that are copied, are
// internal/kernel/move, sums of single vectors internal/kernel/vectors.
//
// In plain Go products go through one micro-kernel that multiplies a panel of two rows by
// a panel of four columns, both packed so that it reads memory in order, 8-bit integers two
// to a float64 without rounding (micro.go).
package kernel
