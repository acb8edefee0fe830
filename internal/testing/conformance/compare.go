package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/tensor"
)

// Tolerances of the ONNX backend test runner.
const (
	relative = 1e-3
	absolute = 1e-7
)

// Compare says how a result differs from what is expected, "" when it does not:
// same type and shape, |got-want| <= 1e-7 + 1e-3*|want| for each element, NaN
// equal to NaN, infinities and strings equal, containers element by element.
func Compare(got, want *tensor.Tensor) string {
	got, want = unwrap(got), unwrap(want)
	switch {
	case want == nil && got == nil:
		return ""
	case want == nil:
		return "a value where none is expected"
	case got == nil:
		return "no value"
	}
	if m := sameKind(got, want); m != "" {
		return m
	}
	if want.Type.IsContainer() {
		if len(got.Elems) != len(want.Elems) {
			return fmt.Sprintf("%d elements for %d", len(got.Elems), len(want.Elems))
		}
		for i := range want.Elems {
			if m := Compare(got.Elems[i], want.Elems[i]); m != "" {
				return fmt.Sprintf("element %d: %s", i, m)
			}
		}
		return ""
	}
	if want.Type == tensor.String {
		bad := 0
		for i, s := range want.Strings {
			if i >= len(got.Strings) || got.Strings[i] != s {
				bad++
			}
		}
		return differ(bad, len(want.Strings), "")
	}
	x, err := Reals(got)
	if err != nil {
		return err.Error()
	}
	y, err := Reals(want)
	if err != nil {
		return err.Error()
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d values for %d", len(x), len(y))
	}
	bad, first := 0, ""
	for i := range y {
		if x[i] == y[i] || math.IsNaN(x[i]) && math.IsNaN(y[i]) {
			continue
		}
		if math.IsInf(y[i], 0) || !(math.Abs(x[i]-y[i]) <= absolute+relative*math.Abs(y[i])) {
			if bad++; bad == 1 {
				first = fmt.Sprintf(", first [%d] %.7g for %.7g", i, x[i], y[i])
			}
		}
	}
	return differ(bad, len(y), first)
}

func differ(bad, n int, first string) string {
	if bad == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d values differ%s", bad, n, first)
}

// sameKind compares type and shape.
func sameKind(got, want *tensor.Tensor) string {
	if got.Type != want.Type {
		return fmt.Sprintf("type %v for %v", got.Type, want.Type)
	}
	if !want.Type.IsContainer() && !slices.Equal(got.Shape, want.Shape) {
		return fmt.Sprintf("shape %v for %v", got.Shape, want.Shape)
	}
	return ""
}

// unwrap opens an optional, so that "some tensor" equals the tensor; nil is none.
func unwrap(t *tensor.Tensor) *tensor.Tensor {
	for t != nil && t.Type == tensor.Optional {
		if len(t.Elems) == 0 {
			return nil
		}
		t = t.Elems[0]
	}
	return t
}

// Reals widens the elements of a numeric tensor; complex numbers give two each.
func Reals(t *tensor.Tensor) ([]float64, error) {
	switch t.Type {
	case tensor.Float64:
		return slices.Clone(tensor.Of[float64](t)), nil
	case tensor.Float32:
		return widen(tensor.Of[float32](t)), nil
	case tensor.Int64:
		return widen(tensor.Of[int64](t)), nil
	case tensor.Int32:
		return widen(tensor.Of[int32](t)), nil
	case tensor.Int16:
		return widen(tensor.Of[int16](t)), nil
	case tensor.Int8:
		return widen(tensor.Of[int8](t)), nil
	case tensor.Uint64:
		return widen(tensor.Of[uint64](t)), nil
	case tensor.Uint32:
		return widen(tensor.Of[uint32](t)), nil
	case tensor.Uint16:
		return widen(tensor.Of[uint16](t)), nil
	case tensor.Uint8, tensor.Bool:
		return widen(tensor.Of[uint8](t)), nil
	case tensor.Float16:
		return decode(tensor.Of[uint16](t), tensor.F16ToF32), nil
	case tensor.BFloat16:
		return decode(tensor.Of[uint16](t), tensor.BF16ToF32), nil
	case tensor.Complex64:
		return widen(tensor.Of[float32](&tensor.Tensor{Type: tensor.Float32, Data: t.Data})), nil
	case tensor.Complex128:
		return slices.Clone(tensor.Of[float64](&tensor.Tensor{Type: tensor.Float64, Data: t.Data})), nil
	case tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ, tensor.Float8E8M0:
		table := tensor.Float8Table(t.Type)
		return decode(t.Data, func(c uint8) float32 { return table[c] }), nil
	case tensor.Float4E2M1, tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2:
		return packed(t), nil
	}
	return nil, fmt.Errorf("cannot compare %v", t.Type)
}

func widen[T tensor.Number](v []T) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func decode[T uint8 | uint16](v []T, f func(T) float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(f(x))
	}
	return out
}

// packed widens the types that share bytes.
func packed(t *tensor.Tensor) []float64 {
	codes := make([]uint8, t.Len())
	tensor.Unpack(codes, t, 0)
	if t.Type == tensor.Float4E2M1 {
		table := tensor.Float8Table(t.Type)
		return decode(codes, func(c uint8) float32 { return table[c] })
	}
	if t.Type.IsSigned() {
		return decode(codes, func(c uint8) float32 { return float32(int8(c)) })
	}
	return widen(codes)
}
