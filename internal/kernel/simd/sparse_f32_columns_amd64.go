package simd

var columnKernels = family[Columns]{
	AVX2:   {Set: AVX2, Lanes: 8, fused: columnsFusedAVX2, exact: columnsExactAVX2},
	AVX512: {Set: AVX512, Lanes: 16, fused: columnsFusedAVX512, exact: columnsExactAVX512},
}
