package simd

var pairKernels = family[Pairs]{AVX512: {
	Set: AVX512,
	kernels: [pairKinds][2]pairKernel[byte]{
		{pairsumU8AVX512, pairsumS8AVX512},
		{pairdifferenceU8AVX512, pairdifferenceS8AVX512},
		{pairreverseU8AVX512, pairreverseS8AVX512},
		{pairproductU8AVX512, pairproductS8AVX512},
		{pairpreluU8AVX512, pairpreluS8AVX512},
		{pairsquareU8AVX512, pairsquareS8AVX512},
	},
	kernels16: [pairKinds]pairKernel[int16]{
		PairSum: pairsumS16AVX512, PairDifference: pairdifferenceS16AVX512, PairReverse: pairreverseS16AVX512, PairProduct: pairproductS16AVX512, PairSquare: pairsquareS16AVX512, PairLeaky: pairleakyS16AVX512,
	},
}}
