package simd

var resizeKernels = family[Resizes]{AVX512: {
	Set: AVX512, acrossFloats: acrossFloatsAVX512, mixBytes: mixBytesAVX512, acrossBytes: acrossBytesAVX512, between: betweenFloatsAVX512,
}}
