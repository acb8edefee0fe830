package simd

var curves = family[Curves]{
	AVX2: {
		Set: AVX2, wide: 4, libmExp: libmExpAVX2, libmSigmoid: libmSigmoidAVX2,
		sigmoid: sigmoidAVX2, erf: erfAVX2, tanh: tanhAVX2, silu: siluAVX2, gelu: geluAVX2, geluTanh: geluTanhAVX2, hardSwish: hardSwishAVX2, expSum: expSumAVX2,
		exponential: exponentialAVX2, logarithm: logarithmAVX2, softplus: softplusAVX2, mish: mishAVX2, sin: sinAVX2, cos: cosAVX2,
		tan: tanAVX2, asin: asinAVX2, acos: acosAVX2, atan: atanAVX2, sinh: sinhAVX2, cosh: coshAVX2, asinh: asinhAVX2, acosh: acoshAVX2, atanh: atanhAVX2, powers: powersAVX2,
	},
	AVX512: {
		Set: AVX512, wide: 1, libmExp: libmExpAVX512, libmSigmoid: libmSigmoidAVX512, libmTanh: libmTanhAVX512, libmElu: libmEluAVX512, libmLog: libmLogAVX512, libmWave: libmWaveAVX512, shares: sharesAVX512,
		every: true, sigmoid: sigmoidAVX512, erf: erfAVX512, tanh: tanhAVX512, silu: siluAVX512, gelu: geluAVX512, geluTanh: geluTanhAVX512, hardSwish: hardSwishAVX512, expSum: expSumAVX512, softmaxRows: softmaxRowsAVX512, expDoubles: expDoublesAVX512,
		sigmoidDoubles: sigmoidDoublesAVX512, tanhDoubles: tanhDoublesAVX512, logDoubles: logDoublesAVX512, sinDoubles: sinDoublesAVX512, cosDoubles: cosDoublesAVX512, powDoubles: powDoublesAVX512,
		exponential: exponentialAVX512, logarithm: logarithmAVX512, softplus: softplusAVX512, mish: mishAVX512, sin: sinAVX512, cos: cosAVX512,
		tan: tanAVX512, asin: asinAVX512, acos: acosAVX512, atan: atanAVX512, sinh: sinhAVX512, cosh: coshAVX512, asinh: asinhAVX512, acosh: acoshAVX512, atanh: atanhAVX512, powers: powersAVX512,
	},
}

//go:noescape
func libmExpAVX2(dst, src *float32, n int, top, beta float32, t *LibmTable)

//go:noescape
func libmSigmoidAVX2(dst, src *float32, n int, t *LibmTable)

//go:noescape
func libmExpAVX512(dst, src *float32, n int, top, beta float32, t *LibmTable)

//go:noescape
func libmSigmoidAVX512(dst, src *float32, n int, t *LibmTable)

//go:noescape
func sigmoidAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func erfAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func tanhAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func siluAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func geluAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func geluTanhAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func sigmoidAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func erfAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func tanhAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func siluAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func geluAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func geluTanhAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func hardSwishAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func expDoublesAVX512(dst, src *float64, n int, shift float64) float64

//go:noescape
func sigmoidDoublesAVX512(dst, src *float64, n int)

//go:noescape
func tanhDoublesAVX512(dst, src *float64, n int)

//go:noescape
func logDoublesAVX512(dst, src *float64, n int)

//go:noescape
func sinDoublesAVX512(dst, src *float64, n int) (done int)

//go:noescape
func cosDoublesAVX512(dst, src *float64, n int) (done int)

//go:noescape
func powDoublesAVX512(dst, a, b *float64, n int)

//go:noescape
func expSumAVX2(dst, src *float32, n int, shift float32, t *SingleTable) float64

//go:noescape
func hardSwishAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func softmaxRowsAVX512(dst, src *float32, rows, n int, t *SingleTable)

//go:noescape
func expSumAVX512(dst, src *float32, n int, shift float32, t *SingleTable) float64

//go:noescape
func libmTanhAVX512(dst, src *float32, n int)

//go:noescape
func libmEluAVX512(dst, src *float32, n int)

//go:noescape
func softplusAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func mishAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func sinAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func cosAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func softplusAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func mishAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func sinAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func cosAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func libmWaveAVX512(dst, src *float32, n int, turn int32, t *float64) (done int)

//go:noescape
func libmLogAVX512(dst, src *float32, n int, t *float64)

//go:noescape
func exponentialAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func logarithmAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func exponentialAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func logarithmAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func tanAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func asinAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func acosAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func atanAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func sinhAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func coshAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func asinhAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func acoshAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func atanhAVX2(dst, src *float32, n int, t *SingleTable)

//go:noescape
func powersAVX2(dst, a, b *float32, n int)

//go:noescape
func tanAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func asinAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func acosAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func atanAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func sinhAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func coshAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func asinhAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func acoshAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func atanhAVX512(dst, src *float32, n int, t *SingleTable)

//go:noescape
func powersAVX512(dst, a, b *float32, n int)

//go:noescape
func sharesAVX512(dst, src *float32, n int, by *float32, rows int)
