package simd

var repeats = family[repeatLoops]{AVX512: {floats: repeatFloatsAVX512, words: repeatWordsAVX512, groups: &groupLanesAVX512}}

//go:noescape
func repeatFloatsAVX512(dst, src *float32, places *int32, registers, times int)

//go:noescape
func repeatWordsAVX512(dst, src *int16, places *int16, registers, times int)

var groupLanesAVX512 = [MostGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32){
	groupLanes1AVX512, groupLanes2AVX512, groupLanes3AVX512, groupLanes4AVX512, groupLanes5AVX512, groupLanes6AVX512, groupLanes7AVX512, groupLanes8AVX512,
}

//go:noescape
func groupLanes1AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes2AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes3AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes4AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes5AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes6AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes7AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)

//go:noescape
func groupLanes8AVX512(dst, src *float32, step int, places *int32, positions int, mask uint32)
