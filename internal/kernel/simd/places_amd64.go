package simd

var placeLoops = family[Places]{AVX512: {Set: AVX512, floats: placesOfFloatsAVX512, bytes: placesOfBytesAVX512, columns: [2][2]func(dst *int64, src *float32, step, lines, n int){{placesOfMostAVX512, placesOfLastMostAVX512}, {placesOfLeastAVX512, placesOfLastLeastAVX512}}}}

//go:noescape
func placesOfFloatsAVX512(dst *int, src *float32, n, rows int)

//go:noescape
func placesOfBytesAVX512(dst *int, src *byte, n, rows int, flip uint32)

//go:noescape
func placesOfMostAVX512(dst *int64, src *float32, step, lines, n int)

//go:noescape
func placesOfLastMostAVX512(dst *int64, src *float32, step, lines, n int)

//go:noescape
func placesOfLeastAVX512(dst *int64, src *float32, step, lines, n int)

//go:noescape
func placesOfLastLeastAVX512(dst *int64, src *float32, step, lines, n int)
