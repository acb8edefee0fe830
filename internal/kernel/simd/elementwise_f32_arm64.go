package simd

var elementKernels = family[Elements]{NEON: &elementsNEON}

var elementsNEON = Elements{
	Set:   NEON,
	addVV: addVVNEON, addVS: addVSNEON, subVV: subVVNEON, subSV: subSVNEON,
	mulVV: mulVVNEON, mulVS: mulVSNEON, divVV: divVVNEON, divVS: divVSNEON, divSV: divSVNEON,
	clamp: clampNEON, scale: scaleNEON, quantise: quantiseNEON, quantiseAway: quantiseAwayNEON,
	nibbles: nibblesNEON, dot: dotNEON, dotNibbles: dotNibblesNEON, rectifyHalf: rectifyHalfNEON, roundAway: roundAwayNEON, extent: extentNEON,
	fromHalf: fromHalfNEON, toHalf: toHalfNEON, toFloats: toFloatsNEON, rescale: rescaleNEON,
	limitBytes: [2]func(dst, src *byte, n int, lo, hi int32){limitU8NEON, limitS8NEON},
	maxBytes:   [2]func(dst, a, b *byte, n int){maxU8NEON, maxS8NEON},
	transpose:  turnNEON,
	sum:        [2]func(dst, a, b *byte, n int, q *Codes){sumU8NEON, sumS8NEON},
	product:    [2]func(dst, a, b *byte, n int, q *Codes){productU8NEON, productS8NEON},
}
