package simd

var rowLoops = family[Rows]{
	AVX2: {Set: AVX2, sum: rowSumAVX2, squares: rowSquaresAVX2, normalise: normaliseAVX2, addSquares: addSquaresAVX2, quarters: threeQuartersAVX2, roots: rootsAVX2, ordered: orderedSumsAVX2},
	AVX512: {
		Set: AVX512, sum: sumRowAVX512, squares: squareRowAVX512, normalise: normaliseAVX2, addSquares: addSquaresAVX2, quarters: threeQuartersAVX2, roots: rootsAVX2, ordered: orderedSumsAVX2,
		layers: layerRowsAVX512, squared: meanSquareRowsAVX512,
	},
}

//go:noescape
func rowSumAVX2(src *float32, n int) float64

//go:noescape
func rowSquaresAVX2(src *float32, n int, mean float64) float64

//go:noescape
func normaliseAVX2(dst, src *float32, n int, mean, inv float64)

//go:noescape
func addSquaresAVX2(dst, src *float32, n int)

//go:noescape
func threeQuartersAVX2(dst, x, sum *float32, n int, bias, scale float32)

//go:noescape
func rootsAVX2(dst, src *float32, n int)

//go:noescape
func orderedSumsAVX2(sums, src *float32, step, n int)

//go:noescape
func layerRowsAVX512(dst, src, gamma, beta *float32, rows, n int, per, eps float64)

//go:noescape
func meanSquareRowsAVX512(dst, src, gamma *float32, rows, n int, per, eps float64)
