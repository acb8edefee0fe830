package index

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// sortable is an element type with an order. Halves are widened first.
type sortable interface {
	tensor.Number | ~string
}

// order compares with NaN after every number and equal to itself, as NumPy
// sorts.
func order[T sortable](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	// At least one is NaN: only then does a value differ from itself.
	return cmp.Compare(isNaN(a), isNaN(b))
}

func isNaN[T sortable](a T) int {
	if a != a {
		return 1
	}
	return 0
}

// sorter runs an algorithm that is generic over sortable elements.
type sorter struct {
	f32 func(x *tensor.Tensor, v []float32) error
	f64 func(x *tensor.Tensor, v []float64) error
	i8  func(x *tensor.Tensor, v []int8) error
	i16 func(x *tensor.Tensor, v []int16) error
	i32 func(x *tensor.Tensor, v []int32) error
	i64 func(x *tensor.Tensor, v []int64) error
	u8  func(x *tensor.Tensor, v []uint8) error
	u16 func(x *tensor.Tensor, v []uint16) error
	u32 func(x *tensor.Tensor, v []uint32) error
	u64 func(x *tensor.Tensor, v []uint64) error
	str func(x *tensor.Tensor, v []string) error
}

// apply gives the elements of x in a type that can be compared.
func (s *sorter) apply(x *tensor.Tensor) error {
	switch x.Type {
	case tensor.Float32:
		return s.f32(x, tensor.Of[float32](x))
	case tensor.Float64:
		return s.f64(x, tensor.Of[float64](x))
	case tensor.Float16:
		return s.f32(x, widen(tensor.Of[uint16](x), tensor.F16ToF32))
	case tensor.BFloat16:
		return s.f32(x, widen(tensor.Of[uint16](x), tensor.BF16ToF32))
	case tensor.Int8:
		return s.i8(x, tensor.Of[int8](x))
	case tensor.Int16:
		return s.i16(x, tensor.Of[int16](x))
	case tensor.Int32:
		return s.i32(x, tensor.Of[int32](x))
	case tensor.Int64:
		return s.i64(x, tensor.Of[int64](x))
	case tensor.Uint8, tensor.Bool:
		return s.u8(x, tensor.Of[uint8](x))
	case tensor.Uint16:
		return s.u16(x, tensor.Of[uint16](x))
	case tensor.Uint32:
		return s.u32(x, tensor.Of[uint32](x))
	case tensor.Uint64:
		return s.u64(x, tensor.Of[uint64](x))
	case tensor.String:
		return s.str(x, x.Strings)
	}
	return op.Unsupported("order of %v", x.Type)
}

func widen(v []uint16, f func(uint16) float32) []float32 {
	out := make([]float32, len(v))
	for i, h := range v {
		out[i] = f(h)
	}
	return out
}

// ordered reports whether elements of the type can be sorted.
func ordered(t tensor.Type) bool {
	switch t {
	case tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool, tensor.String:
		return true
	}
	return false
}
