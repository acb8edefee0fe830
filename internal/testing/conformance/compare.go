package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
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
	switch {
	case t.Type.IsNumber():
		return tensor.All[float64](t)
	case t.Type == tensor.Complex64:
		return tensor.All[float64](&tensor.Tensor{Type: tensor.Float32, Shape: []int{2 * t.Len()}, Data: t.Data})
	case t.Type == tensor.Complex128:
		return tensor.All[float64](&tensor.Tensor{Type: tensor.Float64, Shape: []int{2 * t.Len()}, Data: t.Data})
	}
	return nil, fmt.Errorf("cannot compare %v", t.Type)
}
