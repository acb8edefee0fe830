package simd

var winogradKernels = family[Winograd]{
	AVX2: {
		Set: AVX2, Lanes: 8, order: [2][16]int32{transposeOrder(2, 4), transposeOrder(4, 2)},
		split: minimalSplitAVX2, input: minimalInputAVX2, output: minimalOutputAVX2, weights: minimalWeightsAVX2,
	},
	AVX512: {
		Set: AVX512, Lanes: 16, order: [2][16]int32{transposeOrder(4, 4), transposeOrder(4, 4)},
		split: minimalSplitAVX512, input: minimalInputAVX512, output: minimalOutputAVX512, weights: minimalWeightsAVX512,
	},
}

// transposeOrder returns the permutation that transposes a matrix of cols lines with rows values
// each.
func transposeOrder(cols, rows int) (order [16]int32) {
	for i := range rows * cols {
		order[i] = int32(rows*(i%cols) + i/cols)
	}
	return order
}
