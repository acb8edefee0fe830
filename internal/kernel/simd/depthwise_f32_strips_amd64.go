package simd

var stripKernels = family[Strips]{
	AVX2: {
		Set: AVX2, Width: 8,
		lanes: [3][MaxStrip + 1][2]func(t *Strip){1: {3: {stripLanes3x1by1AVX2}}, 2: {3: {stripLanes3x1by2AVX2}}},
		spread: [3][MaxStrip + 1][]spreadStrip{
			1: {
				3: {
					{stripPlanes3by1x1of1AVX2, 4, stripPlanes3by1x1of4AVX2},
					{stripPlanes3by1x2of1AVX2, 2, stripPlanes3by1x2of2AVX2},
					{one: stripPlanes3by1x3of1AVX2},
					{one: stripPlanes3by1x4of1AVX2},
				},
				5: {{stripPlanes5by1x1of1AVX2, 2, stripPlanes5by1x1of2AVX2}, {one: stripPlanes5by1x2of1AVX2}},
				7: {{stripPlanes7by1x1of1AVX2, 2, stripPlanes7by1x1of2AVX2}, {one: stripPlanes7by1x2of1AVX2}},
			},
			2: {
				3: {
					{stripPlanes3by2x1of1AVX2, 4, stripPlanes3by2x1of4AVX2},
					{stripPlanes3by2x2of1AVX2, 2, stripPlanes3by2x2of2AVX2},
					{one: stripPlanes3by2x3of1AVX2},
					{one: stripPlanes3by2x4of1AVX2},
				},
				5: {
					{stripPlanes5by2x1of1AVX2, 3, stripPlanes5by2x1of3AVX2},
					{one: stripPlanes5by2x2of1AVX2},
					{one: stripPlanes5by2x3of1AVX2},
				},
				7: {{stripPlanes7by2x1of1AVX2, 2, stripPlanes7by2x1of2AVX2}, {one: stripPlanes7by2x2of1AVX2}},
			},
		},
	},
	AVX512: {
		Set: AVX512, Width: 16, masks: true,
		narrow: &Strips{
			Set: AVX512, Width: 8, masks: true,
			spread: [3][MaxStrip + 1][]spreadStrip{
				1: {3: {{one: stripSpread3x1by1HalfAVX512}}, 5: {{one: stripSpread5x1by1HalfAVX512}}, 7: {{one: stripSpread7x1by1HalfAVX512}}},
				2: {3: {{one: stripSpread3x1by2HalfAVX512}}, 5: {{one: stripSpread5x1by2HalfAVX512}}, 7: {{one: stripSpread7x1by2HalfAVX512}}},
			},
		},
		lanes: [3][MaxStrip + 1][2]func(t *Strip){
			1: {3: {stripLanes3x1by1AVX512, stripLanes3x2by1AVX512}, 5: {stripLanes5x1by1AVX512}},
			2: {3: {stripLanes3x1by2AVX512}, 5: {stripLanes5x1by2AVX512}},
		},
		columns: [3][MaxStrip + 1][MaxTileColumns - MinTileColumns + 1]func(t *Strip){
			2: {3: {stripColumns3x3by2AVX512, stripColumns3x4by2AVX512}},
		},
		spread: [3][MaxStrip + 1][]spreadStrip{
			1: {3: {{one: stripSpread3x1by1AVX512}, {one: stripSpread3x2by1AVX512}}, 5: {{one: stripSpread5x1by1AVX512}}, 7: {{one: stripSpread7x1by1AVX512}}},
			2: {3: {{one: stripSpread3x1by2AVX512}}, 5: {{one: stripSpread5x1by2AVX512}}, 7: {{one: stripSpread7x1by2AVX512}}},
		},
	},
}
