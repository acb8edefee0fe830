package simd

var expandKernels = family[Expand]{
	AVX2:   {Set: AVX2, Columns: 16, Zeros: 0.6, Narrow: 1, fused: expandFusedAVX2, exact: expandExactAVX2},
	AVX512: {Set: AVX512, Columns: 32, Zeros: 0.5, Narrow: 0.9, fused: expandFusedAVX512, exact: expandExactAVX512},
}

var expandIntKernels = family[ExpandInts]{
	VNNI: {Set: VNNI, Zeros: 0.55, row: expandBytesVNNI},
}
