package simd

// Of windows of 5 by 5, 64 channels take their weights from memory, a load beside each product, which processors with tiles do at once; those
// of sets below may take longer for the load.
var byteStrips = family[ByteStrips]{
	VNNI: byteStripsOf(VNNI, [3][3]func(t *ByteStrip){1: {2: byteCodes5x16by1VNNI}, 2: {2: byteCodes5x16by2VNNI}}),
	AMX:  byteStripsOf(AMX, [3][3]func(t *ByteStrip){1: {byteCodes5x64by1VNNI, byteCodes5x32by1VNNI}, 2: {byteCodes5x64by2VNNI, byteCodes5x32by2VNNI}}),
}

// byteStripsOf are the loops of VNNI with those for quantised values of windows of 5 by 5, for each step.
func byteStripsOf(set Set, codes [3][3]func(t *ByteStrip)) *ByteStrips {
	return &ByteStrips{
		Set: set,
		lanes: [3][MostByteStrip + 1][2][3]func(t *ByteStrip){
			1: {
				3: {{byteLanes3x64by1VNNI, byteLanes3x32by1VNNI}, {byteCodes3x64by1VNNI, byteCodes3x32by1VNNI}},
				5: {{byteLanes5x64by1VNNI, byteLanes5x32by1VNNI}, codes[1]},
			},
			2: {
				3: {{byteLanes3x64by2VNNI, byteLanes3x32by2VNNI}, {byteCodes3x64by2VNNI, byteCodes3x32by2VNNI}},
				5: {{byteLanes5x64by2VNNI, byteLanes5x32by2VNNI}, codes[2]},
			},
		},
		spread: [3][MostByteStrip + 1][3]func(t *ByteStrip){
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
