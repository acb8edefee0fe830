package simd

var poolKernels = family[Pools]{AVX2: {
	Set:          AVX2,
	addBytes:     [2]func(dst *int32, src *byte, step, lines, n int){addBytesU8AVX2, addBytesS8AVX2},
	largestBytes: [3]func(dst, src *byte, step, lines, n int){largestBytesU8AVX2, largestBytesS8AVX2, largestBytesS16AVX2},
	largestTaps:  [3]func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int){largestTapsU8AVX2, largestTapsS8AVX2, largestTapsS16AVX2},
	averageTaps:  averageTapsAVX2,
	addFloats:    addFloatsAVX2,
}, AVX512: {
	Set:          AVX512,
	addBytes:     [2]func(dst *int32, src *byte, step, lines, n int){addBytesU8AVX512, addBytesS8AVX512},
	largestBytes: [3]func(dst, src *byte, step, lines, n int){largestBytesU8AVX512, largestBytesS8AVX512, largestBytesS16AVX512},
	largestTaps:  [3]func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int){largestTapsU8AVX512, largestTapsS8AVX512, largestTapsS16AVX512},
	averageTaps:  averageTapsAVX512,
	addFloats:    addFloatsAVX512,
}}
