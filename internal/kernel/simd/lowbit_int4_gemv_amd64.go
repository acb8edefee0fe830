package simd

var fourBitKernels = family[FourBits]{
	AVX512: {Set: AVX512, row: fourBitsAVX512},
}
