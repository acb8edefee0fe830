package conformance

import (
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	f := func(v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, []int{len(v)}, v) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	text := func(s ...string) *tensor.Tensor {
		return &tensor.Tensor{Type: tensor.String, Shape: []int{len(s)}, Data: []byte{}, Strings: s}
	}
	box := func(ty tensor.Type, e ...*tensor.Tensor) *tensor.Tensor {
		return &tensor.Tensor{Type: ty, Data: []byte{}, Elems: e}
	}
	int4 := func(v ...byte) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Int4, Shape: []int{3}, Data: v} }
	tests := []struct {
		name      string
		got, want *tensor.Tensor
		diff      string
	}{
		{"equal", f(1, 2), f(1, 2), ""},
		{"within tolerance", f(1.0009), f(1), ""},
		{"outside tolerance", f(1.0012, 2), f(1, 2), "1 of 2 values differ"},
		{"NaN and infinity", f(nan, inf, -inf), f(nan, inf, -inf), ""},
		{"NaN for a number", f(nan), f(1), "1 of 1"},
		{"number for infinity", f(math.MaxFloat32), f(inf), "1 of 1"},
		{"type", f(1), tensor.From(tensor.Float64, []int{1}, []float64{1}), "type float32 for float64"},
		{"shape", f(1), &tensor.Tensor{Type: tensor.Float32, Data: f(1).Data}, "shape [1] for []"},
		{"absent", nil, f(1), "no value"},
		{"strings", text("a", "b"), text("a", "c"), "1 of 2"},
		{"packed", int4(0x2f, 0x01), int4(0x2f, 0xf1), ""}, // the last nibble is padding
		{"packed differs", int4(0x2f, 0x01), int4(0x2e, 0x01), "1 of 3 values differ, first [0] -1 for -2"},
		{"sequence", box(tensor.Sequence, f(1), f(2)), box(tensor.Sequence, f(1), f(3)), "element 1: 1 of 1"},
		{"sequence length", box(tensor.Sequence), box(tensor.Sequence, f(1)), "0 elements for 1"},
		{"optional holds the tensor", box(tensor.Optional, f(1)), f(1), ""},
		{"empty optional", box(tensor.Optional), box(tensor.Optional), ""},
		{"empty optional for a value", box(tensor.Optional), box(tensor.Optional, f(1)), "no value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := Compare(tt.got, tt.want); (diff == "") != (tt.diff == "") || !strings.Contains(diff, tt.diff) {
				t.Errorf("got %q, want %q", diff, tt.diff)
			}
		})
	}
}
