package simd

var sparseIntKernels = family[SparseInts]{
	AVX2: {
		Set: AVX2, Cols: 32, Pairs: true, Costs: [SparseKinds]float64{1.8, 1.25, 1.25}, split: splitWordsAVX2,
		whole: [SparseKinds]func(t *SparseIntTile){sparseLines1AVX2, sparseLines4AVX2, sparseFours1AVX2},
	},
	// According to their instructions, the dense kernels multiply twice as much at once.
	AVXVNNI: {
		Set: AVX2, Cols: 32, Pairs: true, Costs: [SparseKinds]float64{3.6, 2.5, 2.5}, split: splitWordsAVX2,
		whole: [SparseKinds]func(t *SparseIntTile){sparseLines1AVX2, sparseLines4AVX2, sparseFours1AVX2},
	},
	AVX512: {
		Set: AVX512, Cols: 64, Pairs: true, Costs: [SparseKinds]float64{1.6, 1.05, 1.2},
		whole: [SparseKinds]func(t *SparseIntTile){sparseLines1AVX512, sparseLines4AVX512, sparseFours1AVX512},
		half:  [SparseKinds]func(t *SparseIntTile){sparseLines1AVX2, sparseLines4AVX2, sparseFours1AVX2},
	},
	VNNI: {
		Set: VNNI, Cols: 64, Costs: [SparseKinds]float64{1.95, 1, 1.25},
		whole: [SparseKinds]func(t *SparseIntTile){sparseLines1VNNI, sparseLines4VNNI, sparseFours1VNNI},
		half:  [SparseKinds]func(t *SparseIntTile){sparseLines1HalfVNNI, sparseLines4HalfVNNI, sparseFours1HalfVNNI},
	},
}
