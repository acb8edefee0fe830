package simd

var shortRowKernels = family[ShortRows]{AVX512: {Set: AVX512, lines: spreadLinesAVX512, ones: spreadOnesAVX512}}

var blockKernels = family[blockCopies]{AVX2: {Set: AVX2, blocks: gatherBlocksAVX2}}
