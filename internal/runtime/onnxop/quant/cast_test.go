package quant

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestCastPairs casts small numbers between all types: values that both can represent must
// survive.
func TestCastPairs(t *testing.T) {
	t.Parallel()
	types := slices.Concat(elem.Numbers, elem.Bools, []tensor.Type{tensor.String}, elem.Float8s, elem.Packed)
	for from := range slices.Values(types) {
		for to := range slices.Values(types) {
			v := make([]float64, 300)
			for i := range v {
				v[i] = float64(i % 2) // every type has 0 and 1
			}
			x := number(from, []int{300}, v...)
			y := run(t, optest.Node{Op: "Cast", Version: 25, Attrs: graph.Attrs{"to": int64(code(to))}}, x)[0]
			if y.Type != to {
				t.Fatalf("%v to %v gives %v", from, to, y.Type)
			}
			if to == tensor.String {
				want := map[bool]string{true: "True", false: "1"}[from == tensor.Bool]
				if from.IsFloat() || from == tensor.String {
					want = "1.0"
				}
				if y.Strings[1] != want {
					t.Errorf("%v to string gives %q, want %q", from, y.Strings[1], want)
				}
				continue
			}
			if diff := cmp.Diff(v, reals(y)); diff != "" {
				t.Errorf("%v to %v: %s", from, to, diff)
			}
		}
	}
}

func TestCastValues(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name     string
		from, to tensor.Type
		attrs    graph.Attrs
		in, want []float64
	}{
		{"truncates", tensor.Float32, tensor.Int32, nil, []float64{-1.9, 1.9, 1e10, nan}, []float64{-1, 1, math.MinInt32, math.MinInt32}},
		{"wraps", tensor.Int32, tensor.Uint8, nil, []float64{300, -1}, []float64{44, 255}},
		{"four bits", tensor.Float32, tensor.Int4, nil, []float64{-8.5, 7.9, 8, 0}, []float64{-8, 7, -8, 0}},
		{"truth", tensor.Float16, tensor.Bool, nil, []float64{0, 0.5, -3, nan}, []float64{0, 1, 1, 1}},
		{"saturates", tensor.Float32, tensor.Float8E4M3FN, nil, []float64{1e6, -inf, 0.3}, []float64{448, -448, 0.3125}},
		{"does not saturate", tensor.Float32, tensor.Float8E5M2, graph.Attrs{"saturate": int64(0)}, []float64{1e6, -1e6}, []float64{inf, -inf}},
		{"power of two down", tensor.Float32, tensor.Float8E8M0, graph.Attrs{"round_mode": "down"}, []float64{3, 4}, []float64{2, 4}},
		{"power of two up", tensor.Float16, tensor.Float8E8M0, nil, []float64{3, 4}, []float64{4, 4}},
		{"double to half once", tensor.Float64, tensor.Float16, nil, []float64{1 + 1./2048 + 1e-12}, []float64{1 + 1./1024}},
		{"large unsigned", tensor.Float64, tensor.Uint64, nil, []float64{1 << 63}, []float64{1 << 63}},
	}
	for _, test := range tests {
		attrs := graph.Attrs{"to": int64(code(test.to))}
		for k, v := range test.attrs {
			attrs[k] = v
		}
		y := run(t, optest.Node{Op: "Cast", Version: 25, Attrs: attrs}, number(test.from, []int{len(test.in)}, test.in...))[0]
		t.Run(test.name, func(t *testing.T) { near(t, reals(y), test.want, 0) })
	}
}

func TestCastStrings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		t    tensor.Type
		v    float64
		want string
	}{
		{tensor.Float32, 1, "1.0"},
		{tensor.Float32, 0.1, "0.1"},
		{tensor.Float32, 1e-5, "1e-05"},
		{tensor.Float32, 1234567, "1.234567e+06"},
		{tensor.Float64, 1e15, "1000000000000000.0"},
		{tensor.Float64, 1e16, "1e+16"},
		{tensor.Float32, math.Inf(-1), "-inf"},
		{tensor.Float16, 0.1, "0.1"},
		{tensor.BFloat16, 3.140625, "3.14"},
	} {
		if got := run(t, optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(8)}}, number(test.t, []int{1}, test.v))[0].Strings[0]; got != test.want {
			t.Errorf("%v %v: %q, want %q", test.t, test.v, got, test.want)
		}
	}
	x := tensor.New(tensor.String, 5)
	copy(x.Strings, []string{"3.14", "-INF", "NaN", "1e3", " 7 "})
	near(t, reals(run(t, optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(1)}}, x)[0]), []float64{3.14, math.Inf(-1), math.NaN(), 1000, 7}, 1e-6)
	x.Strings[0] = "word"
	if _, err := optest.Run(allDefs(), optest.Node{Op: "Cast", Version: 13, Attrs: graph.Attrs{"to": int64(7)}}, x); err == nil || !strings.Contains(err.Error(), `"word" is not a number`) {
		t.Errorf("error %v", err)
	}
	if got := run(t, optest.Node{Op: "Cast", Version: 1, Attrs: graph.Attrs{"to": "INT32"}}, f32([]int{1}, 2.5))[0]; got.Type != tensor.Int32 {
		t.Errorf("cast by name gives %v", got.Type)
	}
}

// TestHalfSigns compares operators that work on the bits of 16-bit floats with the same in
// float64.
func TestHalfSigns(t *testing.T) {
	t.Parallel()
	src := make([]uint16, 1<<16)
	for i := range src {
		src[i] = uint16(i)
	}
	for _, name := range []string{"Relu", "Abs", "Neg"} {
		for _, ty := range []tensor.Type{tensor.Float16, tensor.BFloat16} {
			x := tensor.From(ty, []int{1 << 16}, src)
			want := reals(run(t, optest.Node{Op: name, Version: 14}, number(tensor.Float64, []int{1 << 16}, reals(x)...))[0])
			near(t, reals(run(t, optest.Node{Op: name, Version: 14}, x)[0]), want, 0)
		}
	}
}

// code returns ONNX's number of a type.
func code(t tensor.Type) int {
	for n := range 40 {
		if ty, err := elem.FromCode(n); err == nil && ty == t {
			return n
		}
	}
	return 0
}
