package simd

var repeatKernels = family[repeatKernelSet]{AVX512: {floats: repeatFloatsAVX512, words: repeatWordsAVX512, groups: &groupLanesAVX512}}

var groupLanesAVX512 = [MaxGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32){
	groupLanes1AVX512, groupLanes2AVX512, groupLanes3AVX512, groupLanes4AVX512, groupLanes5AVX512, groupLanes6AVX512, groupLanes7AVX512, groupLanes8AVX512,
}
