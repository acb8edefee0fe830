package simd

// avxVNNI holds the AVX2 kernels and the AVX-VNNI kernels for 4-way dot products.
var avxVNNI = Ints{
	Set: AVXVNNI, Rows: 6, Cols: 16, loops: true, Lanes: 8, Step: 16,
	narrow:      []func(t *IntTile){narrow1AVXVNNI, narrow2AVXVNNI, narrow3AVXVNNI, narrow4AVXVNNI, narrow5AVXVNNI, narrow6AVXVNNI},
	wide:        []func(t *IntTile){wide1AVXVNNI, wide2AVXVNNI, wide3AVXVNNI, wide4AVXVNNI, wide5AVXVNNI, wide6AVXVNNI},
	quads:       []func(t *IntTile){quads1AVXVNNI, quads2AVXVNNI, quads3AVXVNNI, quads4AVXVNNI, quads5AVXVNNI, quads6AVXVNNI},
	transposed:  []func(t *IntTile){turned1AVXVNNI, turned2AVXVNNI, turned3AVXVNNI, turned4AVXVNNI, turned5AVXVNNI, turned6AVXVNNI},
	half:        []func(t *IntTile){half1AVXVNNI, half2AVXVNNI, half3AVXVNNI, half4AVXVNNI, half5AVXVNNI, half6AVXVNNI},
	groups:      &groupKernelsAVXVNNI,
	gatherQuads: gatherQuadsAVX2,
	widenInt8:   widenInt8AVX2, widenUint8: widenUint8AVX2,
	gather: gatherPairsAVX2, requantiseFused: requantiseFusedAVX2, requantiseSmallAny: requantiseSmallAVX2, requantise: requantiseAVX2, requantiseFew: requantiseAVX2,
	requantise16: requantise16AVX2, requantiseHalves: requantiseHalvesAVX2, splitFloats: halvesAVX2,
	lookup: lookupAVX2,
}
