package simd

var expand = family[Expand]{
	AVX512: {Set: AVX512, fused: expandFusedAVX512, exact: expandExactAVX512},
}

//go:noescape
func expandFusedAVX512(t *ExpandTile)

//go:noescape
func expandExactAVX512(t *ExpandTile)
