package simd

var pairKernels = family[Pairs]{
	AVX2: {
		Set: AVX2,
		kernels: [pairKinds][2]pairKernel[byte]{
			{pairsumU8AVX2, pairsumS8AVX2},
			{pairdifferenceU8AVX2, pairdifferenceS8AVX2},
			{pairreverseU8AVX2, pairreverseS8AVX2},
			{pairproductU8AVX2, pairproductS8AVX2},
			{pairpreluU8AVX2, pairpreluS8AVX2},
			{pairsquareU8AVX2, pairsquareS8AVX2},
			PairScaled: {pairscaledU8AVX2, pairscaledS8AVX2},
		},
		kernels16: [pairKinds]pairKernel[int16]{
			PairSum: pairsumS16AVX2, PairDifference: pairdifferenceS16AVX2, PairReverse: pairreverseS16AVX2, PairProduct: pairproductS16AVX2, PairSquare: pairsquareS16AVX2, PairLeaky: pairleakyS16AVX2,
		},
	},
	AVX512: {
		Set: AVX512, anyLength: true,
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
	},
}
