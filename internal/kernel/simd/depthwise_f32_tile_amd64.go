package simd

var laneTileKernels = family[LaneTiles]{
	AVX512: {
		Set: AVX512,
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
