package simd

var stripKernels = family[Strips]{
	AVX2: {
		Set: AVX2, Width: 8,
		lanes:  [3][MaxStrip + 1][2]func(t *Strip){1: {3: {stripLanes3x1by1AVX2}}, 2: {3: {stripLanes3x1by2AVX2}}},
		spread: [3][MaxStrip + 1][2]func(t *Strip){1: {3: {stripSpread3x1by1AVX2}}},
	},
	AVX512: {
		Set: AVX512, Width: 16, masks: true,
		narrow: &Strips{
			Set: AVX512, Width: 8, masks: true,
			spread: [3][MaxStrip + 1][2]func(t *Strip){
				1: {3: {stripSpread3x1by1HalfAVX512}, 5: {stripSpread5x1by1HalfAVX512}, 7: {stripSpread7x1by1HalfAVX512}},
				2: {3: {stripSpread3x1by2HalfAVX512}, 5: {stripSpread5x1by2HalfAVX512}, 7: {stripSpread7x1by2HalfAVX512}},
			},
		},
		lanes: [3][MaxStrip + 1][2]func(t *Strip){
			1: {3: {stripLanes3x1by1AVX512, stripLanes3x2by1AVX512}, 5: {stripLanes5x1by1AVX512}},
			2: {3: {stripLanes3x1by2AVX512}, 5: {stripLanes5x1by2AVX512}},
		},
		columns: [3][MaxStrip + 1][MaxTileColumns - MinTileColumns + 1]func(t *Strip){
			2: {3: {stripColumns3x3by2AVX512, stripColumns3x4by2AVX512}},
		},
		spread: [3][MaxStrip + 1][2]func(t *Strip){
			1: {3: {stripSpread3x1by1AVX512, stripSpread3x2by1AVX512}, 5: {stripSpread5x1by1AVX512}, 7: {stripSpread7x1by1AVX512}},
			2: {3: {stripSpread3x1by2AVX512}, 5: {stripSpread5x1by2AVX512}, 7: {stripSpread7x1by2AVX512}},
		},
	},
}
