package elementwise

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

var (
	signed   = []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	unsigned = []tensor.Type{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}
	reals    = []tensor.Type{tensor.Float32, tensor.Float64}
)

func lists(ls ...[]tensor.Type) (out []tensor.Type) {
	for _, l := range ls {
		out = append(out, l...)
	}
	return out
}

// TestComparisons: every comparison of every type of number, truth and text.
func TestComparisons(t *testing.T) {
	t.Parallel()
	a, b := []float64{1, 2, 3}, []float64{2, 2, 2}
	for name, want := range map[string][]float64{
		"EQUAL": {0, 1, 0}, "NOT_EQUAL": {1, 0, 1}, "LESS": {1, 0, 0}, "LESS_EQUAL": {1, 1, 0}, "GREATER": {0, 0, 1}, "GREATER_EQUAL": {0, 1, 1},
	} {
		n := optest.Lite(name, nil, tensor.Bool, nil)
		for _, typ := range lists(signed, unsigned, reals, []tensor.Type{tensor.Float16, tensor.BFloat16}) {
			optest.Exactly(t, name+" of "+typ.String(), Defs(), n, []int{3}, want, optest.Row(typ, nil, a...), optest.Row(typ, nil, b...))
			optest.Exactly(t, name+" of a row of "+typ.String(), Defs(), n, []int{3}, want, optest.Row(typ, nil, a...), optest.Of(typ, nil, []int{}, 2))
		}
		optest.Exactly(t, name+" of text", Defs(), n, []int{3}, want, words("a", "b", "c"), words("b", "b", "b"))
		optest.Exactly(t, name+" of truth", Defs(), n, []int{2}, []float64{want[0], want[1]}, truth([]int{2}, 0, 1), truth([]int{2}, 1, 1))
		optest.Refused(t, name+" of complex numbers", Defs(), n, "complex64", tensor.New(tensor.Complex64, 1), tensor.New(tensor.Complex64, 1))
		optest.Refused(t, name+" of two types", Defs(), n, "inputs of types int32 and int64", optest.Row(tensor.Int32, nil, 1), optest.Row(tensor.Int64, nil, 1))
		optest.Refused(t, name+" of one", Defs(), n, "input 1 is missing", optest.Row(tensor.Int32, nil, 1))
	}
	// Signs count where there are any.
	for _, typ := range lists(signed, reals) {
		optest.Exactly(t, "LESS of "+typ.String(), Defs(), optest.Lite("LESS", nil, tensor.Bool, nil), []int{2}, []float64{1, 0}, optest.Row(typ, nil, -1, 1), optest.Row(typ, nil, 1, -1))
	}
	nan := math.NaN()
	for name, want := range map[string]float64{"EQUAL": 0, "NOT_EQUAL": 1, "LESS": 0, "GREATER_EQUAL": 0} {
		optest.Exactly(t, name+" of NaN", Defs(), optest.Lite(name, nil, tensor.Bool, nil), []int{1}, []float64{want}, optest.Row(tensor.Float32, nil, nan), optest.Row(tensor.Float32, nil, nan))
	}
}

// Codes of different scales or zero points stand for numbers, which are compared; those
// of the same, and those of a channel each, are compared as they are.
func TestScaledComparisons(t *testing.T) {
	t.Parallel()
	q := func(zero int64, scale ...float32) *tensor.Quant { return optest.Affine(zero, scale...) }
	for _, c := range []struct {
		name   string
		typ    tensor.Type
		qa, qb *tensor.Quant
		a, b   []float64
		less   []float64
		equal  []float64
	}{
		{"alike", tensor.Int8, q(3, 0.5), q(3, 0.5), []float64{-128, 5, 6}, []float64{127, 5, 5}, []float64{1, 0, 0}, []float64{0, 1, 0}},
		{"scales", tensor.Int8, q(0, 1), q(0, 0.5), []float64{1, 1, 2, -3}, []float64{2, 3, 3, -7}, []float64{0, 1, 0, 0}, []float64{1, 0, 0, 0}},
		{"zero points at both ends", tensor.Int8, q(-128, 0.5), q(127, 0.5), []float64{-128, -127}, []float64{127, 126}, []float64{0, 0}, []float64{1, 0}},
		{"unsigned", tensor.Uint8, q(255, 0.25), q(0, 0.25), []float64{255, 254, 0}, []float64{0, 0, 255}, []float64{0, 1, 1}, []float64{1, 0, 0}},
		{"unsigned, above 127", tensor.Uint8, q(0, 1), q(0, 0.5), []float64{200, 100}, []float64{255, 200}, []float64{0, 0}, []float64{0, 1}},
		{"by channel", tensor.Int8, q(0, 1, 2), q(0, 0.5, 1), []float64{1, 2}, []float64{2, 2}, []float64{1, 0}, []float64{0, 1}},
		{"one has none", tensor.Int8, q(0, 1), nil, []float64{1, 2}, []float64{2, 2}, []float64{1, 0}, []float64{0, 1}},
	} {
		a, b := optest.Row(c.typ, c.qa, c.a...), optest.Row(c.typ, c.qb, c.b...)
		optest.Exactly(t, c.name+", less", Defs(), optest.Lite("LESS", nil, tensor.Bool, nil), []int{len(c.a)}, c.less, a, b)
		optest.Exactly(t, c.name+", greater", Defs(), optest.Lite("GREATER", nil, tensor.Bool, nil), []int{len(c.a)}, c.less, b, a)
		optest.Exactly(t, c.name+", equal", Defs(), optest.Lite("EQUAL", nil, tensor.Bool, nil), []int{len(c.a)}, c.equal, a, b)
	}
}

func TestLogic(t *testing.T) {
	t.Parallel()
	a, b := truth([]int{4}, 0, 0, 1, 1), truth([]int{4}, 0, 1, 0, 1)
	for name, want := range map[string][]float64{"LOGICAL_AND": {0, 0, 0, 1}, "LOGICAL_OR": {0, 1, 1, 1}, "BITWISE_XOR": {0, 1, 1, 0}} {
		optest.Exactly(t, name, Defs(), optest.Lite(name, nil, tensor.Bool, nil), []int{4}, want, a, b)
	}
	optest.Exactly(t, "LOGICAL_NOT", Defs(), optest.Lite("LOGICAL_NOT", nil, tensor.Bool, nil), []int{4}, []float64{1, 1, 0, 0}, a)
	one := optest.Row(tensor.Int32, nil, 1)
	for _, name := range []string{"LOGICAL_AND", "LOGICAL_OR"} {
		optest.Refused(t, name, Defs(), optest.Lite(name, nil, tensor.Bool, nil), "elements of type int32", one, one)
	}
	optest.Refused(t, "LOGICAL_NOT", Defs(), optest.Lite("LOGICAL_NOT", nil, tensor.Bool, nil), "elements of type int32", one)
	optest.Refused(t, "nothing", Defs(), optest.Lite("LOGICAL_NOT", nil, tensor.Bool, nil), "input 0 is missing")
}

func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for _, typ := range lists(signed, reals[:1]) {
		row := func(v ...float64) *tensor.Tensor { return optest.Row(typ, nil, v...) }
		optest.Exactly(t, "quotients", Defs(), optest.Lite("FLOOR_DIV", nil, typ, nil), []int{6}, []float64{3, -4, -4, 3, 2, 0}, row(7, -7, 7, -7, 6, 1), row(2, 2, -2, -2, 3, 9))
		optest.Exactly(t, "remainders", Defs(), optest.Lite("FLOOR_MOD", nil, typ, nil), []int{6}, []float64{1, 1, -1, -1, 0, 1}, row(7, -7, 7, -7, 6, 1), row(2, 2, -2, -2, 3, 9))
	}
	u8 := func(v ...float64) *tensor.Tensor { return optest.Row(tensor.Uint8, nil, v...) }
	optest.Exactly(t, "unsigned", Defs(), optest.Lite("FLOOR_DIV", nil, tensor.Uint8, nil), []int{2}, []float64{127, 0}, u8(255, 1), u8(2, 200))
	optest.Exactly(t, "unsigned", Defs(), optest.Lite("FLOOR_MOD", nil, tensor.Uint8, nil), []int{2}, []float64{1, 1}, u8(255, 1), u8(2, 200))
	optest.Exactly(t, "fractions", Defs(), optest.Lite("FLOOR_DIV", nil, tensor.Float32, nil), []int{2}, []float64{-2, math.Inf(1)}, f32([]int{2}, -2.5, 1), f32([]int{2}, 2, 0))
	for _, typ := range lists(signed, unsigned[:1]) {
		for _, name := range []string{"FLOOR_DIV", "FLOOR_MOD"} {
			optest.Refused(t, name, Defs(), optest.Lite(name, nil, typ, nil), "division by zero", optest.Row(typ, nil, 4, 5), optest.Row(typ, nil, 2, 0))
		}
	}
	for _, name := range []string{"FLOOR_DIV", "FLOOR_MOD", "POW", "ATAN2"} {
		optest.Refused(t, name, Defs(), optest.Lite(name, nil, tensor.Uint16, nil), "elements of type uint16", optest.Row(tensor.Uint16, nil, 1), optest.Row(tensor.Uint16, nil, 1))
	}
	for _, name := range []string{"RIGHT_SHIFT", "BITWISE_XOR"} {
		optest.Refused(t, name, Defs(), optest.Lite(name, nil, tensor.Float32, nil), "elements of type float32", f32([]int{1}, 1), f32([]int{1}, 1))
	}
	// A sign fills what is shifted in; a count beyond the width is all of it, below zero none.
	for _, typ := range signed {
		row := func(v ...float64) *tensor.Tensor { return optest.Row(typ, nil, v...) }
		optest.Exactly(t, "shift of "+typ.String(), Defs(), optest.Lite("RIGHT_SHIFT", nil, typ, nil), []int{6}, []float64{4, -4, -1, 0, 8, -1}, row(8, -8, -1, 8, 8, -8), row(1, 1, 3, 99, -2, 99))
		optest.Exactly(t, "xor of "+typ.String(), Defs(), optest.Lite("BITWISE_XOR", nil, typ, nil), []int{2}, []float64{5, -2}, row(6, -1), row(3, 1))
	}
	for _, typ := range unsigned {
		row := func(v ...float64) *tensor.Tensor { return optest.Row(typ, nil, v...) }
		optest.Exactly(t, "shift of "+typ.String(), Defs(), optest.Lite("RIGHT_SHIFT", nil, typ, nil), []int{3}, []float64{100, 1, 1}, row(200, 200, 128), row(1, 7, 7))
		optest.Exactly(t, "xor of "+typ.String(), Defs(), optest.Lite("BITWISE_XOR", nil, typ, nil), []int{2}, []float64{5, 255}, row(6, 254), row(3, 1))
	}
	optest.Exactly(t, "powers", Defs(), optest.Lite("POW", nil, tensor.Int32, nil), []int{5}, []float64{1, 1, 243, -243, 0}, i32([]int{5}, 7, 0, 3, -3, 65536), i32([]int{5}, 0, 0, 5, 5, 2))
	optest.Refused(t, "negative", Defs(), optest.Lite("POW", nil, tensor.Int32, nil), "negative exponent", i32([]int{2}, 7, 0), i32([]int{2}, 0, -1))
	optest.Exactly(t, "real powers", Defs(), optest.Lite("POW", nil, tensor.Float32, nil), []int{4}, []float64{9, 0.125, 3, 1}, f32([]int{4}, -3, 2, 9, 5), f32([]int{4}, 2, -3, 0.5, 0))
	for _, typ := range reals {
		row := func(v ...float64) *tensor.Tensor { return optest.Row(typ, nil, v...) }
		out, err := optest.Run(Defs(), optest.Lite("ATAN2", nil, typ, nil), row(1, 1, -1, 0), row(1, -1, 0, -1))
		if err != nil {
			t.Fatal(err)
		}
		optest.Near(t, "angles", out[0], []float64{math.Pi / 4, 3 * math.Pi / 4, -math.Pi / 2, math.Pi}, 1e-6, 0)
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, typ := range lists(signed, unsigned, reals, []tensor.Type{tensor.Bool}) {
		x, y := optest.Of(typ, nil, []int{2, 2}, 1, 0, 1, 0), optest.Of(typ, nil, []int{2, 2}, 0, 1, 0, 1)
		for _, name := range []string{"SELECT", "SELECT_V2"} {
			n := optest.Lite(name, nil, typ, nil)
			optest.Exactly(t, name, Defs(), n, []int{2, 2}, []float64{1, 1, 0, 0}, truth([]int{2, 2}, 1, 0, 0, 1), x, y)
			optest.Exactly(t, name+" of one", Defs(), n, []int{2, 2}, []float64{0, 1, 0, 1}, truth([]int{}, 0), x, y)
		}
		// A vector chooses rows in the older operator and columns in the newer one.
		optest.Exactly(t, "rows", Defs(), optest.Lite("SELECT", nil, typ, nil), []int{2, 2}, []float64{1, 0, 0, 1}, truth([]int{2}, 1, 0), x, y)
		optest.Exactly(t, "columns", Defs(), optest.Lite("SELECT_V2", nil, typ, nil), []int{2, 2}, []float64{1, 1, 1, 1}, truth([]int{2}, 1, 0), x, y)
	}
	n := optest.Lite("SELECT_V2", nil, tensor.Int32, nil)
	optest.Refused(t, "condition", Defs(), n, "condition of type int32", i32([]int{1}, 1), i32([]int{1}, 1), i32([]int{1}, 1))
	optest.Refused(t, "types", Defs(), n, "choices of types int32 and float32", truth([]int{1}, 1), i32([]int{1}, 1), f32([]int{1}, 1))
	optest.Refused(t, "shapes", Defs(), n, "", truth([]int{1}, 1), i32([]int{2}, 1, 2), i32([]int{3}, 1, 2, 3))
	optest.Refused(t, "two inputs", Defs(), n, "input 2 is missing", truth([]int{1}, 1), i32([]int{1}, 1))
}

// TestCasts: between all types of numbers; fractions are cut off, integers wrap.
func TestCasts(t *testing.T) {
	t.Parallel()
	all := lists(signed, unsigned, reals, []tensor.Type{tensor.Float16, tensor.BFloat16})
	for _, from := range all {
		for _, to := range all {
			optest.Exactly(t, from.String()+" to "+to.String(), Defs(), optest.Lite("CAST", nil, to, nil), []int{3}, []float64{0, 1, 100}, optest.Row(from, nil, 0, 1, 100))
		}
		optest.Exactly(t, from.String()+" to truth", Defs(), optest.Lite("CAST", nil, tensor.Bool, nil), []int{3}, []float64{0, 1, 1}, optest.Row(from, nil, 0, 1, 100))
		optest.Exactly(t, "truth to "+from.String(), Defs(), optest.Lite("CAST", nil, from, nil), []int{2}, []float64{0, 1}, truth([]int{2}, 0, 1))
		// The imaginary part is dropped, or zero.
		z := tensor.From(tensor.Complex64, []int{2}, []complex64{3 + 4i, 5})
		optest.Exactly(t, "complex to "+from.String(), Defs(), optest.Lite("CAST", nil, from, nil), []int{2}, []float64{3, 5}, z)
		out, err := optest.Run(Defs(), optest.Lite("CAST", nil, tensor.Complex64, nil), optest.Row(from, nil, 3, 5))
		if err != nil || tensor.Of[complex64](out[0])[0] != 3 || tensor.Of[complex64](out[0])[1] != 5 {
			t.Errorf("%v to complex numbers: %v, %v", from, out, err)
		}
	}
	out, err := optest.Run(Defs(), optest.Lite("CAST", nil, tensor.Complex64, nil), tensor.From(tensor.Complex64, []int{1}, []complex64{3 + 4i}))
	if err != nil || tensor.Of[complex64](out[0])[0] != 3+4i {
		t.Errorf("complex to complex: %v, %v", out, err)
	}
	optest.Exactly(t, "out of range", Defs(), optest.Lite("CAST", nil, tensor.Int8, nil), []int{3}, []float64{127, -128, -1}, f32([]int{3}, 300, -300, -1.9))
	optest.Refused(t, "text", Defs(), optest.Lite("CAST", nil, tensor.Int8, nil), "from string to int8", words("1"))
	optest.Refused(t, "to text", Defs(), optest.Lite("CAST", nil, tensor.String, nil), "from int32 to string", i32([]int{1}, 1))
	optest.Refused(t, "complex to text", Defs(), optest.Lite("CAST", nil, tensor.String, nil), "from complex64 to string", tensor.New(tensor.Complex64, 1))
	optest.Refused(t, "nowhere", Defs(), optest.Lite("CAST", nil, tensor.Invalid, nil), "undeclared type", i32([]int{1}, 1))
	optest.Refused(t, "nothing", Defs(), optest.Lite("CAST", nil, tensor.Int8, nil), "input 0 is missing")
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"LOGICAL_AND": 1, "LOGICAL_OR": 1, "LOGICAL_NOT": 1, "SELECT": 1, "SELECT_V2": 1, "FLOOR_DIV": 6, "FLOOR_MOD": 6, "POW": 2, "ATAN2": 2, "RIGHT_SHIFT": 8, "BITWISE_XOR": 9,
	}
	for _, d := range Defs() {
		if len(d.Types) != want[d.Name] || d.Domain != graph.TFLite {
			t.Errorf("%s %s lists %v", d.Domain, d.Name, d.Types)
		}
	}
}
