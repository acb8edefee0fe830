package stablehlo

import (
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

var (
	signed   = []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	unsigned = []tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32}
	reals    = []tensor.Type{tensor.Float32, tensor.Float64}
)

func gives(t *testing.T, what, name string, attrs graph.Attrs, out tensor.Type, shape []int, want []float64, tol float64, in ...*tensor.Tensor) {
	t.Helper()
	got, err := run("STABLEHLO_"+name, attrs, []*tensor.Tensor{{Type: out, Shape: shape}}, "", in...)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if why := optest.Differ(got[0], want, tol, tol); why != "" || got[0].Type != out || tensor.FormatShape(got[0].Shape) != tensor.FormatShape(shape) {
		t.Errorf("%s: %v %v, %s", what, got[0].Type, got[0].Shape, why)
	}
}

func refuses(t *testing.T, what, name string, attrs graph.Attrs, out *tensor.Tensor, text string, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := run("STABLEHLO_"+name, attrs, []*tensor.Tensor{out}, "", in...); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

// TestBinaries: operations on integers, on floats and on truth, equal shapes and a
// scalar beside a row.
func TestBinaries(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	a, b := []float64{7, 6, 1, 0, 5}, []float64{2, 3, 1, 4, 0}
	for name, c := range map[string]struct{ whole, real []float64 }{
		"ADD":      {[]float64{9, 9, 2, 4, 5}, []float64{9, 9, 2, 4, 5}},
		"SUBTRACT": {[]float64{5, 3, 0, -4, 5}, []float64{5, 3, 0, -4, 5}},
		"MULTIPLY": {[]float64{14, 18, 1, 0, 0}, []float64{14, 18, 1, 0, 0}},
		// by zero: all bits set
		"DIVIDE":     {[]float64{3, 2, 1, 0, -1}, []float64{3.5, 2, 1, 0, inf}},
		"MAXIMUM":    {[]float64{7, 6, 1, 4, 5}, []float64{7, 6, 1, 4, 5}},
		"MINIMUM":    {[]float64{2, 3, 1, 0, 0}, []float64{2, 3, 1, 0, 0}},
		"POWER":      {[]float64{49, 216, 1, 0, 1}, []float64{49, 216, 1, 0, 1}},
		"REMAINDER":  {[]float64{1, 0, 0, 0, 5}, []float64{1, 0, 0, 0, nan}},
		"AND":        {[]float64{2, 2, 1, 0, 0}, nil},
		"OR":         {[]float64{7, 7, 1, 4, 5}, nil},
		"SHIFT_LEFT": {[]float64{28, 48, 2, 0, 5}, nil},
	} {
		for _, typ := range append(append([]tensor.Type{}, signed...), unsigned...) {
			want := append([]float64{}, c.whole...)
			for i, v := range want {
				switch bits := typ.Bits(); {
				case v < 0 && !typ.IsSigned():
					want[i] = v + math.Ldexp(1, bits)
				case typ == tensor.Int8 && v > 127:
					want[i] = v - 256
				}
			}
			gives(t, name+" of "+typ.String(), name, nil, typ, []int{5}, want, 0, optest.Row(typ, nil, a...), optest.Row(typ, nil, b...))
		}
		for _, typ := range reals {
			if c.real == nil {
				refuses(t, name+" of "+typ.String(), name, nil, &tensor.Tensor{Type: typ, Shape: []int{1}}, "elements of type "+typ.String(), optest.Row(typ, nil, 1), optest.Row(typ, nil, 1))
				continue
			}
			gives(t, name+" of "+typ.String(), name, nil, typ, []int{5}, c.real, 1e-6, optest.Row(typ, nil, a...), optest.Row(typ, nil, b...))
			gives(t, name+" with a scalar", name, nil, typ, []int{2}, []float64{c.real[0], c.real[0]}, 1e-6, optest.Row(typ, nil, 7, 7), optest.Of(typ, nil, []int{}, 2))
		}
		refuses(t, name+" of two types", name, nil, f32([]int{1}, 0), "inputs of types float32 and int32", f32([]int{1}, 1), i32([]int{1}, 1))
		refuses(t, name+" of text", name, nil, f32([]int{1}, 0), "elements of type string", tensor.New(tensor.String, 1), tensor.New(tensor.String, 1))
	}
	x, y := optest.Row(tensor.Bool, nil, 0, 0, 1, 1), optest.Row(tensor.Bool, nil, 0, 1, 0, 1)
	for name, want := range map[string][]float64{"ADD": {0, 1, 1, 1}, "MAXIMUM": {0, 1, 1, 1}, "OR": {0, 1, 1, 1}, "MULTIPLY": {0, 0, 0, 1}, "MINIMUM": {0, 0, 0, 1}, "AND": {0, 0, 0, 1}} {
		gives(t, name+" of truth", name, nil, tensor.Bool, []int{4}, want, 0, x, y)
	}
	for _, name := range []string{"SUBTRACT", "DIVIDE", "POWER", "REMAINDER", "SHIFT_LEFT"} {
		refuses(t, name+" of truth", name, nil, x, "elements of type bool", x, y)
	}
	// Signs: quotients are cut towards zero, remainders have the sign of the first.
	s := func(v ...int32) *tensor.Tensor { return i32([]int{len(v)}, v...) }
	gives(t, "signs", "DIVIDE", nil, tensor.Int32, []int{4}, []float64{-3, -3, 3, 0}, 0, s(-7, 7, -7, -1), s(2, -2, -2, 2))
	gives(t, "signs", "REMAINDER", nil, tensor.Int32, []int{4}, []float64{-1, 1, -1, -1}, 0, s(-7, 7, -7, -1), s(2, -2, -2, 2))
	gives(t, "negative powers", "POWER", nil, tensor.Int32, []int{6}, []float64{1, 1, -1, 0, 0, -8}, 0, s(1, -1, -1, 2, 0, -2), s(-3, -2, -3, -1, -1, 3))
	gives(t, "negative shifts", "SHIFT_LEFT", nil, tensor.Int32, []int{2}, []float64{0, -4}, 0, s(3, -1), s(-1, 2))
}

func TestUnaries(t *testing.T) {
	t.Parallel()
	v := []float64{0.5, 1, 2.25}
	for name, f := range map[string]func(float64) float64{
		"ABS": math.Abs, "CBRT": math.Cbrt, "CEIL": math.Ceil, "FLOOR": math.Floor, "COSINE": math.Cos, "EXPONENTIAL": math.Exp, "LOG": math.Log, "TANH": math.Tanh,
		"NEGATE": func(v float64) float64 { return -v }, "LOGISTIC": func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }, "RSQRT": func(v float64) float64 { return 1 / math.Sqrt(v) },
	} {
		for _, typ := range reals {
			var want []float64
			for _, x := range v {
				want = append(want, f(x))
			}
			gives(t, name, name, nil, typ, []int{3}, want, 1e-6, optest.Row(typ, nil, v...))
		}
		for _, typ := range signed[:3] {
			if name == "ABS" || name == "NEGATE" {
				gives(t, name, name, nil, typ, []int{2}, []float64{f(-3), f(4)}, 0, optest.Row(typ, nil, -3, 4))
			} else {
				refuses(t, name, name, nil, optest.Row(typ, nil, 1), "elements of type "+typ.String(), optest.Row(typ, nil, 1))
			}
		}
	}
	for name, f := range map[string]func(float64) float64{
		"Sin": math.Sin, "Sqrt": math.Sqrt, "Erf": math.Erf, "Log1p": math.Log1p, "Expm1": math.Expm1, "Exp": math.Exp, "Abs": math.Abs, "Neg": func(v float64) float64 { return -v },
		"Softplus": func(v float64) float64 { return math.Log(1 + math.Exp(v)) }, "Softsign": func(v float64) float64 { return v / (1 + math.Abs(v)) },
	} {
		var want []float64
		for _, x := range v {
			want = append(want, f(x))
		}
		out, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "Flex" + name}, optest.Row(tensor.Float32, nil, v...))
		if err != nil {
			t.Fatal(err)
		}
		optest.Near(t, "Flex"+name, out[0], want, 1e-6, 1e-6)
	}
	out, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "FlexSoftplus"}, f32([]int{3}, -2, -800, 800))
	if err != nil {
		t.Fatal(err)
	}
	optest.Near(t, "FlexSoftplus", out[0], []float64{math.Log(1 + math.Exp(-2)), 0, 800}, 1e-6, 1e-6)
	for _, c := range []struct {
		name string
		a, b float64
		want float64
	}{{"Add", 5, 3, 8}, {"AddV2", 5, 3, 8}, {"Sub", 5, 3, 2}, {"Mul", 5, 3, 15}, {"Div", 6, 4, 1.5}, {"RealDiv", 6, 4, 1.5}, {"Maximum", 5, 3, 5}, {"Minimum", 5, 3, 3}, {"Pow", 5, 3, 125}} {
		optest.Exactly(t, c.name, Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "Flex" + c.name}, []int{1}, []float64{c.want}, f32([]int{1}, float32(c.a)), f32([]int{1}, float32(c.b)))
	}
}

func TestCompareSelectClamp(t *testing.T) {
	t.Parallel()
	for direction, want := range map[string][]float64{"EQ": {0, 1, 0}, "NE": {1, 0, 1}, "LT": {1, 0, 0}, "LE": {1, 1, 0}, "GT": {0, 0, 1}, "GE": {0, 1, 1}} {
		for _, long := range []string{"", "STABLEHLO_COMPARISON_DIRECTION_"} {
			attrs := graph.Attrs{"comparison_direction": long + direction}
			for _, typ := range []tensor.Type{tensor.Float32, tensor.Float64, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint32} {
				gives(t, direction+" of "+typ.String(), "COMPARE", attrs, tensor.Bool, []int{3}, want, 0, optest.Row(typ, nil, 1, 2, 3), optest.Row(typ, nil, 2, 2, 2))
			}
			gives(t, direction+" of truth", "COMPARE", attrs, tensor.Bool, []int{2}, want[:2], 0, optest.Row(tensor.Bool, nil, 0, 1), optest.Row(tensor.Bool, nil, 1, 1))
		}
	}
	one := optest.Row(tensor.Int32, nil, 1)
	refuses(t, "direction", "COMPARE", graph.Attrs{"comparison_direction": "UP"}, one, `comparison "UP"`, one, one)
	refuses(t, "no direction", "COMPARE", nil, one, `comparison ""`, one, one)
	refuses(t, "types", "COMPARE", graph.Attrs{"comparison_direction": "EQ"}, one, "elements of type uint16", optest.Row(tensor.Uint16, nil, 1), optest.Row(tensor.Uint16, nil, 1))

	x, y := i32([]int{2}, 1, 2), i32([]int{2}, 3, 4)
	gives(t, "select", "SELECT", nil, tensor.Int32, []int{2}, []float64{3, 2}, 0, optest.Row(tensor.Bool, nil, 0, 1), x, y)
	gives(t, "select of one", "SELECT", nil, tensor.Int32, []int{2}, []float64{3, 4}, 0, optest.Of(tensor.Bool, nil, []int{}, 0), x, y)
	refuses(t, "condition", "SELECT", nil, x, "condition 2", x, x, y)
	refuses(t, "types", "SELECT", nil, x, "choices int32 2 and float32 2", optest.Row(tensor.Bool, nil, 0, 1), x, f32([]int{2}, 1, 2))
	refuses(t, "shapes", "SELECT", nil, x, "choices int32 2 and int32 1", optest.Row(tensor.Bool, nil, 0, 1), x, one)
	refuses(t, "condition's shape", "SELECT", nil, x, "condition 3", optest.Row(tensor.Bool, nil, 0, 1, 0), x, y)

	for _, typ := range []tensor.Type{tensor.Float32, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8} {
		row := func(v ...float64) *tensor.Tensor { return optest.Row(typ, nil, v...) }
		scalar := func(v float64) *tensor.Tensor { return optest.Of(typ, nil, []int{}, v) }
		gives(t, "clamp of "+typ.String(), "CLAMP", nil, typ, []int{3}, []float64{2, 3, 4}, 0, scalar(2), row(1, 3, 9), scalar(4))
		gives(t, "clamp by rows", "CLAMP", nil, typ, []int{3}, []float64{1, 5, 7}, 0, row(0, 5, 2), row(1, 3, 9), row(4, 6, 7))
		gives(t, "clamp by a row and a scalar", "CLAMP", nil, typ, []int{3}, []float64{1, 4, 4}, 0, row(0, 4, 2), row(1, 3, 9), scalar(4))
	}
	f := f32([]int{2}, 1, 2)
	refuses(t, "lower bound", "CLAMP", nil, f, "bound int32 1 for float32 2", one, f, f)
	refuses(t, "upper bound", "CLAMP", nil, f, "bound float32 3 for float32 2", f, f, f32([]int{3}, 1, 2, 3))
	refuses(t, "type", "CLAMP", nil, f, "elements of type uint32", optest.Row(tensor.Uint32, nil, 1), optest.Row(tensor.Uint32, nil, 1), optest.Row(tensor.Uint32, nil, 1))
}

// What moves elements: every refusal, and the edges of what is taken.
func TestMoves(t *testing.T) {
	t.Parallel()
	m := i32([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	list := func(v ...int64) []int64 { return v }
	slice := func(b, e, s []int64) graph.Attrs {
		return graph.Attrs{"start_indices": b, "limit_indices": e, "strides": s}
	}
	gives(t, "slice of all", "SLICE", slice(list(0, 0), list(2, 3), list(1, 1)), tensor.Int32, []int{2, 3}, []float64{1, 2, 3, 4, 5, 6}, 0, m)
	gives(t, "slice of nothing", "SLICE", slice(list(2, 0), list(2, 3), list(1, 1)), tensor.Int32, []int{0, 3}, nil, 0, m)
	gives(t, "steps", "SLICE", slice(list(0, 0), list(2, 3), list(2, 2)), tensor.Int32, []int{1, 2}, []float64{1, 3}, 0, m)
	for what, a := range map[string]graph.Attrs{
		"before the first": slice(list(-1, 0), list(2, 3), list(1, 1)), "beyond the last": slice(list(0, 0), list(3, 3), list(1, 1)),
		"backwards": slice(list(1, 0), list(0, 3), list(1, 1)), "no step": slice(list(0, 0), list(2, 3), list(0, 1)),
	} {
		refuses(t, what, "SLICE", a, m, "of axis 0 of 2x3", m)
	}
	for what, a := range map[string]graph.Attrs{"starts": slice(list(0), list(2, 3), list(1, 1)), "limits": slice(list(0, 0), list(2), list(1, 1)), "strides": slice(list(0, 0), list(2, 3), list(1))} {
		refuses(t, what, "SLICE", a, m, "for rank 2", m)
	}
	broadcast := func(d ...int64) graph.Attrs { return graph.Attrs{"broadcast_dimensions": d} }
	gives(t, "rows", "BROADCAST_IN_DIM", broadcast(0), tensor.Int32, []int{2, 2}, []float64{1, 1, 2, 2}, 0, i32([]int{2}, 1, 2))
	gives(t, "one", "BROADCAST_IN_DIM", broadcast(0), tensor.Int32, []int{2, 2}, []float64{7, 7, 7, 7}, 0, i32([]int{1}, 7))
	gives(t, "turned", "BROADCAST_IN_DIM", broadcast(1, 0), tensor.Int32, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}, 0, m)
	refuses(t, "axes", "BROADCAST_IN_DIM", broadcast(0), m, "axes [0] for shape 2x3", m)
	refuses(t, "axis above", "BROADCAST_IN_DIM", broadcast(0, 2), m, "axis 1 of 2x3 does not become axis 2", m)
	refuses(t, "axis below", "BROADCAST_IN_DIM", broadcast(-1, 1), m, "axis 0 of 2x3 does not become axis -1", m)
	refuses(t, "size", "BROADCAST_IN_DIM", broadcast(1, 0), m, "does not become", m)
	refuses(t, "type", "BROADCAST_IN_DIM", broadcast(0, 1), f32([]int{2, 3}, make([]float32, 6)...), "axes", m)
	refuses(t, "reshape", "RESHAPE", nil, i32([]int{5}, 1, 2, 3, 4, 5), "int32 2x3 cannot become int32 5", m)
	refuses(t, "reshape of another type", "RESHAPE", nil, f32([]int{6}, make([]float32, 6)...), "cannot become float32 6", m)
	refuses(t, "no declared shape", "RESHAPE", nil, &tensor.Tensor{Type: tensor.Int32, Shape: []int{-1}}, "without a static shape", m)
	gives(t, "reshape", "RESHAPE", nil, tensor.Int32, []int{3, 2}, []float64{1, 2, 3, 4, 5, 6}, 0, m)
	for _, axis := range []int64{0, -2} {
		gives(t, "iota", "IOTA", graph.Attrs{"iota_dimension": axis}, tensor.Float32, []int{3, 2}, []float64{0, 0, 1, 1, 2, 2}, 0)
	}
	refuses(t, "iota", "IOTA", graph.Attrs{"iota_dimension": int64(2)}, m, "axis 2")
	pads := func(low, high, between []int64) graph.Attrs {
		return graph.Attrs{"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
	}
	zero := i32(nil, 0)
	refuses(t, "interior", "PAD", pads(list(0, 0), list(0, 0), list(-1, 0)), m, "interior padding -1", m, zero)
	refuses(t, "cut", "PAD", pads(list(-3, 0), list(0, 0), list(0, 0)), m, "axis 0 is cut to -1", m, zero)
	refuses(t, "rank", "PAD", pads(list(0), list(0, 0), list(0, 0)), m, "for rank 2", m, zero)
	refuses(t, "value", "PAD", pads(list(0, 0), list(0, 0), list(0, 0)), m, "for rank 2", m, f32(nil, 0))
	gives(t, "all kinds", "PAD", pads(list(1, 0), list(0, -1), list(0, 1)), tensor.Int32, []int{3, 4}, []float64{9, 9, 9, 9, 1, 9, 2, 9, 4, 9, 5, 9}, 0, m, i32(nil, 9))
	gives(t, "down", "CONCATENATE", graph.Attrs{"dimension": int64(0)}, tensor.Int32, []int{3, 3}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0, m, i32([]int{1, 3}, 7, 8, 9))
	gives(t, "across", "CONCATENATE", graph.Attrs{"dimension": int64(1)}, tensor.Int32, []int{2, 4}, []float64{1, 2, 3, 7, 4, 5, 6, 8}, 0, m, i32([]int{2, 1}, 7, 8))
	at := func(v int32) *tensor.Tensor { return i32(nil, v) }
	for _, c := range []struct {
		y, x int32
		want []float64
	}{{0, 0, []float64{1, 2}}, {1, 1, []float64{5, 6}}, {9, 9, []float64{5, 6}}, {-9, -9, []float64{1, 2}}} {
		gives(t, "window", "DYNAMIC_SLICE", graph.Attrs{"slice_sizes": list(1, 2)}, tensor.Int32, []int{1, 2}, c.want, 0, m, at(c.y), at(c.x))
		y, x := min(max(int(c.y), 0), 1), min(max(int(c.x), 0), 1)
		updated := []float64{1, 2, 3, 4, 5, 6}
		updated[3*y+x], updated[3*y+x+1] = 70, 80
		gives(t, "update", "DYNAMIC_UPDATE_SLICE", nil, tensor.Int32, []int{2, 3}, updated, 0, m, i32([]int{1, 2}, 70, 80), at(c.y), at(c.x))
	}
	refuses(t, "sizes", "DYNAMIC_SLICE", graph.Attrs{"slice_sizes": list(1)}, m, "sizes [1] for rank 2", m, at(0), at(0))
	refuses(t, "too large", "DYNAMIC_SLICE", graph.Attrs{"slice_sizes": list(3, 1)}, m, "sizes [3 1] for shape 2x3", m, at(0), at(0))
	refuses(t, "negative", "DYNAMIC_SLICE", graph.Attrs{"slice_sizes": list(-1, 1)}, m, "sizes [-1 1] for shape 2x3", m, at(0), at(0))
	refuses(t, "starts", "DYNAMIC_SLICE", graph.Attrs{"slice_sizes": list(1, 1)}, m, "1 start indices for rank 2", m, at(0))
	refuses(t, "list of starts", "DYNAMIC_SLICE", graph.Attrs{"slice_sizes": list(1, 1)}, m, "start index 1", m, at(0), i32([]int{2}, 0, 0))
	refuses(t, "update of another type", "DYNAMIC_UPDATE_SLICE", nil, m, "update float32 of int32", m, f32([]int{1, 1}, 0), at(0), at(0))
}
