package simd

var sparseKernels = family[Sparse]{
	AVX2: {
		Set: AVX2, Cols: 16, Panels: 4, PanelsOfRows: 1,
		fused: [2][]func(t *SparseTile){
			{sparseFused1x1AVX2, sparseFused1x2AVX2, sparseFused1x3AVX2, sparseFused1x4AVX2},
			{sparseFused4x1AVX2},
		},
		exact: [2][]func(t *SparseTile){
			{sparseExact1x1AVX2, sparseExact1x2AVX2, sparseExact1x3AVX2, sparseExact1x4AVX2},
			{sparseExact4x1AVX2},
		},
	},
	AVX512: {
		Set: AVX512, Cols: 32, Panels: 4, PanelsOfRows: 2,
		fused: [2][]func(t *SparseTile){
			{sparseFused1x1AVX512, sparseFused1x2AVX512, sparseFused1x3AVX512, sparseFused1x4AVX512},
			{sparseFused4x1AVX512, sparseFused4x2AVX512},
		},
		exact: [2][]func(t *SparseTile){
			{sparseExact1x1AVX512, sparseExact1x2AVX512, sparseExact1x3AVX512, sparseExact1x4AVX512},
			{sparseExact4x1AVX512, sparseExact4x2AVX512},
		},
	},
}
