package elementwise

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func i32(shape []int, v ...int32) *tensor.Tensor   { return tensor.From(tensor.Int32, shape, v) }
func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }
func truth(shape []int, v ...uint8) *tensor.Tensor { return tensor.From(tensor.Bool, shape, v) }
func words(v ...string) *tensor.Tensor {
	x := tensor.New(tensor.String, len(v))
	copy(x.Strings, v)
	return x
}

func TestOperators(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, op string
		out      tensor.Type
		in       []*tensor.Tensor
		want     *tensor.Tensor
	}{
		{"equal strings", "EQUAL", 0, []*tensor.Tensor{words("a", "b"), words("a", "c")}, truth([]int{2}, 1, 0)},
		{"less, broadcast", "LESS", 0, []*tensor.Tensor{i32([]int{2, 1}, 1, 5), i32([]int{2}, 2, 5)}, truth([]int{2, 2}, 1, 1, 0, 0)},
		{"greater or equal", "GREATER_EQUAL", 0, []*tensor.Tensor{f32([]int{3}, 1, 2, float32(math.NaN())), f32(nil, 2)}, truth([]int{3}, 0, 1, 0)},
		{"not equal", "NOT_EQUAL", 0, []*tensor.Tensor{truth([]int{2}, 0, 1), truth([]int{2}, 1, 1)}, truth([]int{2}, 1, 0)},
		{"and", "LOGICAL_AND", 0, []*tensor.Tensor{truth([]int{2}, 0, 1), truth([]int{1}, 1)}, truth([]int{2}, 0, 1)},
		{"not", "LOGICAL_NOT", 0, []*tensor.Tensor{truth([]int{2}, 0, 1)}, truth([]int{2}, 1, 0)},
		{"floor division", "FLOOR_DIV", 0, []*tensor.Tensor{i32([]int{3}, -7, 7, -6), i32([]int{3}, 2, -2, 3)}, i32([]int{3}, -4, -4, -2)},
		{"floor modulus", "FLOOR_MOD", 0, []*tensor.Tensor{i32([]int{3}, -7, 7, -6), i32([]int{3}, 2, -2, 3)}, i32([]int{3}, 1, -1, 0)},
		{"float modulus", "FLOOR_MOD", 0, []*tensor.Tensor{f32([]int{2}, -7, 5.5), f32([]int{2}, 3, -2)}, f32([]int{2}, 2, -0.5)},
		{"power", "POW", 0, []*tensor.Tensor{i32([]int{2}, 3, -2), i32([]int{2}, 4, 3)}, i32([]int{2}, 81, -8)},
		{"xor", "BITWISE_XOR", 0, []*tensor.Tensor{i32([]int{2}, 6, -1), i32([]int{2}, 3, 1)}, i32([]int{2}, 5, -2)},
		{"shift", "RIGHT_SHIFT", 0, []*tensor.Tensor{i32([]int{3}, -8, 8, -8), i32([]int{3}, 1, 2, 99)}, i32([]int{3}, -4, 2, -1)},
		{"select rows", "SELECT", 0, []*tensor.Tensor{truth([]int{2}, 0, 1), i32([]int{2, 2}, 1, 2, 3, 4), i32([]int{2, 2}, 5, 6, 7, 8)}, i32([]int{2, 2}, 5, 6, 3, 4)},
		{"select, broadcast", "SELECT_V2", 0, []*tensor.Tensor{truth([]int{2, 1}, 0, 1), i32([]int{2}, 1, 2), i32(nil, 9)}, i32([]int{2, 2}, 9, 9, 1, 2)},
		{"cast cuts", "CAST", tensor.Int32, []*tensor.Tensor{f32([]int{4}, -1.7, 1.7, 1e20, float32(math.NaN()))}, i32([]int{4}, -1, 1, math.MaxInt32, 0)},
		{"cast to bool", "CAST", tensor.Bool, []*tensor.Tensor{f32([]int{3}, 0, 0.5, -1)}, truth([]int{3}, 0, 1, 1)},
		{"cast wraps", "CAST", tensor.Int8, []*tensor.Tensor{i32([]int{2}, 300, -1)}, tensor.From(tensor.Int8, []int{2}, []int8{44, -1})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: tt.op, OutTypes: []tensor.Type{tt.out}}, tt.in...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got[0]); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, op string
		in       []*tensor.Tensor
	}{
		{"mixed types", "LESS", []*tensor.Tensor{i32([]int{1}, 1), f32([]int{1}, 1)}},
		{"shapes", "LESS", []*tensor.Tensor{i32([]int{2}, 1, 2), i32([]int{3}, 1, 2, 3)}},
		{"zero divisor", "FLOOR_DIV", []*tensor.Tensor{i32([]int{1}, 1), i32([]int{1}, 0)}},
		{"negative power", "POW", []*tensor.Tensor{i32([]int{1}, 2), i32([]int{1}, -1)}},
		{"no condition", "SELECT", []*tensor.Tensor{i32([]int{1}, 1), i32([]int{1}, 0), i32([]int{1}, 0)}},
		{"one input", "EQUAL", []*tensor.Tensor{i32([]int{1}, 1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: tt.op}, tt.in...); err == nil {
				t.Errorf("no error, result %v", got[0])
			}
		})
	}
}

// TestQuantisedOrder compares codes of different scales: far apart reals must be
// ordered as they are.
func TestQuantisedOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := tensor.New(tensor.Int8, 1), tensor.New(tensor.Int8, 1)
		for _, x := range []*tensor.Tensor{a, b} {
			tensor.Of[int8](x)[0] = rapid.Int8().Draw(t, "code")
			x.Quant = &tensor.Quant{Scale: []float32{rapid.Float32Range(0.01, 0.9).Draw(t, "scale")}, Zero: []int64{int64(rapid.Int8().Draw(t, "zero"))}}
		}
		real := func(x *tensor.Tensor) float64 {
			return float64(x.Quant.Scale[0]) * float64(int64(tensor.Of[int8](x)[0])-x.Quant.Zero[0])
		}
		if math.Abs(real(a)-real(b)) < 0.02 {
			t.Skip("too near")
		}
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "LESS"}, a, b)
		if err != nil {
			t.Fatal(err)
		}
		if less := tensor.Of[bool](got[0])[0]; less != (real(a) < real(b)) {
			t.Fatalf("%v < %v gives %v", real(a), real(b), less)
		}
	})
}
