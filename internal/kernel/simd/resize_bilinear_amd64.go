package simd

var resizeKernels = family[Resizes]{AVX2: {
	Set: AVX2, acrossFloats: acrossFloatsAVX2, mixBytes: mixBytesAVX2, acrossBytes: acrossBytesAVX2, block: 8,
}, AVX512: {
	Set: AVX512, acrossFloats: acrossFloatsAVX512, mixBytes: mixBytesAVX512, acrossBytes: acrossBytesAVX512, between: betweenFloatsAVX512,
}}
