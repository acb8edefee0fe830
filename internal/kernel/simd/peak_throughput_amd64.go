package simd

// The number of accumulators: all registers but four.
const (
	peakSums   = 12
	peakSums32 = 28
)

var peakKernels = family[Peak]{
	AVX2: {
		Set: AVX2, Floats: peakFloatsAVX2, Exact: peakExactAVX2, FloatOps: peakSums * 8 * 2,
		Ints: peakPairsAVX2, IntOps: peakSums * 16 * 2,
	},
	AVXVNNI: {
		Set: AVXVNNI, Floats: peakFloatsAVX2, Exact: peakExactAVX2, FloatOps: peakSums * 8 * 2,
		Ints: peakQuadsAVXVNNI, IntOps: peakSums * 32 * 2,
	},
	AVX512: {
		Set: AVX512, Floats: peakFloatsAVX512, Exact: peakExactAVX512, FloatOps: peakSums32 * 16 * 2,
		Ints: peakPairsAVX512, IntOps: peakSums32 * 32 * 2,
	},
	VNNI: {
		Set: VNNI, Floats: peakFloatsAVX512, Exact: peakExactAVX512, FloatOps: peakSums32 * 16 * 2,
		Ints: peakQuadsVNNI, IntOps: peakSums32 * 64 * 2,
	},
	AMX: {
		Set: AMX, Floats: peakFloatsAVX512, Exact: peakExactAVX512, FloatOps: peakSums32 * 16 * 2,
		Ints: amxKernels.peak, IntOps: tileRows * amxPanelCols * tileBytes * 2,
	},
}
