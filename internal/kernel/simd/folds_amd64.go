package simd

var foldLoops = family[Folds]{
	AVX2: {
		Set: AVX2, each: 4, lines: [folds]func(dst *float64, src *float32, step, lines, n int){sumLinesAVX2, squareLinesAVX2, sizeLinesAVX2, productLinesAVX2},
		sum: rowSumAVX2, squares: rowSquaresAVX2, sizes: sizeRowAVX2, product: productRowAVX2, row: 8,
	},
	AVX512: {
		Set: AVX512, each: 1, lines: [folds]func(dst *float64, src *float32, step, lines, n int){sumLinesAVX512, squareLinesAVX512, sizeLinesAVX512, productLinesAVX512},
		sum: sumRowAVX512, squares: squareRowAVX512, sizes: sizeRowAVX512, product: productRowAVX512, row: 1, addProducts: addProductsAVX512,
	},
}

//go:noescape
func addProductsAVX512(dst, x *float64, stepX int, lines *float64, step, k, n int)

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
