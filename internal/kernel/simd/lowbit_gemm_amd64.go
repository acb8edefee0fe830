package simd

var lowBitKernels = family[LowBit]{AVX2: &lowBitAVX2, AVX512: &lowBitAVX512, VNNI: lowBitVNNI()}

// lowBitVNNI returns the AVX-512 kernels with the VNNI kernels for rows of digits.
func lowBitVNNI() *LowBit {
	f := lowBitAVX512
	f.Set = VNNI
	f.arrange, f.steps = bitDigitsVNNI, 16
	f.digits = [3][2][]func(t *BitTile){
		{
			{bitDigits2x1Rows1VNNI, bitDigits2x1Rows2VNNI, bitDigits2x1Rows3VNNI, bitDigits2x1Rows4VNNI, bitDigits2x1Rows5VNNI, bitDigits2x1Rows6VNNI},
			{bitDigits2x3Rows1VNNI, bitDigits2x3Rows2VNNI, bitDigits2x3Rows3VNNI},
		},
		{
			{bitDigits4x1Rows1VNNI, bitDigits4x1Rows2VNNI, bitDigits4x1Rows3VNNI, bitDigits4x1Rows4VNNI, bitDigits4x1Rows5VNNI, bitDigits4x1Rows6VNNI},
			{bitDigits4x3Rows1VNNI, bitDigits4x3Rows2VNNI, bitDigits4x3Rows3VNNI},
		},
		{
			{bitDigits8x1Rows1VNNI, bitDigits8x1Rows2VNNI, bitDigits8x1Rows3VNNI, bitDigits8x1Rows4VNNI, bitDigits8x1Rows5VNNI, bitDigits8x1Rows6VNNI},
			{bitDigits8x3Rows1VNNI, bitDigits8x3Rows2VNNI, bitDigits8x3Rows3VNNI},
		},
	}
	return &f
}

var (
	lowBitAVX2 = LowBit{
		Set: AVX2, Cols: 32,
		row:   [3]func(t *BitTile){bitRow2AVX2, bitRow4AVX2, bitRow8AVX2},
		widen: [3]func(t *BitTile){bitWiden2AVX2, bitWiden4AVX2, bitWiden8AVX2},
		steps: 32, digits: [3][2][]func(t *BitTile){1: {{bitDigits4x1Row1AVX2}, {bitDigits4x3Row1AVX2}}},
	}
	lowBitAVX512 = LowBit{
		Set: AVX512, Cols: 64, Raw: true,
		row:   [3]func(t *BitTile){bitRow2AVX512, bitRow4AVX512, bitRow8AVX512},
		widen: [3]func(t *BitTile){bitWiden2AVX512, bitWiden4AVX512, bitWiden8AVX512},
	}
)
