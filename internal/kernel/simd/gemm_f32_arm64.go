package simd

var floatKernels = family[Floats]{
	NEON: {
		Set: NEON, Rows: 6, Cols: 16, Half: 8, fullTiles: true,
		fused: tileKernels{
			whole: []func(t *Tile){fused1x4NEON, fused2x4NEON, fused3x4NEON, fused4x4NEON, fused5x4NEON, fused6x4NEON},
			half:  []func(t *Tile){fused1x2NEON, fused2x2NEON, fused3x2NEON, fused4x2NEON, fused5x2NEON, fused6x2NEON},
			wide:  [WideBFloat16 + 1]func(t *Tile){fusedWideNEON},
		},
		exact: tileKernels{
			whole: []func(t *Tile){exact1x4NEON, exact2x4NEON, exact3x4NEON, exact4x4NEON, exact5x4NEON, exact6x4NEON},
			half:  []func(t *Tile){exact1x2NEON, exact2x2NEON, exact3x2NEON, exact4x2NEON, exact5x2NEON, exact6x2NEON},
			wide:  [WideBFloat16 + 1]func(t *Tile){exactWideNEON},
		},
		gather: gatherNEON, spread: spreadNEON,
	},
}
