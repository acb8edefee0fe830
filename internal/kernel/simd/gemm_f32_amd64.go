package simd

var floatKernels = family[Floats]{
	AVX2: {
		Set: AVX2, Rows: 6, Cols: 16, Half: 8,
		fused: tileKernels{
			whole: []func(t *Tile){fused1x2AVX2, fused2x2AVX2, fused3x2AVX2, fused4x2AVX2, fused5x2AVX2, fused6x2AVX2},
			half:  []func(t *Tile){fused1x1AVX2, fused2x1AVX2, fused3x1AVX2, fused4x1AVX2, fused5x1AVX2, fused6x1AVX2},
			wide:  [...]func(t *Tile){fusedWideAVX2, fusedWideHalfAVX2, fusedWideBrainAVX2},
			tiles: [...]func(t *Tile){fusedTiles6x2AVX2, fusedTiles6x1AVX2},
		},
		exact: tileKernels{
			whole: []func(t *Tile){exact1x2AVX2, exact2x2AVX2, exact3x2AVX2, exact4x2AVX2, exact5x2AVX2, exact6x2AVX2},
			half:  []func(t *Tile){exact1x1AVX2, exact2x1AVX2, exact3x1AVX2, exact4x1AVX2, exact5x1AVX2, exact6x1AVX2},
			wide:  [...]func(t *Tile){exactWideAVX2, exactWideHalfAVX2, exactWideBrainAVX2},
			tiles: [...]func(t *Tile){exactTiles6x2AVX2, exactTiles6x1AVX2},
		},
		indirect: tileKernels{
			whole: []func(t *Tile){placed1x2AVX2, placed2x2AVX2, placed3x2AVX2, placed4x2AVX2, placed5x2AVX2, placed6x2AVX2},
			half:  []func(t *Tile){placed1x1AVX2, placed2x1AVX2, placed3x1AVX2, placed4x1AVX2, placed5x1AVX2, placed6x1AVX2},
		},
		exactIndirect: tileKernels{
			whole: []func(t *Tile){exactPlaced1x2AVX2, exactPlaced2x2AVX2, exactPlaced3x2AVX2, exactPlaced4x2AVX2, exactPlaced5x2AVX2, exactPlaced6x2AVX2},
		},
		gather: gatherAVX2, spread: spreadAVX2,
	},
	AVX512: {
		Set: AVX512, Rows: 12, Cols: 32, Half: 16,
		fused: tileKernels{
			whole: []func(t *Tile){fused1x2AVX512, fused2x2AVX512, fused3x2AVX512, fused4x2AVX512, fused5x2AVX512, fused6x2AVX512, fused7x2AVX512, fused8x2AVX512, fused9x2AVX512, fused10x2AVX512, fused11x2AVX512, fused12x2AVX512},
			half:  []func(t *Tile){fused1x1AVX512, fused2x1AVX512, fused3x1AVX512, fused4x1AVX512, fused5x1AVX512, fused6x1AVX512, fused7x1AVX512, fused8x1AVX512, fused9x1AVX512, fused10x1AVX512, fused11x1AVX512, fused12x1AVX512},
			short: []func(t *Tile){fused1x1shortAVX512, fused2x1shortAVX512, fused3x1shortAVX512, fused4x1shortAVX512, fused5x1shortAVX512, fused6x1shortAVX512, fused7x1shortAVX512, fused8x1shortAVX512, fused9x1shortAVX512, fused10x1shortAVX512, fused11x1shortAVX512, fused12x1shortAVX512},
			tiny:  []func(t *Tile){fused1x1tinyAVX512, fused2x1tinyAVX512, fused3x1tinyAVX512, fused4x1tinyAVX512, fused5x1tinyAVX512, fused6x1tinyAVX512, fused7x1tinyAVX512, fused8x1tinyAVX512, fused9x1tinyAVX512, fused10x1tinyAVX512, fused11x1tinyAVX512, fused12x1tinyAVX512},
			wide:  [...]func(t *Tile){fusedWideAVX512, fusedWideHalfAVX512, fusedWideBrainAVX512},
		},
		exact: tileKernels{
			whole: []func(t *Tile){exact1x2AVX512, exact2x2AVX512, exact3x2AVX512, exact4x2AVX512, exact5x2AVX512, exact6x2AVX512, exact7x2AVX512, exact8x2AVX512, exact9x2AVX512, exact10x2AVX512, exact11x2AVX512, exact12x2AVX512},
			half:  []func(t *Tile){exact1x1AVX512, exact2x1AVX512, exact3x1AVX512, exact4x1AVX512, exact5x1AVX512, exact6x1AVX512, exact7x1AVX512, exact8x1AVX512, exact9x1AVX512, exact10x1AVX512, exact11x1AVX512, exact12x1AVX512},
			short: []func(t *Tile){exact1x1shortAVX512, exact2x1shortAVX512, exact3x1shortAVX512, exact4x1shortAVX512, exact5x1shortAVX512, exact6x1shortAVX512, exact7x1shortAVX512, exact8x1shortAVX512, exact9x1shortAVX512, exact10x1shortAVX512, exact11x1shortAVX512, exact12x1shortAVX512},
			tiny:  []func(t *Tile){exact1x1tinyAVX512, exact2x1tinyAVX512, exact3x1tinyAVX512, exact4x1tinyAVX512, exact5x1tinyAVX512, exact6x1tinyAVX512, exact7x1tinyAVX512, exact8x1tinyAVX512, exact9x1tinyAVX512, exact10x1tinyAVX512, exact11x1tinyAVX512, exact12x1tinyAVX512},
			wide:  [...]func(t *Tile){exactWideAVX512, exactWideHalfAVX512, exactWideBrainAVX512},
		},
		indirect: tileKernels{
			whole:  []func(t *Tile){placed1x2AVX512, placed2x2AVX512, placed3x2AVX512, placed4x2AVX512, placed5x2AVX512, placed6x2AVX512, placed7x2AVX512, placed8x2AVX512, placed9x2AVX512, placed10x2AVX512, placed11x2AVX512, placed12x2AVX512},
			half:   []func(t *Tile){placed1x1AVX512, placed2x1AVX512, placed3x1AVX512, placed4x1AVX512, placed5x1AVX512, placed6x1AVX512, placed7x1AVX512, placed8x1AVX512, placed9x1AVX512, placed10x1AVX512, placed11x1AVX512, placed12x1AVX512},
			short:  []func(t *Tile){placed1x1shortAVX512, placed2x1shortAVX512, placed3x1shortAVX512, placed4x1shortAVX512, placed5x1shortAVX512, placed6x1shortAVX512, placed7x1shortAVX512, placed8x1shortAVX512, placed9x1shortAVX512, placed10x1shortAVX512, placed11x1shortAVX512, placed12x1shortAVX512},
			tiny:   []func(t *Tile){placed1x1tinyAVX512, placed2x1tinyAVX512, placed3x1tinyAVX512, placed4x1tinyAVX512, placed5x1tinyAVX512, placed6x1tinyAVX512, placed7x1tinyAVX512, placed8x1tinyAVX512, placed9x1tinyAVX512, placed10x1tinyAVX512, placed11x1tinyAVX512, placed12x1tinyAVX512},
			double: []func(t *Tile){placed1x4AVX512, placed2x4AVX512, placed3x4AVX512, placed4x4AVX512, placed5x4AVX512, placed6x4AVX512},
		},
		exactIndirect: tileKernels{
			whole:  []func(t *Tile){exactPlaced1x2AVX512, exactPlaced2x2AVX512, exactPlaced3x2AVX512, exactPlaced4x2AVX512, exactPlaced5x2AVX512, exactPlaced6x2AVX512, exactPlaced7x2AVX512, exactPlaced8x2AVX512, exactPlaced9x2AVX512, exactPlaced10x2AVX512, exactPlaced11x2AVX512, exactPlaced12x2AVX512},
			double: []func(t *Tile){exactPlaced1x4AVX512, exactPlaced2x4AVX512, exactPlaced3x4AVX512, exactPlaced4x4AVX512, exactPlaced5x4AVX512, exactPlaced6x4AVX512},
		},
		gather: gatherAVX512, spread: spreadAVX512,
	},
}
