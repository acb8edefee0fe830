package simd

var resizeLoops = family[Resizes]{AVX512: {
	Set: AVX512, acrossFloats: acrossFloatsAVX512, mixBytes: mixBytesAVX512, acrossBytes: acrossBytesAVX512, between: betweenFloatsAVX512,
}}

//go:noescape
func acrossFloatsAVX512(dst, top, bottom *float32, taps *Tap, count, channels int)

//go:noescape
func mixBytesAVX512(dst *int32, top, bottom *byte, n int, left, right int32)

//go:noescape
func acrossBytesAVX512(dst *byte, src *int32, taps *Tap, count, channels int)

//go:noescape
func betweenFloatsAVX512(dst *float32, stepDst int, src *float32, stepSrc, lines int, blocks *Between, count int)
