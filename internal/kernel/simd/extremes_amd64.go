package simd

var extremeLoops = family[Extremes]{AVX512: {
	Set: AVX512,
	lines: [2][extremeKinds]extremeLoop{
		{mostBytesLinesAVX512, mostUnsignedBytesLinesAVX512, mostShortsLinesAVX512, mostUnsignedShortsLinesAVX512, mostWordsLinesAVX512, mostUnsignedWordsLinesAVX512, mostLongsLinesAVX512, mostUnsignedLongsLinesAVX512, mostFloatsLinesAVX512, mostDoublesLinesAVX512},
		{leastBytesLinesAVX512, leastUnsignedBytesLinesAVX512, leastShortsLinesAVX512, leastUnsignedShortsLinesAVX512, leastWordsLinesAVX512, leastUnsignedWordsLinesAVX512, leastLongsLinesAVX512, leastUnsignedLongsLinesAVX512, leastFloatsLinesAVX512, leastDoublesLinesAVX512},
	},
	rows: [2][extremeKinds]extremeLoop{
		{mostBytesRowsAVX512, mostUnsignedBytesRowsAVX512, mostShortsRowsAVX512, mostUnsignedShortsRowsAVX512, mostWordsRowsAVX512, mostUnsignedWordsRowsAVX512, mostLongsRowsAVX512, mostUnsignedLongsRowsAVX512, mostFloatsRowsAVX512, mostDoublesRowsAVX512},
		{leastBytesRowsAVX512, leastUnsignedBytesRowsAVX512, leastShortsRowsAVX512, leastUnsignedShortsRowsAVX512, leastWordsRowsAVX512, leastUnsignedWordsRowsAVX512, leastLongsRowsAVX512, leastUnsignedLongsRowsAVX512, leastFloatsRowsAVX512, leastDoublesRowsAVX512},
	},
}}

//go:noescape
func mostBytesLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedBytesLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostShortsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostWordsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedShortsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedWordsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostLongsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedLongsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostFloatsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostDoublesLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastBytesLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedBytesLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastShortsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastWordsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedShortsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedWordsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastLongsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedLongsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastFloatsLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastDoublesLinesAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostBytesRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedBytesRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostShortsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostWordsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedShortsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedWordsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostLongsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostUnsignedLongsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostFloatsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func mostDoublesRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastBytesRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedBytesRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastShortsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastWordsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedShortsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedWordsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastLongsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastUnsignedLongsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastFloatsRowsAVX512(dst, src *byte, lines, n, step int)

//go:noescape
func leastDoublesRowsAVX512(dst, src *byte, lines, n, step int)
