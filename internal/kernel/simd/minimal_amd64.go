package simd

var minimal = family[Minimal]{
	AVX2: {
		Set: AVX2, Lanes: 8, order: [2][16]int32{orderOf(2, 4), orderOf(4, 2)},
		split: minimalSplitAVX2, input: minimalInputAVX2, output: minimalOutputAVX2, weights: minimalWeightsAVX2,
	},
	AVX512: {
		Set: AVX512, Lanes: 16, order: [2][16]int32{orderOf(4, 4), orderOf(4, 4)},
		split: minimalSplitAVX512, input: minimalInputAVX512, output: minimalOutputAVX512, weights: minimalWeightsAVX512,
	},
}

// orderOf takes numbers by columns from rows of cols.
func orderOf(cols, rows int) (order [16]int32) {
	for i := range rows * cols {
		order[i] = int32(rows*(i%cols) + i/cols)
	}
	return order
}

//go:noescape
func minimalSplitAVX2(dst *float32, frame, stepDst int, src *float32, stepSrc, n, lines int, order *int32, next *float32, stepNext int)

//go:noescape
func minimalSplitAVX512(dst *float32, frame, stepDst int, src *float32, stepSrc, n, lines int, order *int32, next *float32, stepNext int)

//go:noescape
func minimalInputAVX2(dst *float32, place int, src *float32, frame, line, n int, room, constants *float32)

//go:noescape
func minimalInputAVX512(dst *float32, place int, src *float32, frame, line, n int, room, constants *float32)

//go:noescape
func minimalOutputAVX2(dst *float32, step, lines, columns int, src *float32, place int, room, constants *float32, order, mask *int32, bias, low, high float32)

//go:noescape
func minimalOutputAVX512(dst *float32, step, lines, columns int, src *float32, place int, room, constants *float32, order, mask *int32, bias, low, high float32)

//go:noescape
func minimalWeightsAVX2(dst *float32, place, step int, src *float32, n int, room, constants *float32)

//go:noescape
func minimalWeightsAVX512(dst *float32, place, step int, src *float32, n int, room, constants *float32)
