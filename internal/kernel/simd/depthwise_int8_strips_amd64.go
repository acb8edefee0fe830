package simd

// The 5×5 kernels for 64 channels read their weights from memory, with a load for each product.
// Processors with AMX do both at the same time; other processors may take longer for the load.
var byteStripKernels = family[ByteStrips]{
	AVX2:    {Set: AVX2, pairs: &[3][MaxByteStrip + 1]func(t *ByteStrip){1: {3: bytePairs3by1AVX2}, 2: {3: bytePairs3by2AVX2, 5: bytePairs5by2AVX2}}},
	AVXVNNI: {Set: AVXVNNI, pairs: &[3][MaxByteStrip + 1]func(t *ByteStrip){1: {3: bytePairs3by1AVXVNNI}, 2: {3: bytePairs3by2AVXVNNI, 5: bytePairs5by2AVXVNNI}}},
	VNNI:    byteStripsOf(VNNI, [3][3]func(t *ByteStrip){1: {2: byteCodes5x16by1VNNI}, 2: {2: byteCodes5x16by2VNNI}}),
	AMX:     byteStripsOf(AMX, [3][3]func(t *ByteStrip){1: {byteCodes5x64by1VNNI, byteCodes5x32by1VNNI}, 2: {byteCodes5x64by2VNNI, byteCodes5x32by2VNNI}}),
}

// byteStripsOf returns the VNNI kernels with the given kernels for quantised 5×5 results, by
// stride.
func byteStripsOf(set Set, codes [3][3]func(t *ByteStrip)) *ByteStrips {
	return &ByteStrips{
		Set: set,
		lanes: [3][MaxByteStrip + 1][2][3]func(t *ByteStrip){
			1: {
				3: {{byteLanes3x64by1VNNI, byteLanes3x32by1VNNI}, {byteCodes3x64by1VNNI, byteCodes3x32by1VNNI}},
				5: {{byteLanes5x64by1VNNI, byteLanes5x32by1VNNI}, codes[1]},
			},
			2: {
				3: {{byteLanes3x64by2VNNI, byteLanes3x32by2VNNI}, {byteCodes3x64by2VNNI, byteCodes3x32by2VNNI}},
				5: {{byteLanes5x64by2VNNI, byteLanes5x32by2VNNI}, codes[2]},
			},
		},
		spread: [3][MaxByteStrip + 1][3]func(t *ByteStrip){
			1: {
				3: {byteSpread3x1by1VNNI, byteSpread3x2by1VNNI, byteSpread3x4by1VNNI},
				5: {byteSpread5x1by1VNNI, byteSpread5x2by1VNNI, byteSpread5x4by1VNNI},
			},
			2: {
				3: {byteSpread3x1by2VNNI, byteSpread3x2by2VNNI, byteSpread3x4by2VNNI},
				5: {byteSpread5x1by2VNNI, byteSpread5x2by2VNNI, byteSpread5x4by2VNNI},
			},
		},
	}
}
