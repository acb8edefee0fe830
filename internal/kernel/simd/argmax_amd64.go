package simd

var argMaxKernels = family[ArgMax]{AVX512: {Set: AVX512, floats: placesOfFloatsAVX512, bytes: placesOfBytesAVX512, columns: [2][2]func(dst *int64, src *float32, step, lines, n int){{placesOfMostAVX512, placesOfLastMostAVX512}, {placesOfLeastAVX512, placesOfLastLeastAVX512}}}}
