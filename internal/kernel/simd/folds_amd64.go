package simd

var foldLoops = family[Folds]{
	AVX2: {
		Set: AVX2, each: 4, lines: [folds]func(dst *float64, src *float32, step, lines, n int){sumLinesAVX2, squareLinesAVX2, sizeLinesAVX2, productLinesAVX2},
		sum: rowSumAVX2, squares: rowSquaresAVX2, sizes: sizeRowAVX2, product: productRowAVX2, row: 8,
	},
	AVX512: {
		Set: AVX512, each: 1, lines: [folds]func(dst *float64, src *float32, step, lines, n int){sumLinesAVX512, squareLinesAVX512, sizeLinesAVX512, productLinesAVX512},
		sum: sumRowAVX512, squares: squareRowAVX512, sizes: sizeRowAVX512, product: productRowAVX512, row: 1,
		doubleLines: [folds]func(dst, src *float64, step, lines, n int){sumLinesDoublesAVX512, squareLinesDoublesAVX512, sizeLinesDoublesAVX512, productLinesDoublesAVX512},
		doubleRows:  [folds]func(src *float64, n int) float64{sumRowDoublesAVX512, squareRowDoublesAVX512, sizeRowDoublesAVX512, productRowDoublesAVX512},
		addDoubles:  addDoublesAVX512, addWords: addWordsAVX512, addLongs: addLongsAVX512,
		dotDoubles: dotDoublesAVX512, dotWords: dotWordsAVX512, dotLongs: dotLongsAVX512,
	},
}

//go:noescape
func addDoublesAVX512(dst, x *float64, stepX int, lines *float64, step, k, n int)

//go:noescape
func addWordsAVX512(dst, x *int32, stepX int, lines *int32, step, k, n int)

//go:noescape
func addLongsAVX512(dst, x *int64, stepX int, lines *int64, step, k, n int)

//go:noescape
func dotDoublesAVX512(a, b *float64, n int) float64

//go:noescape
func dotWordsAVX512(a, b *int32, n int) int32

//go:noescape
func dotLongsAVX512(a, b *int64, n int) int64

//go:noescape
func sumLinesDoublesAVX512(dst, src *float64, step, lines, n int)

//go:noescape
func sumRowDoublesAVX512(src *float64, n int) float64

//go:noescape
func squareLinesDoublesAVX512(dst, src *float64, step, lines, n int)

//go:noescape
func squareRowDoublesAVX512(src *float64, n int) float64

//go:noescape
func sizeLinesDoublesAVX512(dst, src *float64, step, lines, n int)

//go:noescape
func sizeRowDoublesAVX512(src *float64, n int) float64

//go:noescape
func productLinesDoublesAVX512(dst, src *float64, step, lines, n int)

//go:noescape
func productRowDoublesAVX512(src *float64, n int) float64

//go:noescape
func sumLinesAVX2(dst *float64, src *float32, step, lines, n int)

//go:noescape
func squareLinesAVX2(dst *float64, src *float32, step, lines, n int)

//go:noescape
func sizeLinesAVX2(dst *float64, src *float32, step, lines, n int)

//go:noescape
func sizeRowAVX2(src *float32, n int) float64

//go:noescape
func productLinesAVX2(dst *float64, src *float32, step, lines, n int)

//go:noescape
func productRowAVX2(src *float32, n int) float64

//go:noescape
func sumLinesAVX512(dst *float64, src *float32, step, lines, n int)

//go:noescape
func sumRowAVX512(src *float32, n int) float64

//go:noescape
func squareLinesAVX512(dst *float64, src *float32, step, lines, n int)

//go:noescape
func squareRowAVX512(src *float32, n int, mean float64) float64

//go:noescape
func sizeLinesAVX512(dst *float64, src *float32, step, lines, n int)

//go:noescape
func sizeRowAVX512(src *float32, n int) float64

//go:noescape
func productLinesAVX512(dst *float64, src *float32, step, lines, n int)

//go:noescape
func productRowAVX512(src *float32, n int) float64
