package simd

var tableKernels16 = family[Tables16]{AVX512: {Set: AVX512, table: table16AVX512, exps: exps16AVX512, quotients: quotients16AVX512}}
