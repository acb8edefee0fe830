// Package elem describes element types for ONNX operators: their numbers in files, the groups
// that definitions list, definitions and shapes that follow from them, and how operators written
// for float32 serve float16 and bfloat16. Conversions of elements are in internal/model/tensor.
package elem

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// codes follows TensorProto.DataType.
var codes = [...]tensor.Type{
	1: tensor.Float32, 2: tensor.Uint8, 3: tensor.Int8, 4: tensor.Uint16, 5: tensor.Int16,
	6: tensor.Int32, 7: tensor.Int64, 8: tensor.String, 9: tensor.Bool, 10: tensor.Float16,
	11: tensor.Float64, 12: tensor.Uint32, 13: tensor.Uint64, 14: tensor.Complex64,
	15: tensor.Complex128, 16: tensor.BFloat16, 17: tensor.Float8E4M3FN,
	18: tensor.Float8E4M3FNUZ, 19: tensor.Float8E5M2, 20: tensor.Float8E5M2FNUZ,
	21: tensor.Uint4, 22: tensor.Int4, 23: tensor.Float4E2M1, 24: tensor.Float8E8M0,
	25: tensor.Uint2, 26: tensor.Int2, 27: tensor.Float6E2M3, 28: tensor.Float6E3M2,
}

// FromCode returns the element type with ONNX's number.
func FromCode(code int) (tensor.Type, error) {
	if code <= 0 || code >= len(codes) {
		return tensor.Invalid, fmt.Errorf("element type %d is not known", code)
	}
	return codes[code], nil
}

// Groups of element types for definitions. They must not be modified.
var (
	Floats   = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}
	Unsigned = []tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}
	Signed   = []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	Bools    = []tensor.Type{tensor.Bool}
	Bytes    = []tensor.Type{tensor.Uint8, tensor.Int8}
	Integers = slices.Concat(Signed, Unsigned)
	Numbers  = slices.Concat(Floats, Integers)
	Float8s  = []tensor.Type{tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ}
	Packed   = []tensor.Type{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2, tensor.Float4E2M1, tensor.Float6E2M3, tensor.Float6E3M2}
)
