package simd

var selectKernels = family[Select]{AVX512: {Set: AVX512, kernels: [9]func(dst, x, y, cond *byte, n, stepX, stepY int){1: pick1AVX512, 2: pick2AVX512, 4: pick4AVX512, 8: pick8AVX512}}}
