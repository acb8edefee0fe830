// Package elem knows ONNX's numbers for element types and converts elements of
// any numeric type from and to float64, for operators that make their own
// values.
package elem

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/tensor"
)

// codes follows TensorProto.DataType.
var codes = [...]tensor.Type{
	1: tensor.Float32, 2: tensor.Uint8, 3: tensor.Int8, 4: tensor.Uint16, 5: tensor.Int16,
	6: tensor.Int32, 7: tensor.Int64, 8: tensor.String, 9: tensor.Bool, 10: tensor.Float16,
	11: tensor.Float64, 12: tensor.Uint32, 13: tensor.Uint64, 14: tensor.Complex64,
	15: tensor.Complex128, 16: tensor.BFloat16, 17: tensor.Float8E4M3FN,
	18: tensor.Float8E4M3FNUZ, 19: tensor.Float8E5M2, 20: tensor.Float8E5M2FNUZ,
	21: tensor.Uint4, 22: tensor.Int4, 23: tensor.Float4E2M1, 24: tensor.Float8E8M0,
	25: tensor.Uint2, 26: tensor.Int2,
}

// FromCode returns the element type with ONNX's number.
func FromCode(code int) (tensor.Type, error) {
	if code <= 0 || code >= len(codes) {
		return tensor.Invalid, fmt.Errorf("element type %d is not known", code)
	}
	return codes[code], nil
}

// Float64s reads the elements of a numeric or bool tensor.
func Float64s(x *tensor.Tensor) ([]float64, error) {
	switch x.Type {
	case tensor.Float32:
		return widen(tensor.Of[float32](x)), nil
	case tensor.Float64:
		return widen(tensor.Of[float64](x)), nil
	case tensor.Int8:
		return widen(tensor.Of[int8](x)), nil
	case tensor.Int16:
		return widen(tensor.Of[int16](x)), nil
	case tensor.Int32:
		return widen(tensor.Of[int32](x)), nil
	case tensor.Int64:
		return widen(tensor.Of[int64](x)), nil
	case tensor.Uint8, tensor.Bool:
		return widen(tensor.Of[uint8](x)), nil
	case tensor.Uint16:
		return widen(tensor.Of[uint16](x)), nil
	case tensor.Uint32:
		return widen(tensor.Of[uint32](x)), nil
	case tensor.Uint64:
		return widen(tensor.Of[uint64](x)), nil
	case tensor.Float16:
		h := tensor.Of[uint16](x)
		v := make([]float64, len(h))
		for i, b := range h {
			v[i] = float64(tensor.F16ToF32(b))
		}
		return v, nil
	case tensor.BFloat16:
		h := tensor.Of[uint16](x)
		v := make([]float64, len(h))
		for i, b := range h {
			v[i] = float64(tensor.BF16ToF32(b))
		}
		return v, nil
	}
	return nil, fmt.Errorf("%v elements are not numbers here", x.Type)
}

func widen[T tensor.Number](s []T) []float64 {
	v := make([]float64, len(s))
	for i, x := range s {
		v[i] = float64(x)
	}
	return v
}

// Settable reports whether [Set] can write elements of the type.
func Settable(t tensor.Type) bool {
	switch t {
	case tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool:
		return true
	}
	return false
}

// Set writes f(i) to every element i of x, truncated for integer types.
func Set(x *tensor.Tensor, f func(i int) float64) {
	switch x.Type {
	case tensor.Float32:
		set(tensor.Of[float32](x), f)
	case tensor.Float64:
		set(tensor.Of[float64](x), f)
	case tensor.Int8:
		set(tensor.Of[int8](x), f)
	case tensor.Int16:
		set(tensor.Of[int16](x), f)
	case tensor.Int32:
		set(tensor.Of[int32](x), f)
	case tensor.Int64:
		set(tensor.Of[int64](x), f)
	case tensor.Uint8:
		set(tensor.Of[uint8](x), f)
	case tensor.Uint16:
		set(tensor.Of[uint16](x), f)
	case tensor.Uint32:
		set(tensor.Of[uint32](x), f)
	case tensor.Uint64:
		set(tensor.Of[uint64](x), f)
	case tensor.Bool:
		b := tensor.Of[uint8](x)
		for i := range b {
			b[i] = 0
			if f(i) != 0 {
				b[i] = 1
			}
		}
	case tensor.Float16:
		h := tensor.Of[uint16](x)
		for i := range h {
			h[i] = tensor.F32ToF16(float32(f(i)))
		}
	case tensor.BFloat16:
		h := tensor.Of[uint16](x)
		for i := range h {
			h[i] = tensor.F32ToBF16(float32(f(i)))
		}
	default:
		panic("elem: numbers cannot be written as " + x.Type.String())
	}
}

func set[T tensor.Number](s []T, f func(i int) float64) {
	for i := range s {
		s[i] = T(f(i))
	}
}
