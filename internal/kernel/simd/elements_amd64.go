package simd

var elements = family[Elements]{AVX2: &elementsAVX2, AVX512: elementsAVX512()}

// elementsAVX512 has loops of its own over codes.
func elementsAVX512() *Elements {
	e := elementsAVX2
	e.Set, e.every = AVX512, true
	e.quantise, e.turnBytes = quantiseAVX512, turnBytesAVX512
	e.rescaleRows = [2]rescaleLoop{rescaleRowsAVX512, rescaleRowsSmallAVX512}
	e.rescaleColumns = [2]rescaleLoop{rescaleColumnsAVX512, rescaleColumnsSmallAVX512}
	e.sum = [2]func(dst, a, b *byte, n int, q *Codes){sumU8AVX512, sumS8AVX512}
	e.product = [2]func(dst, a, b *byte, n int, q *Codes){productU8AVX512, productS8AVX512}
	e.dequantise = [2]func(dst *float32, src *byte, n int, zero int32, scale float32){dequantiseU8AVX512, dequantiseS8AVX512}
	e.dequantise16 = [2]func(dst *float32, src *uint16, n int, zero int32, scale float32){dequantiseU16AVX512, dequantiseS16AVX512}
	e.quantise16, e.quantiseAway16 = quantise16AVX512, quantiseAway16AVX512
	e.pairs = [rowOps][2]rowPair{
		RowAdd: {rowsAddAVX512, singlesAddAVX512}, RowSub: {rowsSubAVX512, singlesSubAVX512}, RowMul: {rowsMulAVX512, singlesMulAVX512}, RowDiv: {rowsDivAVX512, singlesDivAVX512},
		RowSquare: {rowsSquareAVX512, singlesSquareAVX512}, rowSubFrom: {nil, singlesSubFromAVX512}, rowDivFrom: {nil, singlesDivFromAVX512},
	}
	e.scaleRows = [2]scaleLoop{scaleRowsAVX512, scaleRowsTogetherAVX512}
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
	clamp: clampAVX2, magnitude: magnitudeAVX2, softsign: softsignAVX2, signum: signumAVX2, above: aboveAVX2, shrink: shrinkAVX2, toWhole: [3]func(dst, src *float32, n int){roundEvenAVX2, roundDownAVX2, roundUpAVX2}, scale: scaleAVX2, quantise: quantiseAVX2, quantiseAway: quantiseAwayAVX2,
	nibbles: nibblesAVX2, dot: dotAVX2, dots: dotsAVX2, dotNibbles: dotNibblesAVX2, rectifyHalf: rectifyHalfAVX2, roundAway: roundAwayAVX2, extent: extentAVX2,
	fromHalf: fromHalfAVX2, fromBrain: fromBrainAVX2, toHalf: toHalfAVX2, lost: lostAVX2, toFloats: toFloatsAVX2, rescale: rescaleAVX2,
	limitBytes: [2]func(dst, src *byte, n int, lo, hi int32){limitU8AVX2, limitS8AVX2},
	maxBytes:   [2]func(dst, a, b *byte, n int){maxU8AVX2, maxS8AVX2},
	turn:       turnAVX2,
	turnHalves: turnHalvesAVX2,
	sum:        [2]func(dst, a, b *byte, n int, q *Codes){sumU8AVX2, sumS8AVX2},
	product:    [2]func(dst, a, b *byte, n int, q *Codes){productU8AVX2, productS8AVX2},
}

// intsAVX2 are the loops over integers by operation and kind.
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

//go:noescape
func maxDoublesVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minDoublesVVAVX2(dst, a, b *float32, n int)

//go:noescape
func limitDoublesAVX2(dst, src *float64, n int, lo, hi float64)

//go:noescape
func roundEvenDoublesAVX2(dst, src *float64, n int)

//go:noescape
func roundDownDoublesAVX2(dst, src *float64, n int)

//go:noescape
func roundUpDoublesAVX2(dst, src *float64, n int)

//go:noescape
func signDoublesAVX2(dst, src *float64, n int)

//go:noescape
func andVVAVX2(dst, a, b *float32, n int)

//go:noescape
func orVVAVX2(dst, a, b *float32, n int)

//go:noescape
func xorVVAVX2(dst, a, b *float32, n int)

//go:noescape
func addBVVAVX2(dst, a, b *float32, n int)

//go:noescape
func addWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func addDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func addQVVAVX2(dst, a, b *float32, n int)

//go:noescape
func subBVVAVX2(dst, a, b *float32, n int)

//go:noescape
func subWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func subDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func subQVVAVX2(dst, a, b *float32, n int)

//go:noescape
func mulWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func mulDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxSBVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxSWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxSDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxUBVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxUWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxUDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minSBVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minSWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minSDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minUBVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minUWVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minUDVVAVX2(dst, a, b *float32, n int)

//go:noescape
func xorVSAVX2(dst, a *float32, b float32, n int)

//go:noescape
func quantiseAVX512(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func rescaleRowsAVX512(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)

//go:noescape
func rescaleRowsSmallAVX512(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)

//go:noescape
func rescaleColumnsAVX512(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)

//go:noescape
func rescaleColumnsSmallAVX512(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)

//go:noescape
func turnBytesAVX512(dst *byte, stepDst int, src *byte, stepSrc, n int)

//go:noescape
func sumU8AVX512(dst, a, b *byte, n int, q *Codes)

//go:noescape
func sumS8AVX512(dst, a, b *byte, n int, q *Codes)

//go:noescape
func productU8AVX512(dst, a, b *byte, n int, q *Codes)

//go:noescape
func productS8AVX512(dst, a, b *byte, n int, q *Codes)

//go:noescape
func addVVAVX2(dst, a, b *float32, n int)

//go:noescape
func addVSAVX2(dst, a *float32, b float32, n int)

//go:noescape
func subVVAVX2(dst, a, b *float32, n int)

//go:noescape
func subSVAVX2(dst *float32, a float32, b *float32, n int)

//go:noescape
func mulVVAVX2(dst, a, b *float32, n int)

//go:noescape
func mulVSAVX2(dst, a *float32, b float32, n int)

//go:noescape
func divVVAVX2(dst, a, b *float32, n int)

//go:noescape
func divVSAVX2(dst, a *float32, b float32, n int)

//go:noescape
func divSVAVX2(dst *float32, a float32, b *float32, n int)

//go:noescape
func clampAVX2(dst, src *float32, n int, lo, hi, plus float32)

//go:noescape
func scaleAVX2(dst, src *float32, n int, s, t float32)

//go:noescape
func quantiseAVX2(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func quantiseAwayAVX2(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func fromHalfAVX2(dst *float32, src *uint16, n int)

//go:noescape
func fromBrainAVX2(dst *float32, src *uint16, n int)

//go:noescape
func toHalfAVX2(dst *uint16, src *float32, n int)

//go:noescape
func lostAVX2(src *float32, n int) (half, brain uint32)

//go:noescape
func toFloatsAVX2(dst *float32, src *int32, n int)

//go:noescape
func roundAwayAVX2(dst, src *float32, n int, mul, lo, hi float32)

//go:noescape
func extentAVX2(src *float32, n int) (least, most float32)

//go:noescape
func nibblesAVX2(dst *float32, src *byte, n int, zero, scale float32)

//go:noescape
func dotAVX2(a, b *float32, n int) float32

//go:noescape
func dotsAVX2(sums, a, b *float32, offs *int, n int)

//go:noescape
func rectifyHalfAVX2(dst, src *uint16, n int, inf uint16)

//go:noescape
func rescaleAVX2(dst *byte, src *int32, n int, scale, lo, hi float32, zero, bias int32)

//go:noescape
func limitU8AVX2(dst, src *byte, n int, lo, hi int32)

//go:noescape
func limitS8AVX2(dst, src *byte, n int, lo, hi int32)

//go:noescape
func sumU8AVX2(dst, a, b *byte, n int, q *Codes)

//go:noescape
func sumS8AVX2(dst, a, b *byte, n int, q *Codes)

//go:noescape
func productU8AVX2(dst, a, b *byte, n int, q *Codes)

//go:noescape
func productS8AVX2(dst, a, b *byte, n int, q *Codes)

//go:noescape
func maxU8AVX2(dst, a, b *byte, n int)

//go:noescape
func maxS8AVX2(dst, a, b *byte, n int)

//go:noescape
func turnAVX2(dst *uint32, stepDst int, src *uint32, stepSrc, n int)

//go:noescape
func dotNibblesAVX2(x *float32, w *byte, groups, blocks int, scales, zeros, sums *float32) float32

//go:noescape
func dequantiseU16AVX512(dst *float32, src *uint16, n int, zero int32, scale float32)

//go:noescape
func dequantiseS16AVX512(dst *float32, src *uint16, n int, zero int32, scale float32)

//go:noescape
func quantiseAway16AVX512(dst *uint16, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func quantise16AVX512(dst *uint16, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func dequantiseU8AVX512(dst *float32, src *byte, n int, zero int32, scale float32)

//go:noescape
func dequantiseS8AVX512(dst *float32, src *byte, n int, zero int32, scale float32)

//go:noescape
func scaleRowsAVX512(dst *float32, stepDst int, sums *int32, stepSums, rows, n int, weights, bias, scales *float32, scale float32)

//go:noescape
func scaleRowsTogetherAVX512(dst *float32, stepDst int, sums *int32, stepSums, rows, n int, weights, bias, scales *float32, scale float32)

//go:noescape
func preluVVAVX2(dst, a, b *float32, n int)

//go:noescape
func maxVVAVX2(dst, a, b *float32, n int)

//go:noescape
func minVVAVX2(dst, a, b *float32, n int)

//go:noescape
func preluVSAVX2(dst, a *float32, b float32, n int)

//go:noescape
func addScaledAVX512(dst, w, scales *float32, n int, x *float32, places *int32, count, step int, scale float32)

//go:noescape
func nonzerosAVX512(values *float32, places *int32, x *float32, n int) int

//go:noescape
func curve16AVX512(dst, src *int16, n int, table *uint32, mul, round, shift, bits, mask, above, below, out int32)

//go:noescape
func magnitudeAVX2(dst, src *float32, n int)

//go:noescape
func quantiseRowAVX512(dst *byte, src *float32, n int, mul, lo, hi float32, zero int32)

//go:noescape
func quantiseEvenRowsAVX512(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)

//go:noescape
func quantiseRowsAVX512(dst *byte, src *float32, rows, n int, scales *float32, zeros *int32, plus int32) (done int)

//go:noescape
func lessTimesAVX512(dst, b *int32, n int, by int32)

//go:noescape
func roundEvenAVX2(dst, src *float32, n int)

//go:noescape
func roundDownAVX2(dst, src *float32, n int)

//go:noescape
func roundUpAVX2(dst, src *float32, n int)

//go:noescape
func rowsAddAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesAddAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func rowsSubAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesSubAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func rowsMulAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesMulAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func rowsSquareAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesSquareAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func rowsDivAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesDivAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesDivFromAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func singlesSubFromAVX512(dst, a, b *float32, rows, n, stepA, stepB int)

//go:noescape
func softsignAVX2(dst, src *float32, n int)

//go:noescape
func signumAVX2(dst, src *float32, n int)

//go:noescape
func aboveAVX2(dst, src *float32, n int, limit float32)

//go:noescape
func shrinkAVX2(dst, src *float32, n int, limit, bias float32)

//go:noescape
func turnHalvesAVX2(dst *uint16, stepDst int, src *uint16, stepSrc, n int)
