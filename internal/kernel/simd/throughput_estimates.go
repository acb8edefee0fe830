package simd

// What a thread computes in a nanosecond, about: how work is cut among threads depends on it, results do not. The
// figures are those of bench/gemm and bench/conv on a Zen 4 (docs/performance.md), half of them for what nobody has measured.
var (
	floatRates = [sets]float64{Go: 6, NEON: 15, NEONDot: 15, I8MM: 15, AVX2: 40, AVXVNNI: 40, AVX512: 50, VNNI: 50, AMX: 50}
	intRates   = [sets]float64{Go: 10, NEON: 20, NEONDot: 20, I8MM: 20, AVX2: 50, AVXVNNI: 100, AVX512: 75, VNNI: 200, AMX: 200}
)

// Rate is the number of products of float32 that a thread computes and adds up in a nanosecond, about. f may be nil: plain Go.
func (f *Floats) Rate() float64 {
	if f == nil {
		return floatRates[Go]
	}
	return floatRates[f.Set]
}

// Rate is that of products of 8-bit numbers, see [Floats.Rate].
func (f *Ints) Rate() float64 {
	if f == nil {
		return intRates[Go]
	}
	return intRates[f.Set]
}
