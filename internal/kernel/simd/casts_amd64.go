package simd

var castLoops = family[Casts]{
	AVX2: {Set: AVX2, each: 8, loops: [castKinds][castKinds]castLoop{
		CastFloat: {CastInt32: castF32I32AVX2},
		CastBool:  {CastFloat: castBF32AVX2},
		CastUint8: {CastFloat: castU8F32AVX2, CastInt32: castU8I32AVX2},
		CastInt8:  {CastFloat: castI8F32AVX2},
	}},
	AVX512: {Set: AVX512, each: 1, loops: [castKinds][castKinds]castLoop{
		CastBool:   {CastFloat: castBF32AVX512, CastHalf: castBF16AVX512},
		CastFloat:  {CastInt32: castF32I32AVX512, CastInt64: castF32I64AVX512, CastInt8: castF32I8AVX512, CastDouble: castF32F64AVX512, CastUint8: castF32I8AVX512, CastInt16: castF32I16AVX512, CastUint16: castF32I16AVX512, CastUint32: castF32U32AVX512},
		CastDouble: {CastInt8: castF64I8AVX512, CastUint8: castF64I8AVX512, CastInt16: castF64I16AVX512, CastUint16: castF64I16AVX512, CastUint32: castF64U32AVX512, CastFloat: castF64F32AVX512, CastInt32: castF64I32AVX512, CastInt64: castF64I64AVX512},
		CastHalf:   {CastInt32: castF16I32AVX512, CastInt64: castF16I64AVX512, CastInt8: castF16I8AVX512, CastUint8: castF16I8AVX512, CastInt16: castF16I16AVX512, CastUint16: castF16I16AVX512, CastUint32: castF16U32AVX512},
		CastInt8:   {CastFloat: castI8F32AVX512, CastHalf: castI8F16AVX512, CastInt32: castI8I32AVX512, CastInt64: castI8I64AVX512},
		CastUint8:  {CastFloat: castU8F32AVX512, CastHalf: castU8F16AVX512, CastInt32: castU8I32AVX512, CastInt64: castU8I64AVX512},
		CastInt32:  {CastFloat: castI32F32AVX512, CastDouble: castI32F64AVX512, CastHalf: castI32F16AVX512, CastInt8: castI32I8AVX512, CastInt64: castI32I64AVX512, CastUint8: castI32I8AVX512},
		CastInt64:  {CastFloat: castI64F32AVX512, CastDouble: castI64F64AVX512, CastHalf: castI64F16AVX512, CastInt8: castI64I8AVX512, CastInt32: castI64I32AVX512, CastUint8: castI64I8AVX512},
	}},
}

//go:noescape
func castF32I32AVX512(dst, src *byte, n int)

//go:noescape
func castF32I64AVX512(dst, src *byte, n int)

//go:noescape
func castF32I8AVX512(dst, src *byte, n int)

//go:noescape
func castF32F64AVX512(dst, src *byte, n int)

//go:noescape
func castF64F32AVX512(dst, src *byte, n int)

//go:noescape
func castF64I32AVX512(dst, src *byte, n int)

//go:noescape
func castF64I64AVX512(dst, src *byte, n int)

//go:noescape
func castF16I32AVX512(dst, src *byte, n int)

//go:noescape
func castF16I64AVX512(dst, src *byte, n int)

//go:noescape
func castF16I8AVX512(dst, src *byte, n int)

//go:noescape
func castI8F32AVX512(dst, src *byte, n int)

//go:noescape
func castI8F16AVX512(dst, src *byte, n int)

//go:noescape
func castI8I32AVX512(dst, src *byte, n int)

//go:noescape
func castI8I64AVX512(dst, src *byte, n int)

//go:noescape
func castU8F32AVX512(dst, src *byte, n int)

//go:noescape
func castU8F16AVX512(dst, src *byte, n int)

//go:noescape
func castU8I32AVX512(dst, src *byte, n int)

//go:noescape
func castU8I64AVX512(dst, src *byte, n int)

//go:noescape
func castI32F32AVX512(dst, src *byte, n int)

//go:noescape
func castI32F64AVX512(dst, src *byte, n int)

//go:noescape
func castI32F16AVX512(dst, src *byte, n int)

//go:noescape
func castI32I8AVX512(dst, src *byte, n int)

//go:noescape
func castI32I64AVX512(dst, src *byte, n int)

//go:noescape
func castI64F32AVX512(dst, src *byte, n int)

//go:noescape
func castI64F64AVX512(dst, src *byte, n int)

//go:noescape
func castI64F16AVX512(dst, src *byte, n int)

//go:noescape
func castI64I8AVX512(dst, src *byte, n int)

//go:noescape
func castI64I32AVX512(dst, src *byte, n int)

//go:noescape
func castF32I32AVX2(dst, src *byte, n int)

//go:noescape
func castU8F32AVX2(dst, src *byte, n int)

//go:noescape
func castI8F32AVX2(dst, src *byte, n int)

//go:noescape
func castU8I32AVX2(dst, src *byte, n int)

//go:noescape
func castBF32AVX2(dst, src *byte, n int)

//go:noescape
func castBF32AVX512(dst, src *byte, n int)

//go:noescape
func castBF16AVX512(dst, src *byte, n int)

//go:noescape
func castF32I16AVX512(dst, src *byte, n int)

//go:noescape
func castF32U32AVX512(dst, src *byte, n int)

//go:noescape
func castF64I8AVX512(dst, src *byte, n int)

//go:noescape
func castF64I16AVX512(dst, src *byte, n int)

//go:noescape
func castF64U32AVX512(dst, src *byte, n int)

//go:noescape
func castF16I16AVX512(dst, src *byte, n int)

//go:noescape
func castF16U32AVX512(dst, src *byte, n int)
