package simd

var spreadKernels = family[Spreads]{AVX512: {Set: AVX512, lines: spreadLinesAVX512, ones: spreadOnesAVX512}}
