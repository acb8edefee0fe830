package simd

var foldKernels = family[Folds]{
	AVX2: {
		Set: AVX2, lineMultiple: 4, lines: [foldKinds]func(dst *float64, src *float32, step, lines, n int){sumLinesAVX2, squareLinesAVX2, sizeLinesAVX2, productLinesAVX2},
		sum: rowSumAVX2, squares: rowSquaresAVX2, sizes: sizeRowAVX2, product: productRowAVX2, rowMultiple: 8,
	},
	AVX512: {
		Set: AVX512, lineMultiple: 1, lines: [foldKinds]func(dst *float64, src *float32, step, lines, n int){sumLinesAVX512, squareLinesAVX512, sizeLinesAVX512, productLinesAVX512},
		sum: sumRowAVX512, squares: squareRowAVX512, sizes: sizeRowAVX512, product: productRowAVX512, rowMultiple: 1,
		doubleLines: [foldKinds]func(dst, src *float64, step, lines, n int){sumLinesDoublesAVX512, squareLinesDoublesAVX512, sizeLinesDoublesAVX512, productLinesDoublesAVX512},
		doubleRows:  [foldKinds]func(src *float64, n int) float64{sumRowDoublesAVX512, squareRowDoublesAVX512, sizeRowDoublesAVX512, productRowDoublesAVX512},
		addDoubles:  addDoublesAVX512, addWords: addWordsAVX512, addLongs: addLongsAVX512,
		dotDoubles: dotDoublesAVX512, dotWords: dotWordsAVX512, dotLongs: dotLongsAVX512,
	},
}
