package simd

var ints = withTiles(family[Ints]{
	AVX2: {
		Set: AVX2, Rows: 6, Cols: 16, Lanes: 8, Step: 16,
		narrow:    []func(t *IntTile){narrow1AVX2, narrow2AVX2, narrow3AVX2, narrow4AVX2, narrow5AVX2, narrow6AVX2},
		wide:      []func(t *IntTile){wide1AVX2, wide2AVX2, wide3AVX2, wide4AVX2, wide5AVX2, wide6AVX2},
		widenInt8: widenInt8AVX2, widenUint8: widenUint8AVX2, reach: reachAVX2,
		gather: gatherPairsAVX2, requantise: requantiseAVX2, requantiseFew: requantiseAVX2,
	},
	AVXVNNI: &avxVNNI,
	AVX512: {
		Set: AVX512, Rows: 12, Cols: 32, Lanes: 16, Step: 32,
		narrow:    []func(t *IntTile){narrow1AVX512, narrow2AVX512, narrow3AVX512, narrow4AVX512, narrow5AVX512, narrow6AVX512, narrow7AVX512, narrow8AVX512, narrow9AVX512, narrow10AVX512, narrow11AVX512, narrow12AVX512},
		wide:      []func(t *IntTile){wide1AVX512, wide2AVX512, wide3AVX512, wide4AVX512, wide5AVX512, wide6AVX512, wide7AVX512, wide8AVX512, wide9AVX512, wide10AVX512, wide11AVX512, wide12AVX512},
		copyBytes: [2]func(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, turn int16){copyBytes1AVX512, copyBytes2AVX512},
		widenLines: [2][2]func(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16){
			{widenLinesU1AVX512, widenLinesU2AVX512},
			{widenLinesS1AVX512, widenLinesS2AVX512},
		},
		widenInt8: widenInt8AVX512, widenUint8: widenUint8AVX512, reach: reachAVX2,
		gather: gatherPairsAVX512, requantise: requantiseAVX512, requantiseSmall: smallAVX512, requantiseFew: requantiseAVX2, requantise16: requantise16AVX512, requantiseHalves: requantiseHalvesAVX512, halves: halvesAVX512, apart: apartAVX512, weave: weaveAVX512, lostWords: lostWordsAVX512,
	},
	VNNI: {
		Set: VNNI, Rows: 12, Cols: 32, Lanes: 16, Step: 32,
		narrow:     []func(t *IntTile){narrow1VNNI, narrow2VNNI, narrow3VNNI, narrow4VNNI, narrow5VNNI, narrow6VNNI, narrow7VNNI, narrow8VNNI, narrow9VNNI, narrow10VNNI, narrow11VNNI, narrow12VNNI},
		narrowHalf: []func(t *IntTile){narrowHalf1VNNI, narrowHalf2VNNI, narrowHalf3VNNI, narrowHalf4VNNI, narrowHalf5VNNI, narrowHalf6VNNI, narrowHalf7VNNI, narrowHalf8VNNI, narrowHalf9VNNI, narrowHalf10VNNI, narrowHalf11VNNI, narrowHalf12VNNI},
		wide:       []func(t *IntTile){wide1VNNI, wide2VNNI, wide3VNNI, wide4VNNI, wide5VNNI, wide6VNNI, wide7VNNI, wide8VNNI, wide9VNNI, wide10VNNI, wide11VNNI, wide12VNNI},
		copyBytes:  [2]func(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, turn int16){copyBytes1AVX512, copyBytes2AVX512},
		widenLines: [2][2]func(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16){
			{widenLinesU1AVX512, widenLinesU2AVX512},
			{widenLinesS1AVX512, widenLinesS2AVX512},
		},
		lookup:     lookupVNNI,
		looksUpAll: true,
		widenInt8:  widenInt8AVX512, widenUint8: widenUint8AVX512,
		reach:       reachAVX2,
		interleave:  interleaveAVX2,
		quads:       []func(t *IntTile){quads1VNNI, quads2VNNI, quads3VNNI, quads4VNNI, quads5VNNI, quads6VNNI, quads7VNNI, quads8VNNI, quads9VNNI, quads10VNNI, quads11VNNI, quads12VNNI},
		few:         []func(t *IntTile){few1VNNI, few2VNNI, few3VNNI, few4VNNI, few5VNNI, few6VNNI, few7VNNI, few8VNNI, few9VNNI, few10VNNI, few11VNNI, few12VNNI},
		turned:      []func(t *IntTile){turned1VNNI, turned2VNNI, turned3VNNI, turned4VNNI, turned5VNNI, turned6VNNI, turned7VNNI, turned8VNNI, turned9VNNI, turned10VNNI, turned11VNNI, turned12VNNI},
		half:        []func(t *IntTile){half1VNNI, half2VNNI, half3VNNI, half4VNNI, half5VNNI, half6VNNI, half7VNNI, half8VNNI, half9VNNI, half10VNNI, half11VNNI, half12VNNI},
		quadsWide:   quadsWideVNNI,
		groups:      &byteGroupsVNNI,
		codes:       &codesVNNI,
		gatherQuads: gatherQuadsAVX512,
		gather:      gatherPairsAVX512, requantise: requantiseAVX512, requantiseSmall: smallAVX512, requantiseFew: requantiseAVX2, requantise16: requantise16AVX512, requantiseHalves: requantiseHalvesAVX512, halves: halvesAVX512, apart: apartAVX512, weave: weaveAVX512, lostWords: lostWordsAVX512,
	},
}, &amxLoops)

var smallAVX512 = [roundings]*smallRequantise{
	{requantise64AVX512, requantise32AVX512, requantiseLast64AVX512, requantiseLast32AVX512, requantiseLast16AVX512},
	{requantise64UpAVX512, requantise32UpAVX512, requantiseLast64UpAVX512, requantiseLast32UpAVX512, requantiseLast16UpAVX512},
	{requantise64FusedAVX512, requantise32FusedAVX512, requantiseLast64FusedAVX512, requantiseLast32FusedAVX512, requantiseLast16FusedAVX512},
}

//go:noescape
func requantise16AVX512(dst *int16, stepDst int, sums *int32, stepSums, rows, n, parts, low, stepParts int, scales *int64, zero, lo, hi int32)

//go:noescape
func requantiseHalvesAVX512(dst *int16, stepDst int, sums *float32, stepSums, rows, n, stepParts int, scales *int64, zero, lo, hi int32)

//go:noescape
func weaveAVX512(dst *int16, cols int, src *int16, step, n, pairs int)

//go:noescape
func lostWordsAVX512(src *int16, n int) uint32

//go:noescape
func apartAVX512(upper, lower, src *int16, n int)

//go:noescape
func halvesAVX512(upper, lower *float32, src *int16, n int)

//go:noescape
func requantise64AVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantise32AVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast64AVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast32AVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast16AVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantise64UpAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantise32UpAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast64UpAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast32UpAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast16UpAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)

//go:noescape
func requantise64FusedAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, scale, add, start, unused *int32, zero, lo, hi, sign int32)

//go:noescape
func requantise32FusedAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, scale, add, start, unused *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast64FusedAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, scale, add, start, unused *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast32FusedAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, scale, add, start, unused *int32, zero, lo, hi, sign int32)

//go:noescape
func requantiseLast16FusedAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, scale, add, start, unused *int32, zero, lo, hi, sign int32)

//go:noescape
func quadsWideVNNI(t *IntTile)

//go:noescape
func few1VNNI(t *IntTile)

//go:noescape
func few2VNNI(t *IntTile)

//go:noescape
func few3VNNI(t *IntTile)

//go:noescape
func few4VNNI(t *IntTile)

//go:noescape
func few5VNNI(t *IntTile)

//go:noescape
func few6VNNI(t *IntTile)

//go:noescape
func few7VNNI(t *IntTile)

//go:noescape
func few8VNNI(t *IntTile)

//go:noescape
func few9VNNI(t *IntTile)

//go:noescape
func few10VNNI(t *IntTile)

//go:noescape
func few11VNNI(t *IntTile)

//go:noescape
func few12VNNI(t *IntTile)

//go:noescape
func narrow1AVX2(t *IntTile)

//go:noescape
func narrow2AVX2(t *IntTile)

//go:noescape
func narrow3AVX2(t *IntTile)

//go:noescape
func narrow4AVX2(t *IntTile)

//go:noescape
func narrow5AVX2(t *IntTile)

//go:noescape
func narrow6AVX2(t *IntTile)

//go:noescape
func wide1AVX2(t *IntTile)

//go:noescape
func wide2AVX2(t *IntTile)

//go:noescape
func wide3AVX2(t *IntTile)

//go:noescape
func wide4AVX2(t *IntTile)

//go:noescape
func wide5AVX2(t *IntTile)

//go:noescape
func wide6AVX2(t *IntTile)

//go:noescape
func narrow1AVX512(t *IntTile)

//go:noescape
func narrow2AVX512(t *IntTile)

//go:noescape
func narrow3AVX512(t *IntTile)

//go:noescape
func narrow4AVX512(t *IntTile)

//go:noescape
func narrow5AVX512(t *IntTile)

//go:noescape
func narrow6AVX512(t *IntTile)

//go:noescape
func narrow7AVX512(t *IntTile)

//go:noescape
func narrow8AVX512(t *IntTile)

//go:noescape
func narrow9AVX512(t *IntTile)

//go:noescape
func narrow10AVX512(t *IntTile)

//go:noescape
func narrow11AVX512(t *IntTile)

//go:noescape
func narrow12AVX512(t *IntTile)

//go:noescape
func wide1AVX512(t *IntTile)

//go:noescape
func wide2AVX512(t *IntTile)

//go:noescape
func wide3AVX512(t *IntTile)

//go:noescape
func wide4AVX512(t *IntTile)

//go:noescape
func wide5AVX512(t *IntTile)

//go:noescape
func wide6AVX512(t *IntTile)

//go:noescape
func wide7AVX512(t *IntTile)

//go:noescape
func wide8AVX512(t *IntTile)

//go:noescape
func wide9AVX512(t *IntTile)

//go:noescape
func wide10AVX512(t *IntTile)

//go:noescape
func wide11AVX512(t *IntTile)

//go:noescape
func wide12AVX512(t *IntTile)

//go:noescape
func narrow1VNNI(t *IntTile)

//go:noescape
func narrow2VNNI(t *IntTile)

//go:noescape
func narrow3VNNI(t *IntTile)

//go:noescape
func narrow4VNNI(t *IntTile)

//go:noescape
func narrow5VNNI(t *IntTile)

//go:noescape
func narrow6VNNI(t *IntTile)

//go:noescape
func narrow7VNNI(t *IntTile)

//go:noescape
func narrow8VNNI(t *IntTile)

//go:noescape
func narrow9VNNI(t *IntTile)

//go:noescape
func narrow10VNNI(t *IntTile)

//go:noescape
func narrow11VNNI(t *IntTile)

//go:noescape
func narrow12VNNI(t *IntTile)

//go:noescape
func wide1VNNI(t *IntTile)

//go:noescape
func wide2VNNI(t *IntTile)

//go:noescape
func wide3VNNI(t *IntTile)

//go:noescape
func wide4VNNI(t *IntTile)

//go:noescape
func wide5VNNI(t *IntTile)

//go:noescape
func wide6VNNI(t *IntTile)

//go:noescape
func wide7VNNI(t *IntTile)

//go:noescape
func wide8VNNI(t *IntTile)

//go:noescape
func wide9VNNI(t *IntTile)

//go:noescape
func wide10VNNI(t *IntTile)

//go:noescape
func wide11VNNI(t *IntTile)

//go:noescape
func wide12VNNI(t *IntTile)

//go:noescape
func widenInt8AVX2(dst *int16, src *byte, n int, zero int16)

//go:noescape
func reachAVX2(src *byte, rows, k int, turn, from uint32, mask *byte, above, below *int32)

//go:noescape
func interleaveAVX2(dst, src *byte, step, n int, zero uint32)

//go:noescape
func widenUint8AVX2(dst *int16, src *byte, n int, zero int16)

//go:noescape
func gatherPairsAVX2(dst, src *int16, offs *int32, n int, runs *int32, nruns int)

//go:noescape
func requantiseAVX2(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)

//go:noescape
func widenInt8AVX512(dst *int16, src *byte, n int, zero int16)

//go:noescape
func widenUint8AVX512(dst *int16, src *byte, n int, zero int16)

//go:noescape
func gatherPairsAVX512(dst, src *int16, offs *int32, n int, runs *int32, nruns int)

//go:noescape
func requantiseAVX512(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)

//go:noescape
func quads1VNNI(t *IntTile)

//go:noescape
func quads2VNNI(t *IntTile)

//go:noescape
func quads3VNNI(t *IntTile)

//go:noescape
func quads4VNNI(t *IntTile)

//go:noescape
func quads5VNNI(t *IntTile)

//go:noescape
func quads6VNNI(t *IntTile)

//go:noescape
func quads7VNNI(t *IntTile)

//go:noescape
func quads8VNNI(t *IntTile)

//go:noescape
func quads9VNNI(t *IntTile)

//go:noescape
func quads10VNNI(t *IntTile)

//go:noescape
func quads11VNNI(t *IntTile)

//go:noescape
func quads12VNNI(t *IntTile)

//go:noescape
func turned1VNNI(t *IntTile)

//go:noescape
func turned2VNNI(t *IntTile)

//go:noescape
func turned3VNNI(t *IntTile)

//go:noescape
func turned4VNNI(t *IntTile)

//go:noescape
func turned5VNNI(t *IntTile)

//go:noescape
func turned6VNNI(t *IntTile)

//go:noescape
func turned7VNNI(t *IntTile)

//go:noescape
func turned8VNNI(t *IntTile)

//go:noescape
func turned9VNNI(t *IntTile)

//go:noescape
func turned10VNNI(t *IntTile)

//go:noescape
func turned11VNNI(t *IntTile)

//go:noescape
func turned12VNNI(t *IntTile)

//go:noescape
func half1VNNI(t *IntTile)

//go:noescape
func half2VNNI(t *IntTile)

//go:noescape
func half3VNNI(t *IntTile)

//go:noescape
func half4VNNI(t *IntTile)

//go:noescape
func half5VNNI(t *IntTile)

//go:noescape
func half6VNNI(t *IntTile)

//go:noescape
func half7VNNI(t *IntTile)

//go:noescape
func half8VNNI(t *IntTile)

//go:noescape
func half9VNNI(t *IntTile)

//go:noescape
func half10VNNI(t *IntTile)

//go:noescape
func half11VNNI(t *IntTile)

//go:noescape
func half12VNNI(t *IntTile)

//go:noescape
func gatherQuadsAVX512(dst, src *byte, offs *int32, n int, runs *int32, nruns int)

//go:noescape
func lookupVNNI(dst, src *byte, n int, table *byte)

//go:noescape
func widenLinesU1AVX512(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16)

//go:noescape
func widenLinesU2AVX512(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16)

//go:noescape
func widenLinesS1AVX512(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16)

//go:noescape
func widenLinesS2AVX512(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16)

//go:noescape
func copyBytes1AVX512(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, turn int16)

//go:noescape
func copyBytes2AVX512(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, turn int16)

//go:noescape
func narrowHalf1VNNI(t *IntTile)

//go:noescape
func narrowHalf2VNNI(t *IntTile)

//go:noescape
func narrowHalf3VNNI(t *IntTile)

//go:noescape
func narrowHalf4VNNI(t *IntTile)

//go:noescape
func narrowHalf5VNNI(t *IntTile)

//go:noescape
func narrowHalf6VNNI(t *IntTile)

//go:noescape
func narrowHalf7VNNI(t *IntTile)

//go:noescape
func narrowHalf8VNNI(t *IntTile)

//go:noescape
func narrowHalf9VNNI(t *IntTile)

//go:noescape
func narrowHalf10VNNI(t *IntTile)

//go:noescape
func narrowHalf11VNNI(t *IntTile)

//go:noescape
func narrowHalf12VNNI(t *IntTile)
