package simd

// Estimated throughput of a thread in multiply-adds per nanosecond. It determines how work is
// split among threads; results do not depend on it. The values come from bench/gemm and
// bench/conv on a Zen 4 (docs/performance.md). Values that were not measured are half of these.
var (
	floatRates = [sets]float64{Go: 6, NEON: 15, NEONDot: 15, I8MM: 15, AVX2: 40, AVXVNNI: 40, AVX512: 50, VNNI: 50, AMX: 50}
	intRates   = [sets]float64{Go: 10, NEON: 20, NEONDot: 20, I8MM: 20, AVX2: 50, AVXVNNI: 100, AVX512: 75, VNNI: 200, AMX: 200}
)

// Rate returns the estimated number of float32 multiply-adds of a thread per nanosecond. f may be
// nil for plain Go.
func (f *Floats) Rate() float64 {
	if f == nil {
		return floatRates[Go]
	}
	return floatRates[f.Set]
}

// Rate returns the estimate for 8-bit multiply-adds; see [Floats.Rate].
func (f *Ints) Rate() float64 {
	if f == nil {
		return intRates[Go]
	}
	return intRates[f.Set]
}
