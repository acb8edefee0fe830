package simd

var fourBitLoops = family[FourBits]{
	AVX512: {Set: AVX512, row: fourBitsAVX512},
}

//go:noescape
func fourBitsAVX512(y, x *float32, w *uint32, scales *float32, groups, blocks int, values *float32)
