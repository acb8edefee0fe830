package simd

var divisionKernels = family[Divisions]{
	AVX512: {
		Set: AVX512,
		ints: [quotientKinds][intKinds]divisionKernel{
			TruncatedQuotient:  {quotientI8AVX512, quotientU8AVX512, quotientI16AVX512, quotientU16AVX512, quotientI32AVX512, quotientU32AVX512, quotientI64AVX512, quotientU64AVX512},
			TruncatedRemainder: {restTruncI8AVX512, restTruncU8AVX512, restTruncI16AVX512, restTruncU16AVX512, restTruncI32AVX512, restTruncU32AVX512, restTruncI64AVX512, restTruncU64AVX512},
			FlooredRemainder:   {restFloorI8AVX512, restTruncU8AVX512, restFloorI16AVX512, restTruncU16AVX512, restFloorI32AVX512, restTruncU32AVX512, restFloorI64AVX512, restTruncU64AVX512},
		},
		singles: remaindersF32AVX512,
		doubles: remaindersF64AVX512,
	},
}
