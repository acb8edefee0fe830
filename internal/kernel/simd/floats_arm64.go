package simd

var floats = family[Floats]{
	NEON: {
		Set: NEON, Rows: 6, Cols: 16, Half: 8, bounce: true,
		fused: tiles{
			whole: []func(t *Tile){fused1x4NEON, fused2x4NEON, fused3x4NEON, fused4x4NEON, fused5x4NEON, fused6x4NEON},
			half:  []func(t *Tile){fused1x2NEON, fused2x2NEON, fused3x2NEON, fused4x2NEON, fused5x2NEON, fused6x2NEON},
			wide:  [WideBFloat16 + 1]func(t *Tile){fusedWideNEON},
		},
		exact: tiles{
			whole: []func(t *Tile){exact1x4NEON, exact2x4NEON, exact3x4NEON, exact4x4NEON, exact5x4NEON, exact6x4NEON},
			half:  []func(t *Tile){exact1x2NEON, exact2x2NEON, exact3x2NEON, exact4x2NEON, exact5x2NEON, exact6x2NEON},
			wide:  [WideBFloat16 + 1]func(t *Tile){exactWideNEON},
		},
		gather: gatherNEON, spread: spreadNEON,
	},
}

//go:noescape
func fused1x4NEON(t *Tile)

//go:noescape
func fused2x4NEON(t *Tile)

//go:noescape
func fused3x4NEON(t *Tile)

//go:noescape
func fused4x4NEON(t *Tile)

//go:noescape
func fused5x4NEON(t *Tile)

//go:noescape
func fused6x4NEON(t *Tile)

//go:noescape
func fused1x2NEON(t *Tile)

//go:noescape
func fused2x2NEON(t *Tile)

//go:noescape
func fused3x2NEON(t *Tile)

//go:noescape
func fused4x2NEON(t *Tile)

//go:noescape
func fused5x2NEON(t *Tile)

//go:noescape
func fused6x2NEON(t *Tile)

//go:noescape
func fusedWideNEON(t *Tile)

//go:noescape
func exact1x4NEON(t *Tile)

//go:noescape
func exact2x4NEON(t *Tile)

//go:noescape
func exact3x4NEON(t *Tile)

//go:noescape
func exact4x4NEON(t *Tile)

//go:noescape
func exact5x4NEON(t *Tile)

//go:noescape
func exact6x4NEON(t *Tile)

//go:noescape
func exact1x2NEON(t *Tile)

//go:noescape
func exact2x2NEON(t *Tile)

//go:noescape
func exact3x2NEON(t *Tile)

//go:noescape
func exact4x2NEON(t *Tile)

//go:noescape
func exact5x2NEON(t *Tile)

//go:noescape
func exact6x2NEON(t *Tile)

//go:noescape
func exactWideNEON(t *Tile)

//go:noescape
func gatherNEON(dst, src *float32, offs *int32, n int, runs *int32, nruns int)

//go:noescape
func spreadNEON(dst *float32, panel int, src *float32, line, n, panels int)
