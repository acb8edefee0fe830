package simd

var elements = family[Elements]{NEON: &elementsNEON}

var elementsNEON = Elements{
	Set:   NEON,
	addVV: addVVNEON, addVS: addVSNEON, subVV: subVVNEON, subSV: subSVNEON,
	mulVV: mulVVNEON, mulVS: mulVSNEON, divVV: divVVNEON, divVS: divVSNEON, divSV: divSVNEON,
	clamp: clampNEON, scale: scaleNEON, quantise: quantiseNEON, quantiseAway: quantiseAwayNEON,
	nibbles: nibblesNEON, dot: dotNEON, dotNibbles: dotNibblesNEON, rectifyHalf: rectifyHalfNEON, roundAway: roundAwayNEON, extent: extentNEON,
	fromHalf: fromHalfNEON, toHalf: toHalfNEON, toFloats: toFloatsNEON, rescale: rescaleNEON,
	limitBytes: [2]func(dst, src *byte, n int, lo, hi int32){limitU8NEON, limitS8NEON},
	maxBytes:   [2]func(dst, a, b *byte, n int){maxU8NEON, maxS8NEON},
	turn:       turnNEON,
	sum:        [2]func(dst, a, b *byte, n int, q *Codes){sumU8NEON, sumS8NEON},
	product:    [2]func(dst, a, b *byte, n int, q *Codes){productU8NEON, productS8NEON},
}

//go:noescape
func addVVNEON(dst, a, b *float32, n int)

//go:noescape
func addVSNEON(dst, a *float32, b float32, n int)

//go:noescape
func subVVNEON(dst, a, b *float32, n int)

//go:noescape
func subSVNEON(dst *float32, a float32, b *float32, n int)

//go:noescape
func mulVVNEON(dst, a, b *float32, n int)

//go:noescape
func mulVSNEON(dst, a *float32, b float32, n int)

//go:noescape
func divVVNEON(dst, a, b *float32, n int)

//go:noescape
func divVSNEON(dst, a *float32, b float32, n int)

//go:noescape
func divSVNEON(dst *float32, a float32, b *float32, n int)

//go:noescape
func clampNEON(dst, src *float32, n int, lo, hi, plus float32)

//go:noescape
func scaleNEON(dst, src *float32, n int, s, t float32)

//go:noescape
func quantiseNEON(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func quantiseAwayNEON(dst *byte, src *float32, n int, scale, lo, hi float32, zero int32)

//go:noescape
func fromHalfNEON(dst *float32, src *uint16, n int)

//go:noescape
func toHalfNEON(dst *uint16, src *float32, n int)

//go:noescape
func toFloatsNEON(dst *float32, src *int32, n int)

//go:noescape
func roundAwayNEON(dst, src *float32, n int, mul, lo, hi float32)

//go:noescape
func extentNEON(src *float32, n int) (least, most float32)

//go:noescape
func nibblesNEON(dst *float32, src *byte, n int, zero, scale float32)

//go:noescape
func dotNEON(a, b *float32, n int) float32

//go:noescape
func rectifyHalfNEON(dst, src *uint16, n int, inf uint16)

//go:noescape
func rescaleNEON(dst *byte, src *int32, n int, scale, lo, hi float32, zero, bias int32)

//go:noescape
func limitU8NEON(dst, src *byte, n int, lo, hi int32)

//go:noescape
func limitS8NEON(dst, src *byte, n int, lo, hi int32)

//go:noescape
func sumU8NEON(dst, a, b *byte, n int, q *Codes)

//go:noescape
func sumS8NEON(dst, a, b *byte, n int, q *Codes)

//go:noescape
func productU8NEON(dst, a, b *byte, n int, q *Codes)

//go:noescape
func productS8NEON(dst, a, b *byte, n int, q *Codes)

//go:noescape
func maxU8NEON(dst, a, b *byte, n int)

//go:noescape
func maxS8NEON(dst, a, b *byte, n int)

//go:noescape
func turnNEON(dst *uint32, stepDst int, src *uint32, stepSrc, n int)

//go:noescape
func dotNibblesNEON(x *float32, w *byte, groups, blocks int, scales, zeros, sums *float32) float32
