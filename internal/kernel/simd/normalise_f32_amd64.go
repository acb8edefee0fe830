package simd

var rowKernels = family[Rows]{
	AVX2: {Set: AVX2, sum: rowSumAVX2, squares: rowSquaresAVX2, normalise: normaliseAVX2, addSquares: addSquaresAVX2, quarters: threeQuartersAVX2, roots: rootsAVX2, ordered: orderedSumsAVX2},
	AVX512: {
		Set: AVX512, sum: sumRowAVX512, squares: squareRowAVX512, normalise: normaliseAVX2, addSquares: addSquaresAVX2, quarters: threeQuartersAVX2, roots: rootsAVX2, ordered: orderedSumsAVX2,
		layers: layerRowsAVX512, squared: meanSquareRowsAVX512,
	},
}
