package simd

var repeats = family[repeatLoops]{AVX512: {floats: repeatFloatsAVX512, words: repeatWordsAVX512}}

//go:noescape
func repeatFloatsAVX512(dst, src *float32, places *int32, registers, times int)

//go:noescape
func repeatWordsAVX512(dst, src *int16, places *int16, registers, times int)
