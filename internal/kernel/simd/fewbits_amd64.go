package simd

var fewBits = family[FewBits]{AVX2: &fewBitsAVX2, AVX512: &fewBitsAVX512, VNNI: fewBitsVNNI()}

// fewBitsVNNI has products of rows of codes, too.
func fewBitsVNNI() *FewBits {
	f := fewBitsAVX512
	f.Set = VNNI
	f.codes = []func(t *BitTile){bitCodes1x4VNNI, bitCodes2x2VNNI, bitCodes3x2VNNI, bitCodes4x2VNNI, bitCodes5x2VNNI, bitCodes6x2VNNI}
	return &f
}

var (
	fewBitsAVX2 = FewBits{
		Set: AVX2, Cols: 32,
		row:   [3]func(t *BitTile){bitRow2AVX2, bitRow4AVX2, bitRow8AVX2},
		widen: [3]func(t *BitTile){bitWiden2AVX2, bitWiden4AVX2, bitWiden8AVX2},
	}
	fewBitsAVX512 = FewBits{
		Set: AVX512, Cols: 64, raw: true,
		row:   [3]func(t *BitTile){bitRow2AVX512, bitRow4AVX512, bitRow8AVX512},
		widen: [3]func(t *BitTile){bitWiden2AVX512, bitWiden4AVX512, bitWiden8AVX512},
	}
)

//go:noescape
func bitRow2AVX2(t *BitTile)

//go:noescape
func bitRow4AVX2(t *BitTile)

//go:noescape
func bitRow8AVX2(t *BitTile)

//go:noescape
func bitWiden2AVX2(t *BitTile)

//go:noescape
func bitWiden4AVX2(t *BitTile)

//go:noescape
func bitWiden8AVX2(t *BitTile)

//go:noescape
func bitRow2AVX512(t *BitTile)

//go:noescape
func bitRow4AVX512(t *BitTile)

//go:noescape
func bitRow8AVX512(t *BitTile)

//go:noescape
func bitWiden2AVX512(t *BitTile)

//go:noescape
func bitWiden4AVX512(t *BitTile)

//go:noescape
func bitWiden8AVX512(t *BitTile)

//go:noescape
func bitCodes2x2VNNI(t *BitTile)

//go:noescape
func bitCodes3x2VNNI(t *BitTile)

//go:noescape
func bitCodes4x2VNNI(t *BitTile)

//go:noescape
func bitCodes5x2VNNI(t *BitTile)

//go:noescape
func bitCodes6x2VNNI(t *BitTile)

//go:noescape
func bitCodes1x4VNNI(t *BitTile)
