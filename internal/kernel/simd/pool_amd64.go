package simd

var poolKernels = family[Pools]{AVX512: {
	Set:          AVX512,
	addBytes:     [2]func(dst *int32, src *byte, step, lines, n int){addBytesU8AVX512, addBytesS8AVX512},
	largestBytes: [3]func(dst, src *byte, step, lines, n int){largestBytesU8AVX512, largestBytesS8AVX512, largestBytesS16AVX512},
	largestTaps:  [3]func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int){largestTapsU8AVX512, largestTapsS8AVX512, largestTapsS16AVX512},
	averageTaps:  averageTapsAVX512,
	addFloats:    addFloatsAVX512,
}}
