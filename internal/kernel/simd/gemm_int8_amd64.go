package simd

var intKernels = withAMX(family[Ints]{
	AVX2: {
		Set: AVX2, Rows: 6, Cols: 16, loops: true, Lanes: 8, Step: 16,
		narrow:     []func(t *IntTile){narrow1AVX2, narrow2AVX2, narrow3AVX2, narrow4AVX2, narrow5AVX2, narrow6AVX2},
		wide:       []func(t *IntTile){wide1AVX2, wide2AVX2, wide3AVX2, wide4AVX2, wide5AVX2, wide6AVX2},
		quads:      []func(t *IntTile){quads1AVX2, quads2AVX2, quads3AVX2, quads4AVX2, quads5AVX2, quads6AVX2},
		ordered:    []func(t *IntTile){ordered1AVX2, ordered2AVX2, ordered3AVX2, ordered4AVX2, ordered5AVX2, ordered6AVX2},
		splitPairs: splitPairsAVX2, joinPairs: joinPairsAVX2,
		groups:    &groupKernelsAVX2,
		widenInt8: widenInt8AVX2, widenUint8: widenUint8AVX2, reach: reachAVX2,
		gather: gatherPairsAVX2, requantiseFused: requantiseFusedAVX2, requantiseSmallAny: requantiseSmallAVX2, requantise: requantiseAVX2, requantiseFew: requantiseAVX2,
		requantise16: requantise16AVX2, requantiseHalves: requantiseHalvesAVX2, splitFloats: halvesAVX2,
		lookup: lookupAVX2,
	},
	AVXVNNI: &avxVNNI,
	AVX512: {
		Set: AVX512, Rows: 12, Cols: 32, Lanes: 16, Step: 32,
		narrow:    []func(t *IntTile){narrow1AVX512, narrow2AVX512, narrow3AVX512, narrow4AVX512, narrow5AVX512, narrow6AVX512, narrow7AVX512, narrow8AVX512, narrow9AVX512, narrow10AVX512, narrow11AVX512, narrow12AVX512},
		wide:      []func(t *IntTile){wide1AVX512, wide2AVX512, wide3AVX512, wide4AVX512, wide5AVX512, wide6AVX512, wide7AVX512, wide8AVX512, wide9AVX512, wide10AVX512, wide11AVX512, wide12AVX512},
		copyBytes: [2]func(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, flip int16){copyBytes1AVX512, copyBytes2AVX512},
		widenLines: [2][2]func(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16){
			{widenLinesU1AVX512, widenLinesU2AVX512},
			{widenLinesS1AVX512, widenLinesS2AVX512},
		},
		widenInt8: widenInt8AVX512, widenUint8: widenUint8AVX512, reach: reachAVX2,
		gather: gatherPairsAVX512, requantise: requantiseAVX512, requantiseSmall: smallRequantAVX512, requantiseFew: requantiseAVX2, requantise16: requantise16AVX512, requantiseHalves: requantiseHalvesAVX512, splitFloats: halvesAVX512, splitBytes: apartAVX512, weave: weaveAVX512, lostBits: lostWordsAVX512,
		lookup: lookupAVX2,
	},
	VNNI: {
		Set: VNNI, Rows: 12, Cols: 32, Lanes: 16, Step: 32,
		narrow:     []func(t *IntTile){narrow1VNNI, narrow2VNNI, narrow3VNNI, narrow4VNNI, narrow5VNNI, narrow6VNNI, narrow7VNNI, narrow8VNNI, narrow9VNNI, narrow10VNNI, narrow11VNNI, narrow12VNNI},
		narrowHalf: []func(t *IntTile){narrowHalf1VNNI, narrowHalf2VNNI, narrowHalf3VNNI, narrowHalf4VNNI, narrowHalf5VNNI, narrowHalf6VNNI, narrowHalf7VNNI, narrowHalf8VNNI, narrowHalf9VNNI, narrowHalf10VNNI, narrowHalf11VNNI, narrowHalf12VNNI},
		wide:       []func(t *IntTile){wide1VNNI, wide2VNNI, wide3VNNI, wide4VNNI, wide5VNNI, wide6VNNI, wide7VNNI, wide8VNNI, wide9VNNI, wide10VNNI, wide11VNNI, wide12VNNI},
		copyBytes:  [2]func(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, flip int16){copyBytes1AVX512, copyBytes2AVX512},
		widenLines: [2][2]func(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16){
			{widenLinesU1AVX512, widenLinesU2AVX512},
			{widenLinesS1AVX512, widenLinesS2AVX512},
		},
		lookup:          lookupVNNI,
		lookupAnyLength: true,
		widenInt8:       widenInt8AVX512, widenUint8: widenUint8AVX512,
		reach:       reachAVX2,
		interleave:  interleaveAVX2,
		quads:       []func(t *IntTile){quads1VNNI, quads2VNNI, quads3VNNI, quads4VNNI, quads5VNNI, quads6VNNI, quads7VNNI, quads8VNNI, quads9VNNI, quads10VNNI, quads11VNNI, quads12VNNI},
		few:         []func(t *IntTile){few1VNNI, few2VNNI, few3VNNI, few4VNNI, few5VNNI, few6VNNI, few7VNNI, few8VNNI, few9VNNI, few10VNNI, few11VNNI, few12VNNI},
		transposed:  []func(t *IntTile){turned1VNNI, turned2VNNI, turned3VNNI, turned4VNNI, turned5VNNI, turned6VNNI, turned7VNNI, turned8VNNI, turned9VNNI, turned10VNNI, turned11VNNI, turned12VNNI},
		half:        []func(t *IntTile){half1VNNI, half2VNNI, half3VNNI, half4VNNI, half5VNNI, half6VNNI, half7VNNI, half8VNNI, half9VNNI, half10VNNI, half11VNNI, half12VNNI},
		quadsWide:   quadsWideVNNI,
		groups:      &groupKernelsVNNI,
		requant:     &requantVNNI,
		gatherQuads: gatherQuadsAVX512,
		gather:      gatherPairsAVX512, requantise: requantiseAVX512, requantiseSmall: smallRequantAVX512, requantiseFew: requantiseAVX2, requantise16: requantise16AVX512, requantiseHalves: requantiseHalvesAVX512, splitFloats: halvesAVX512, splitBytes: apartAVX512, weave: weaveAVX512, lostBits: lostWordsAVX512,
	},
}, &amxKernels)

var smallRequantAVX512 = [roundings]*smallRequantKernels{
	{requantise64AVX512, requantise32AVX512, requantiseLast64AVX512, requantiseLast32AVX512, requantiseLast16AVX512},
	{requantise64UpAVX512, requantise32UpAVX512, requantiseLast64UpAVX512, requantiseLast32UpAVX512, requantiseLast16UpAVX512},
	{requantise64FusedAVX512, requantise32FusedAVX512, requantiseLast64FusedAVX512, requantiseLast32FusedAVX512, requantiseLast16FusedAVX512},
}
