package simd

var laneTileKernels = family[LaneTiles]{
	AVX2: {
		Set: AVX2, lanes: 8,
		kernels: [3][MaxStrip + 1][TileLines][MaxTileColumns - MinTileColumns + 1][2]func(t *LaneTile){
			1: {
				3: {
					{{laneTile3x1x3by1AVX2, laneTile3x1x3by1EdgeAVX2}, {laneTile3x1x4by1AVX2, laneTile3x1x4by1EdgeAVX2}},
					{{laneTile3x2x3by1AVX2, laneTile3x2x3by1EdgeAVX2}, {laneTile3x2x4by1AVX2, laneTile3x2x4by1EdgeAVX2}},
				},
				5: {
					{{laneTile5x1x3by1AVX2, laneTile5x1x3by1EdgeAVX2}, {laneTile5x1x4by1AVX2, laneTile5x1x4by1EdgeAVX2}},
					{{laneTile5x2x3by1AVX2, laneTile5x2x3by1EdgeAVX2}, {laneTile5x2x4by1AVX2, laneTile5x2x4by1EdgeAVX2}},
				},
				7: {
					{{laneTile7x1x3by1AVX2, laneTile7x1x3by1EdgeAVX2}, {laneTile7x1x4by1AVX2, laneTile7x1x4by1EdgeAVX2}},
					{{laneTile7x2x3by1AVX2, laneTile7x2x3by1EdgeAVX2}, {laneTile7x2x4by1AVX2, laneTile7x2x4by1EdgeAVX2}},
				},
			},
			2: {
				3: {
					{{laneTile3x1x3by2AVX2, laneTile3x1x3by2EdgeAVX2}, {laneTile3x1x4by2AVX2, laneTile3x1x4by2EdgeAVX2}},
					{{laneTile3x2x3by2AVX2, laneTile3x2x3by2EdgeAVX2}, {laneTile3x2x4by2AVX2, laneTile3x2x4by2EdgeAVX2}},
				},
				5: {
					{{laneTile5x1x3by2AVX2, laneTile5x1x3by2EdgeAVX2}, {laneTile5x1x4by2AVX2, laneTile5x1x4by2EdgeAVX2}},
					{{laneTile5x2x3by2AVX2, laneTile5x2x3by2EdgeAVX2}, {laneTile5x2x4by2AVX2, laneTile5x2x4by2EdgeAVX2}},
				},
			},
		},
	},
	AVX512: {
		Set: AVX512, lanes: 16,
		kernels: [3][MaxStrip + 1][TileLines][MaxTileColumns - MinTileColumns + 1][2]func(t *LaneTile){
			1: {
				3: {
					{{laneTile3x1x3by1AVX512, laneTile3x1x3by1EdgeAVX512}, {laneTile3x1x4by1AVX512, laneTile3x1x4by1EdgeAVX512}},
					{{laneTile3x2x3by1AVX512, laneTile3x2x3by1EdgeAVX512}, {laneTile3x2x4by1AVX512, laneTile3x2x4by1EdgeAVX512}},
				},
				5: {
					{{laneTile5x1x3by1AVX512, laneTile5x1x3by1EdgeAVX512}, {laneTile5x1x4by1AVX512, laneTile5x1x4by1EdgeAVX512}},
					{{laneTile5x2x3by1AVX512, laneTile5x2x3by1EdgeAVX512}, {laneTile5x2x4by1AVX512, laneTile5x2x4by1EdgeAVX512}},
				},
				7: {
					{{laneTile7x1x3by1AVX512, laneTile7x1x3by1EdgeAVX512}, {laneTile7x1x4by1AVX512, laneTile7x1x4by1EdgeAVX512}},
					{{laneTile7x2x3by1AVX512, laneTile7x2x3by1EdgeAVX512}, {laneTile7x2x4by1AVX512, laneTile7x2x4by1EdgeAVX512}},
				},
			},
			2: {
				3: {
					{{laneTile3x1x3by2AVX512, laneTile3x1x3by2EdgeAVX512}, {laneTile3x1x4by2AVX512, laneTile3x1x4by2EdgeAVX512}},
					{{laneTile3x2x3by2AVX512, laneTile3x2x3by2EdgeAVX512}, {laneTile3x2x4by2AVX512, laneTile3x2x4by2EdgeAVX512}},
				},
				5: {
					{{laneTile5x1x3by2AVX512, laneTile5x1x3by2EdgeAVX512}, {laneTile5x1x4by2AVX512, laneTile5x1x4by2EdgeAVX512}},
					{{laneTile5x2x3by2AVX512, laneTile5x2x3by2EdgeAVX512}, {laneTile5x2x4by2AVX512, laneTile5x2x4by2EdgeAVX512}},
				},
			},
		},
	},
}
