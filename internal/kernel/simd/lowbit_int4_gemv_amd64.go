package simd

var fourBitLoops = family[FourBits]{
	AVX512: {Set: AVX512, row: fourBitsAVX512},
}
