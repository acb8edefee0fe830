package simd

var castKernels = family[Casts]{
	AVX2: {Set: AVX2, multiple: 8, kernels: [castKinds][castKinds]castKernel{
		CastFloat: {CastInt32: castF32I32AVX2},
		CastBool:  {CastFloat: castBF32AVX2},
		CastUint8: {CastFloat: castU8F32AVX2, CastInt32: castU8I32AVX2},
		CastInt8:  {CastFloat: castI8F32AVX2},
	}},
	AVX512: {Set: AVX512, multiple: 1, kernels: [castKinds][castKinds]castKernel{
		CastBool:     {CastFloat16: castBF16AVX512, CastFloat: castBF32AVX512},
		CastFloat16:  {CastBFloat16: castF16BF16AVX512, CastDouble: castF16F64AVX512, CastInt8: castF16I8AVX512, CastUint8: castF16I8AVX512, CastInt16: castF16I16AVX512, CastUint16: castF16I16AVX512, CastInt32: castF16I32AVX512, CastUint32: castF16U32AVX512, CastInt64: castF16I64AVX512, CastUint64: castF16U64AVX512},
		CastBFloat16: {CastFloat16: castBF16F16AVX512, CastFloat: castBF16F32AVX512, CastDouble: castBF16F64AVX512, CastInt32: castBF16I32AVX512, CastInt64: castBF16I64AVX512},
		CastFloat:    {CastFloat16: castF32F16AVX512, CastBFloat16: castF32BF16AVX512, CastDouble: castF32F64AVX512, CastInt8: castF32I8AVX512, CastUint8: castF32I8AVX512, CastInt16: castF32I16AVX512, CastUint16: castF32I16AVX512, CastInt32: castF32I32AVX512, CastUint32: castF32U32AVX512, CastInt64: castF32I64AVX512, CastUint64: castF32U64AVX512},
		CastDouble:   {CastFloat16: castF64F16AVX512, CastBFloat16: castF64BF16AVX512, CastFloat: castF64F32AVX512, CastInt8: castF64I8AVX512, CastUint8: castF64I8AVX512, CastInt16: castF64I16AVX512, CastUint16: castF64I16AVX512, CastInt32: castF64I32AVX512, CastUint32: castF64U32AVX512, CastInt64: castF64I64AVX512, CastUint64: castF64U64AVX512},
		CastInt8:     {CastFloat16: castI8F16AVX512, CastBFloat16: castI8BF16AVX512, CastFloat: castI8F32AVX512, CastInt32: castI8I32AVX512, CastUint32: castI8I32AVX512, CastInt64: castI8I64AVX512, CastUint64: castI8I64AVX512},
		CastUint8:    {CastFloat16: castU8F16AVX512, CastBFloat16: castU8BF16AVX512, CastFloat: castU8F32AVX512, CastInt32: castU8I32AVX512, CastUint32: castU8I32AVX512, CastInt64: castU8I64AVX512, CastUint64: castU8I64AVX512},
		CastInt16:    {CastFloat16: castI16F16AVX512, CastBFloat16: castI16BF16AVX512, CastFloat: castI16F32AVX512, CastDouble: castI16F64AVX512, CastInt32: castI16I32AVX512, CastUint32: castI16I32AVX512, CastInt64: castI16I64AVX512, CastUint64: castI16I64AVX512},
		CastUint16:   {CastFloat16: castU16F16AVX512, CastBFloat16: castU16BF16AVX512, CastFloat: castU16F32AVX512, CastDouble: castU16F64AVX512, CastInt32: castU16I32AVX512, CastUint32: castU16I32AVX512, CastInt64: castU16I64AVX512, CastUint64: castU16I64AVX512},
		CastInt32:    {CastFloat16: castI32F16AVX512, CastBFloat16: castI32BF16AVX512, CastFloat: castI32F32AVX512, CastDouble: castI32F64AVX512, CastInt8: castI32I8AVX512, CastUint8: castI32I8AVX512, CastInt16: castI32I16AVX512, CastUint16: castI32I16AVX512, CastInt64: castI32I64AVX512, CastUint64: castI32I64AVX512},
		CastUint32:   {CastFloat16: castU32F16AVX512, CastBFloat16: castU32BF16AVX512, CastFloat: castU32F32AVX512, CastDouble: castU32F64AVX512, CastInt8: castI32I8AVX512, CastUint8: castI32I8AVX512, CastInt16: castI32I16AVX512, CastUint16: castI32I16AVX512, CastInt64: castU32I64AVX512, CastUint64: castU32I64AVX512},
		CastInt64:    {CastFloat16: castI64F16AVX512, CastBFloat16: castI64BF16AVX512, CastFloat: castI64F32AVX512, CastDouble: castI64F64AVX512, CastInt8: castI64I8AVX512, CastUint8: castI64I8AVX512, CastInt16: castI64I16AVX512, CastUint16: castI64I16AVX512, CastInt32: castI64I32AVX512, CastUint32: castI64I32AVX512},
		CastUint64:   {CastFloat16: castU64F16AVX512, CastBFloat16: castU64BF16AVX512, CastFloat: castU64F32AVX512, CastDouble: castU64F64AVX512, CastInt8: castI64I8AVX512, CastUint8: castI64I8AVX512, CastInt16: castI64I16AVX512, CastUint16: castI64I16AVX512, CastInt32: castI64I32AVX512, CastUint32: castI64I32AVX512},
	}},
}
