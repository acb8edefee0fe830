package simd

var int4GemvKernels = family[Int4Gemv]{
	AVX512: {Set: AVX512, row: fourBitsAVX512},
}
