package simd

var spreadLoops = family[Spreads]{AVX512: {Set: AVX512, lines: spreadLinesAVX512, ones: spreadOnesAVX512}}
