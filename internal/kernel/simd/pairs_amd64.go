package simd

var pairs = family[Pairs]{AVX512: {
	Set: AVX512,
	loops: [pairKinds][2]pairLoop[byte]{
		{pairsumU8AVX512, pairsumS8AVX512},
		{pairdifferenceU8AVX512, pairdifferenceS8AVX512},
		{pairreverseU8AVX512, pairreverseS8AVX512},
		{pairproductU8AVX512, pairproductS8AVX512},
		{pairpreluU8AVX512, pairpreluS8AVX512},
		{pairsquareU8AVX512, pairsquareS8AVX512},
	},
	words: [pairKinds]pairLoop[int16]{
		PairSum: pairsumS16AVX512, PairDifference: pairdifferenceS16AVX512, PairReverse: pairreverseS16AVX512, PairProduct: pairproductS16AVX512, PairSquare: pairsquareS16AVX512, PairLeaky: pairleakyS16AVX512,
	},
}}

//go:noescape
func pairsumU8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairsumS8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairdifferenceU8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairdifferenceS8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairreverseU8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairreverseS8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairproductU8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairproductS8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairpreluU8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairpreluS8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairsquareU8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairsquareS8AVX512(dst, a, b *byte, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairsumS16AVX512(dst, a, b *int16, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairdifferenceS16AVX512(dst, a, b *int16, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairreverseS16AVX512(dst, a, b *int16, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairproductS16AVX512(dst, a, b *int16, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairsquareS16AVX512(dst, a, b *int16, rows, n, stepA, stepB, single int, q *Pair)

//go:noescape
func pairleakyS16AVX512(dst, a, b *int16, rows, n, stepA, stepB, single int, q *Pair)
