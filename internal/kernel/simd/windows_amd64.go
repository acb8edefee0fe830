package simd

var windowsAVX2 = Windows{
	Floats: AVX2, Ints: AVX2, floats: 8, every2: every2AVX2,
	lanes: windowLanesAVX2, spread: windowSpreadAVX2, largest: windowLargestAVX2, greatest: windowGreatestAVX2, sum: windowSumAVX2, copy: windowCopyAVX2,
	Block: 16, intLanes: intLanesAVX2, intSpread: intSpreadAVX2, lags: &lagsAVX2,
}

var windows = family[Windows]{
	AVX2: &windowsAVX2,
	AVX512: {
		Floats: AVX512, Ints: AVX512, floats: 16, few: &windowsAVX2, copyFloats: copyFloatsAVX512,
		lanes: windowLanesAVX512, spread: windowSpreadAVX512, largest: windowLargestAVX512, greatest: windowGreatestAVX512, sum: windowSumAVX512, copy: windowCopyAVX512,
		Block: 32, intLanes: intLanesAVX512, intSpread: intSpreadAVX512, lags: &lagsAVX512,
	},
	VNNI: {
		Floats: AVX512, Ints: VNNI, floats: 16, few: &windowsAVX2, copyFloats: copyFloatsAVX512,
		lanes: windowLanesAVX512, spread: windowSpreadAVX512, largest: windowLargestAVX512, greatest: windowGreatestAVX512, sum: windowSumAVX512, copy: windowCopyAVX512,
		Block: 32, intLanes: intLanesVNNI, intSpread: intSpreadVNNI, lags: &lagsAVX512,
	},
}

var copyFloatsAVX512 = [...]func(dst *float32, stepDst int, src *float32, stepSrc, n, lines int){copyFloats1AVX512, copyFloats2AVX512, copyFloats3AVX512, copyFloats4AVX512}

//go:noescape
func copyFloats1AVX512(dst *float32, stepDst int, src *float32, stepSrc, n, lines int)

//go:noescape
func copyFloats2AVX512(dst *float32, stepDst int, src *float32, stepSrc, n, lines int)

//go:noescape
func copyFloats3AVX512(dst *float32, stepDst int, src *float32, stepSrc, n, lines int)

//go:noescape
func copyFloats4AVX512(dst *float32, stepDst int, src *float32, stepSrc, n, lines int)

//go:noescape
func windowLanesAVX2(t *Window)

//go:noescape
func windowSpreadAVX2(t *Window)

//go:noescape
func windowLargestAVX2(t *Window)

//go:noescape
func windowGreatestAVX2(t *Window)

//go:noescape
func windowSumAVX2(t *Window)

//go:noescape
func windowCopyAVX2(t *Window)

//go:noescape
func windowLanesAVX512(t *Window)

//go:noescape
func windowSpreadAVX512(t *Window)

//go:noescape
func windowLargestAVX512(t *Window)

//go:noescape
func windowGreatestAVX512(t *Window)

//go:noescape
func windowSumAVX512(t *Window)

//go:noescape
func windowCopyAVX512(t *Window)

//go:noescape
func intLanesAVX2(t *IntWindow)

//go:noescape
func intSpreadAVX2(t *IntWindow)

//go:noescape
func intLanesAVX512(t *IntWindow)

//go:noescape
func intSpreadAVX512(t *IntWindow)

//go:noescape
func intLanesVNNI(t *IntWindow)

//go:noescape
func intSpreadVNNI(t *IntWindow)

//go:noescape
func every2AVX2(dst *float32, stepDst int, src *float32, stepSrc, n, lines int, in, out *int32)

var lagsAVX2 = [MostLags]func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int){
	lags1AVX2, lags2AVX2, lags3AVX2, lags4AVX2, lags5AVX2, lags6AVX2, lags7AVX2, lags8AVX2,
}

var lagsAVX512 = [MostLags]func(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int){
	lags1AVX512, lags2AVX512, lags3AVX512, lags4AVX512, lags5AVX512, lags6AVX512, lags7AVX512, lags8AVX512,
}

//go:noescape
func lags1AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags2AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags3AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags4AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags5AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags6AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags7AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags8AVX2(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags1AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags2AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags3AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags4AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags5AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags6AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags7AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)

//go:noescape
func lags8AVX512(sums, x *float32, places *int, count int, lags *int, lanes, step int, plain int)
