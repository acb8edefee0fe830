package tensor

// Integer is an integer element type that has a Go representation.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Real is an element type with floating point in hardware.
type Real interface{ ~float32 | ~float64 }

// The functions below choose among the instances of a generic function by the element type of a
// tensor. Each instance is compiled for its type, so the choice is made once and not in inner
// loops. They return the zero F, nil for functions, if no instance fits.

// PickReal chooses for float32 and float64.
func PickReal[F any](t Type, f32, f64 F) (f F) {
	switch t {
	case Float32:
		return f32
	case Float64:
		return f64
	}
	return f
}

// PickInteger chooses for integers of 8 to 64 bits.
func PickInteger[F any](t Type, i8, i16, i32, i64, u8, u16, u32, u64 F) (f F) {
	switch t {
	case Int8:
		return i8
	case Int16:
		return i16
	case Int32:
		return i32
	case Int64:
		return i64
	case Uint8:
		return u8
	case Uint16:
		return u16
	case Uint32:
		return u32
	case Uint64:
		return u64
	}
	return f
}

// PickNumber chooses for all types of [Number].
func PickNumber[F any](t Type, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 F) F {
	if t == Float32 || t == Float64 {
		return PickReal(t, f32, f64)
	}
	return PickInteger(t, i8, i16, i32, i64, u8, u16, u32, u64)
}
