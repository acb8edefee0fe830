package simd

var relationKernels = family[Relations]{
	AVX2: {
		Set: AVX2, multiple: 32,
		floats: [4]relationKernel{equalFloatsAVX2, unequalFloatsAVX2, lessFloatsAVX2, lessEqualFloatsAVX2},
		ints:   [4]relationKernel{equalIntsAVX2, unequalIntsAVX2, lessIntsAVX2, lessEqualIntsAVX2},
		longs:  [4]relationKernel{equalLongsAVX2, unequalLongsAVX2, lessLongsAVX2, lessEqualLongsAVX2},
		bytes:  [4]relationKernel{equalU8AVX2, unequalU8AVX2, lessU8AVX2, lessEqualU8AVX2},
		signed: [4]relationKernel{equalS8AVX2, unequalS8AVX2, lessS8AVX2, lessEqualS8AVX2},
	},
	AVX512: {
		Set: AVX512, multiple: 1,
		floats: [4]relationKernel{equalFloatsAVX512, unequalFloatsAVX512, lessFloatsAVX512, lessEqualFloatsAVX512},
		ints:   [4]relationKernel{equalIntsAVX512, unequalIntsAVX512, lessIntsAVX512, lessEqualIntsAVX512},
		longs:  [4]relationKernel{equalLongsAVX512, unequalLongsAVX512, lessLongsAVX512, lessEqualLongsAVX512},
		bytes:  [4]relationKernel{equalU8AVX512, unequalU8AVX512, lessU8AVX512, lessEqualU8AVX512},
		signed: [4]relationKernel{equalS8AVX512, unequalS8AVX512, lessS8AVX512, lessEqualS8AVX512},
	},
}
