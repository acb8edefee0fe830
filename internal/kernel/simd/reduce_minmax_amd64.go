package simd

var extremeKernels = family[Extremes]{AVX2: {
	Set:   AVX2,
	lines: [2][extremeKinds]extremeKernel{{floatKind: mostFloatsLinesAVX2}, {floatKind: leastFloatsLinesAVX2}},
	rows:  [2][extremeKinds]extremeKernel{{floatKind: mostFloatsRowsAVX2}, {floatKind: leastFloatsRowsAVX2}},
}, AVX512: {
	Set: AVX512,
	lines: [2][extremeKinds]extremeKernel{
		{mostBytesLinesAVX512, mostUnsignedBytesLinesAVX512, mostShortsLinesAVX512, mostUnsignedShortsLinesAVX512, mostWordsLinesAVX512, mostUnsignedWordsLinesAVX512, mostLongsLinesAVX512, mostUnsignedLongsLinesAVX512, mostFloatsLinesAVX512, mostDoublesLinesAVX512},
		{leastBytesLinesAVX512, leastUnsignedBytesLinesAVX512, leastShortsLinesAVX512, leastUnsignedShortsLinesAVX512, leastWordsLinesAVX512, leastUnsignedWordsLinesAVX512, leastLongsLinesAVX512, leastUnsignedLongsLinesAVX512, leastFloatsLinesAVX512, leastDoublesLinesAVX512},
	},
	rows: [2][extremeKinds]extremeKernel{
		{mostBytesRowsAVX512, mostUnsignedBytesRowsAVX512, mostShortsRowsAVX512, mostUnsignedShortsRowsAVX512, mostWordsRowsAVX512, mostUnsignedWordsRowsAVX512, mostLongsRowsAVX512, mostUnsignedLongsRowsAVX512, mostFloatsRowsAVX512, mostDoublesRowsAVX512},
		{leastBytesRowsAVX512, leastUnsignedBytesRowsAVX512, leastShortsRowsAVX512, leastUnsignedShortsRowsAVX512, leastWordsRowsAVX512, leastUnsignedWordsRowsAVX512, leastLongsRowsAVX512, leastUnsignedLongsRowsAVX512, leastFloatsRowsAVX512, leastDoublesRowsAVX512},
	},
}}
