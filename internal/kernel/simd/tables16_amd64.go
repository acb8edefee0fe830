package simd

var tables16 = family[Tables16]{AVX512: {Set: AVX512, table: table16AVX512, exps: exps16AVX512, quotients: quotients16AVX512}}

//go:noescape
func table16AVX512(dst, src *int16, n int, table *int16)

//go:noescape
func exps16AVX512(dst, src *int16, n int, table *int16, top, left, mul, add, down int32) int32

//go:noescape
func quotients16AVX512(dst *int16, n int, recip, half, shift int32)
