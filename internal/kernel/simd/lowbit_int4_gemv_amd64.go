package simd

var int4GemvKernels = family[Int4Gemv]{
	AVX2:   {Set: AVX2, row: fourBitsAVX2},
	AVX512: {Set: AVX512, row: fourBitsAVX512},
}
