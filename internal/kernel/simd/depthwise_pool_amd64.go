package simd

var windowsAVX2 = Windows{
	Floats: AVX2, Ints: AVX2, floats: 8, every2: every2AVX2,
	lanes: windowLanesAVX2, spread: windowSpreadAVX2, largest: windowLargestAVX2, greatest: windowGreatestAVX2, sum: windowSumAVX2, copy: windowCopyAVX2,
	Block: 16, intLanes: intLanesAVX2, intSpread: intSpreadAVX2, lags: &lagsAVX2,
}

var windowKernels = family[Windows]{
	AVX2: &windowsAVX2,
	AVX512: {
		Floats: AVX512, Ints: AVX512, floats: 16, narrow: &windowsAVX2, copyFloats: copyFloatsAVX512,
		lanes: windowLanesAVX512, spread: windowSpreadAVX512, largest: windowLargestAVX512, greatest: windowGreatestAVX512, sum: windowSumAVX512, copy: windowCopyAVX512,
		Block: 32, intLanes: intLanesAVX512, intSpread: intSpreadAVX512, lags: &lagsAVX512,
	},
	VNNI: {
		Floats: AVX512, Ints: VNNI, floats: 16, narrow: &windowsAVX2, copyFloats: copyFloatsAVX512,
		lanes: windowLanesAVX512, spread: windowSpreadAVX512, largest: windowLargestAVX512, greatest: windowGreatestAVX512, sum: windowSumAVX512, copy: windowCopyAVX512,
		Block: 32, intLanes: intLanesVNNI, intSpread: intSpreadVNNI, lags: &lagsAVX512,
	},
}

var copyFloatsAVX512 = [...]func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int){copyFloats1AVX512, copyFloats2AVX512, copyFloats3AVX512, copyFloats4AVX512}

var lagsAVX2 = [MaxLags]func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int){
	lags1AVX2, lags2AVX2, lags3AVX2, lags4AVX2, lags5AVX2, lags6AVX2, lags7AVX2, lags8AVX2,
}

var lagsAVX512 = [MaxLags]func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int){
	lags1AVX512, lags2AVX512, lags3AVX512, lags4AVX512, lags5AVX512, lags6AVX512, lags7AVX512, lags8AVX512,
}
