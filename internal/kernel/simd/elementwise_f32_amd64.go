package simd

var elementKernels = family[Elements]{AVX2: &elementsAVX2, AVX512: elementsAVX512()}

// elementsAVX512 returns the AVX2 kernels with the AVX-512 kernels in place of some of them.
func elementsAVX512() *Elements {
	e := elementsAVX2
	e.Set, e.anyLength = AVX512, true
	e.quantise, e.transpose8, e.transpose8Tail = quantiseAVX512, turnBytesAVX512, true
	e.rescaleRows = [2]rescaleKernel{rescaleRowsAVX512, rescaleRowsSmallAVX512}
	e.rescaleColumns = [2]rescaleKernel{rescaleColumnsAVX512, rescaleColumnsSmallAVX512}
	e.sum = [2]func(dst, a, b *byte, n int, q *Codes){sumU8AVX512, sumS8AVX512}
	e.product = [2]func(dst, a, b *byte, n int, q *Codes){productU8AVX512, productS8AVX512}
	e.dequantise = [2]func(dst *float32, src *byte, n int, zero int32, scale float32){dequantiseU8AVX512, dequantiseS8AVX512}
	e.dequantise16 = [2]func(dst *float32, src *uint16, n int, zero int32, scale float32){dequantiseU16AVX512, dequantiseS16AVX512}
	e.quantise16, e.quantiseAway16 = quantise16AVX512, quantiseAway16AVX512
	e.pairs = [rowOps][2]rowPairKernel{
		RowAdd: {rowsAddAVX512, singlesAddAVX512}, RowSub: {rowsSubAVX512, singlesSubAVX512}, RowMul: {rowsMulAVX512, singlesMulAVX512}, RowDiv: {rowsDivAVX512, singlesDivAVX512},
		RowSquare: {rowsSquareAVX512, singlesSquareAVX512}, rowSubFrom: {nil, singlesSubFromAVX512}, rowDivFrom: {nil, singlesDivFromAVX512},
	}
	e.scaleRows = [2]scaleKernel{scaleRowsAVX512, scaleRowsTogetherAVX512}
	e.addScaled, e.nonzeros, e.curve16 = addScaledAVX512, nonzerosAVX512, curve16AVX512
	e.quantiseRow, e.quantiseRows, e.quantiseEvenRows, e.lessTimes = quantiseRowAVX512, quantiseRowsAVX512, quantiseEvenRowsAVX512, lessTimesAVX512
	return &e
}

var elementsAVX2 = Elements{
	Set:   AVX2,
	addVV: addVVAVX2, addVS: addVSAVX2, subVV: subVVAVX2, subSV: subSVAVX2,
	mulVV: mulVVAVX2, mulVS: mulVSAVX2, divVV: divVVAVX2, divVS: divVSAVX2, divSV: divSVAVX2,
	preluVV: preluVVAVX2, preluVS: preluVSAVX2, maxVV: maxVVAVX2, minVV: minVVAVX2,
	ints: intsAVX2, xorAll: xorVSAVX2,
	maxDD: maxDoublesVVAVX2, minDD: minDoublesVVAVX2, limitDoubles: limitDoublesAVX2, wholeDoubles: [4]func(dst, src *float64, n int){roundEvenDoublesAVX2, roundDownDoublesAVX2, roundUpDoublesAVX2, signDoublesAVX2},
	clamp: clampAVX2, addClamp: addClampAVX2, magnitude: magnitudeAVX2, softsign: softsignAVX2, signum: signumAVX2, above: aboveAVX2, shrink: shrinkAVX2, rounding: [3]func(dst, src *float32, n int){roundEvenAVX2, roundDownAVX2, roundUpAVX2}, scale: scaleAVX2, quantise: quantiseAVX2, quantiseAway: quantiseAwayAVX2,
	nibbles: nibblesAVX2, dot: dotAVX2, dots: dotsAVX2, dotNibbles: dotNibblesAVX2, rectifyHalf: rectifyHalfAVX2, roundAway: roundAwayAVX2, extent: extentAVX2,
	fromHalf: fromHalfAVX2, fromBrain: fromBrainAVX2, toHalf: toHalfAVX2, lostBits: lostAVX2, toFloats: toFloatsAVX2, rescale: rescaleAVX2,
	limitBytes: [2]func(dst, src *byte, n int, lo, hi int32){limitU8AVX2, limitS8AVX2},
	maxBytes:   [2]func(dst, a, b *byte, n int){maxU8AVX2, maxS8AVX2},
	pairs: [rowOps][2]rowPairKernel{
		RowAdd: {rowsAddAVX2, singlesAddAVX2}, RowSub: {rowsSubAVX2, singlesSubAVX2}, RowMul: {rowsMulAVX2, singlesMulAVX2}, RowDiv: {rowsDivAVX2, singlesDivAVX2},
		RowSquare: {rowsSquareAVX2, singlesSquareAVX2}, rowSubFrom: {nil, singlesSubFromAVX2}, rowDivFrom: {nil, singlesDivFromAVX2},
	},
	transpose:   turnAVX2,
	transpose16: turnHalvesAVX2,
	transpose8:  turnBytesAVX2,
	rescaleRows: [2]rescaleKernel{rescaleRowsAVX2, rescaleRowsSmallAVX2}, rescaleColumns: [2]rescaleKernel{rescaleColumnsAVX2, rescaleColumnsSmallAVX2},
	sum:     [2]func(dst, a, b *byte, n int, q *Codes){sumU8AVX2, sumS8AVX2},
	product: [2]func(dst, a, b *byte, n int, q *Codes){productU8AVX2, productS8AVX2},

	dequantise:   [2]func(dst *float32, src *byte, n int, zero int32, scale float32){dequantiseU8AVX2, dequantiseS8AVX2},
	dequantise16: [2]func(dst *float32, src *uint16, n int, zero int32, scale float32){dequantiseU16AVX2, dequantiseS16AVX2},
}

// intsAVX2 holds the integer kernels by operation and type.
var intsAVX2 = [intOps][intKinds]func(dst, a, b *float32, n int){
	BitAnd: {andVVAVX2, andVVAVX2, andVVAVX2, andVVAVX2, andVVAVX2, andVVAVX2, andVVAVX2, andVVAVX2},
	BitOr:  {orVVAVX2, orVVAVX2, orVVAVX2, orVVAVX2, orVVAVX2, orVVAVX2, orVVAVX2, orVVAVX2},
	BitXor: {xorVVAVX2, xorVVAVX2, xorVVAVX2, xorVVAVX2, xorVVAVX2, xorVVAVX2, xorVVAVX2, xorVVAVX2},
	IntAdd: {addBVVAVX2, addBVVAVX2, addWVVAVX2, addWVVAVX2, addDVVAVX2, addDVVAVX2, addQVVAVX2, addQVVAVX2},
	IntSub: {subBVVAVX2, subBVVAVX2, subWVVAVX2, subWVVAVX2, subDVVAVX2, subDVVAVX2, subQVVAVX2, subQVVAVX2},
	IntMul: {nil, nil, mulWVVAVX2, mulWVVAVX2, mulDVVAVX2, mulDVVAVX2, nil, nil},
	IntMax: {maxSBVVAVX2, maxUBVVAVX2, maxSWVVAVX2, maxUWVVAVX2, maxSDVVAVX2, maxUDVVAVX2, nil, nil},
	IntMin: {minSBVVAVX2, minUBVVAVX2, minSWVVAVX2, minUWVVAVX2, minSDVVAVX2, minUDVVAVX2, nil, nil},
}
