package simd

var repeatKernels = family[repeatKernelSet]{
	AVX2: {floatLanes: 8, wordLanes: 8, floats: repeatFloatsAVX2, words: repeatWordsAVX2, groups: &[MaxGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32){
		groupLanes1AVX2, groupLanes2AVX2, groupLanes3AVX2, groupLanes4AVX2, groupLanes5AVX2, groupLanes6AVX2, groupLanes7AVX2, groupLanes8AVX2,
	}},
	AVX512: {floatLanes: 16, wordLanes: 32, floats: repeatFloatsAVX512, words: repeatWordsAVX512, groups: &[MaxGroup]func(dst, src *float32, step int, places *int32, positions int, mask uint32){
		groupLanes1AVX512, groupLanes2AVX512, groupLanes3AVX512, groupLanes4AVX512, groupLanes5AVX512, groupLanes6AVX512, groupLanes7AVX512, groupLanes8AVX512,
	}},
}
