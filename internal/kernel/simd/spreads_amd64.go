package simd

var spreadLoops = family[Spreads]{AVX512: {Set: AVX512, lines: spreadLinesAVX512, ones: spreadOnesAVX512}}

//go:noescape
func spreadLinesAVX512(dst, src *float32, rows, n, step int)

//go:noescape
func spreadOnesAVX512(dst, src *float32, rows, n, step int)
