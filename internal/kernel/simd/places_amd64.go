package simd

var placeLoops = family[Places]{AVX512: {Set: AVX512, floats: placesOfFloatsAVX512, bytes: placesOfBytesAVX512}}

//go:noescape
func placesOfFloatsAVX512(dst *int, src *float32, n, rows int)

//go:noescape
func placesOfBytesAVX512(dst *int, src *byte, n, rows int, flip uint32)
