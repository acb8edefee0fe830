package simd

var curveKernels = family[Curves]{
	AVX2: {
		Set: AVX2, libmExp: libmExpAVX2, libmExpDivide: libmExpDivideAVX2, softmaxColumns: libmSoftmaxColumnsAVX2, quotients: quotientsOfColumnsAVX2, libmSigmoid: libmSigmoidAVX2, libmTanh: libmTanhAVX2, libmElu: libmEluAVX2,
		sigmoid: sigmoidAVX2, erf: erfAVX2, tanh: tanhAVX2, silu: siluAVX2, gelu: geluAVX2, geluTanh: geluTanhAVX2, hardSwish: hardSwishAVX2, libmHardSwish: libmHardSwishAVX2, expSum: expSumAVX2,
		exponential: exponentialAVX2, logarithm: logarithmAVX2, softplus: softplusAVX2, mish: mishAVX2, sin: sinAVX2, cos: cosAVX2,
		tan: tanAVX2, asin: asinAVX2, acos: acosAVX2, atan: atanAVX2, sinh: sinhAVX2, cosh: coshAVX2, asinh: asinhAVX2, acosh: acoshAVX2, atanh: atanhAVX2, powers: powersAVX2,
	},
	AVX512: {
		Set: AVX512, libmExp: libmExpAVX512, softmaxColumns: libmSoftmaxColumnsAVX2, quotients: quotientsOfColumnsAVX2, libmSigmoid: libmSigmoidAVX512, libmTanh: libmTanhAVX512, libmElu: libmEluAVX512, libmLog: libmLogAVX512, libmWave: libmWaveAVX512, shares: sharesAVX512,
		anyLength: true, sigmoid: sigmoidAVX512, erf: erfAVX512, tanh: tanhAVX512, silu: siluAVX512, gelu: geluAVX512, geluTanh: geluTanhAVX512, hardSwish: hardSwishAVX512, libmHardSwish: libmHardSwishAVX512, expSum: expSumAVX512, softmaxRows: softmaxRowsAVX512, expDoubles: expDoublesAVX512,
		sigmoidDoubles: sigmoidDoublesAVX512, tanhDoubles: tanhDoublesAVX512, logDoubles: logDoublesAVX512, sinDoubles: sinDoublesAVX512, cosDoubles: cosDoublesAVX512, powDoubles: powDoublesAVX512,
		exponential: exponentialAVX512, logarithm: logarithmAVX512, softplus: softplusAVX512, mish: mishAVX512, sin: sinAVX512, cos: cosAVX512,
		tan: tanAVX512, asin: asinAVX512, acos: acosAVX512, atan: atanAVX512, sinh: sinhAVX512, cosh: coshAVX512, asinh: asinhAVX512, acosh: acoshAVX512, atanh: atanhAVX512, powers: powersAVX512,
	},
}
