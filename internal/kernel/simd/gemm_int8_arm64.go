package simd

var intKernels = family[Ints]{
	NEON: {
		Set: NEON, Rows: 6, Cols: 16, Lanes: 8, Step: 16,
		narrow:    []func(t *IntTile){narrow1NEON, narrow2NEON, narrow3NEON, narrow4NEON, narrow5NEON, narrow6NEON},
		wide:      []func(t *IntTile){wide1NEON, wide2NEON, wide3NEON, wide4NEON, wide5NEON, wide6NEON},
		widenInt8: widenInt8NEON, widenUint8: widenUint8NEON,
		gather: gatherPairsNEON, requantise: requantiseNEON, requantiseFew: requantiseNEON, lookup: lookupNEON,
	},
	NEONDot: {
		Set: NEONDot, Rows: 6, Cols: 16, Lanes: 8, Step: 16, Signed: true,
		narrow:      []func(t *IntTile){narrow1NEON, narrow2NEON, narrow3NEON, narrow4NEON, narrow5NEON, narrow6NEON},
		wide:        []func(t *IntTile){wide1NEON, wide2NEON, wide3NEON, wide4NEON, wide5NEON, wide6NEON},
		quads:       []func(t *IntTile){quads1NEONDot, quads2NEONDot, quads3NEONDot, quads4NEONDot, quads5NEONDot, quads6NEONDot},
		transposed:  []func(t *IntTile){turned1NEONDot, turned2NEONDot, turned3NEONDot, turned4NEONDot, turned5NEONDot, turned6NEONDot},
		half:        []func(t *IntTile){half1NEONDot, half2NEONDot, half3NEONDot, half4NEONDot, half5NEONDot, half6NEONDot},
		gatherQuads: gatherQuadsNEONDot,
		widenInt8:   widenInt8NEON, widenUint8: widenUint8NEON,
		gather: gatherPairsNEON, requantise: requantiseNEON, requantiseFew: requantiseNEON, lookup: lookupNEON,
	},
	I8MM: {
		Set: I8MM, Rows: 6, Cols: 16, Lanes: 8, Step: 16, Signed: true, QuadPairs: true,
		narrow:      []func(t *IntTile){narrow1NEON, narrow2NEON, narrow3NEON, narrow4NEON, narrow5NEON, narrow6NEON},
		wide:        []func(t *IntTile){wide1NEON, wide2NEON, wide3NEON, wide4NEON, wide5NEON, wide6NEON},
		quads:       []func(t *IntTile){quads1I8MM, quads2I8MM, quads3I8MM, quads4I8MM, quads5I8MM, quads6I8MM},
		transposed:  []func(t *IntTile){turned1I8MM, turned2I8MM, turned3I8MM, turned4I8MM, turned5I8MM, turned6I8MM},
		half:        []func(t *IntTile){half1I8MM, half2I8MM, half3I8MM, half4I8MM, half5I8MM, half6I8MM},
		gatherQuads: gatherQuadsI8MM,
		widenInt8:   widenInt8NEON, widenUint8: widenUint8NEON,
		gather: gatherPairsNEON, requantise: requantiseNEON, requantiseFew: requantiseNEON, lookup: lookupNEON,
	},
}
