package simd

var relations = family[Relations]{
	AVX2: {
		Set: AVX2, each: 32,
		floats: [4]relationLoop{equalFloatsAVX2, unequalFloatsAVX2, lessFloatsAVX2, lessEqualFloatsAVX2},
		ints:   [4]relationLoop{equalIntsAVX2, unequalIntsAVX2, lessIntsAVX2, lessEqualIntsAVX2},
		longs:  [4]relationLoop{equalLongsAVX2, unequalLongsAVX2, lessLongsAVX2, lessEqualLongsAVX2},
		bytes:  [4]relationLoop{equalU8AVX2, unequalU8AVX2, lessU8AVX2, lessEqualU8AVX2},
		signed: [4]relationLoop{equalS8AVX2, unequalS8AVX2, lessS8AVX2, lessEqualS8AVX2},
	},
	AVX512: {
		Set: AVX512, each: 1,
		floats: [4]relationLoop{equalFloatsAVX512, unequalFloatsAVX512, lessFloatsAVX512, lessEqualFloatsAVX512},
		ints:   [4]relationLoop{equalIntsAVX512, unequalIntsAVX512, lessIntsAVX512, lessEqualIntsAVX512},
		longs:  [4]relationLoop{equalLongsAVX512, unequalLongsAVX512, lessLongsAVX512, lessEqualLongsAVX512},
		bytes:  [4]relationLoop{equalU8AVX512, unequalU8AVX512, lessU8AVX512, lessEqualU8AVX512},
		signed: [4]relationLoop{equalS8AVX512, unequalS8AVX512, lessS8AVX512, lessEqualS8AVX512},
	},
}
