package reduce

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

const (
	f32 = tensor.Float32
	i8  = tensor.Int8
	u8  = tensor.Uint8
	i16 = tensor.Int16
	i32 = tensor.Int32
	i64 = tensor.Int64
)

func axes(v ...float64) *tensor.Tensor { return optest.Row(i32, nil, v...) }

// fold is the definition: the elements that become each output, in order.
func fold(x []float64, shape []int, drop map[int]bool) [][]float64 {
	n := 1
	for d, v := range shape {
		if !drop[d] {
			n *= v
		}
	}
	out := make([][]float64, n)
	for i, v := range x {
		at, step := 0, 1
		for d, r := len(shape)-1, i; d >= 0; d-- {
			if !drop[d] {
				at += r % shape[d] * step
				step *= shape[d]
			}
			r /= shape[d]
		}
		out[at] = append(out[at], v)
	}
	return out
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}

func mean(v []float64) float64 { return sum(v) / float64(len(v)) }

func product(v []float64) float64 {
	p := 1.0
	for _, x := range v {
		p *= x
	}
	return p
}

func best(f func(a, b float64) float64) func(v []float64) float64 {
	return func(v []float64) float64 {
		m := v[0]
		for _, x := range v {
			m = f(m, x)
		}
		return m
	}
}

var cases = []struct {
	shape []int
	axes  []float64
	keep  bool
	out   []int
}{
	{[]int{6}, []float64{0}, false, []int{}},
	{[]int{6}, []float64{0}, true, []int{1}},
	{[]int{2, 3, 4}, []float64{0}, false, []int{3, 4}},
	{[]int{2, 3, 4}, []float64{1}, false, []int{2, 4}},
	{[]int{2, 3, 4}, []float64{-1}, true, []int{2, 3, 1}},
	{[]int{2, 3, 4}, []float64{0, 2}, false, []int{3}},
	{[]int{2, 3, 4}, []float64{0, 2}, true, []int{1, 3, 1}},
	{[]int{2, 3, 4}, []float64{2, -1}, false, []int{2, 3}}, // named twice
	{[]int{2, 3, 4}, nil, false, []int{2, 3, 4}},
	{[]int{2, 3, 4}, []float64{0, 1, 2}, false, []int{}},
	{[]int{}, []float64{0}, false, []int{}},
	{[]int{}, []float64{-1}, true, []int{}},
	{[]int{24, 10, 30}, []float64{1}, false, []int{24, 30}},
	{[]int{4, 9000}, []float64{1}, false, []int{4}},
}

func TestReductions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range cases {
		n, drop := 1, map[int]bool{}
		for _, d := range c.shape {
			n *= d
		}
		for _, a := range c.axes {
			drop[(int(a)+len(c.shape))%max(1, len(c.shape))] = true
		}
		for _, typ := range []tensor.Type{f32, i32, i64, i8, u8, i16} {
			lo, hi := -2, 2
			if typ == u8 {
				lo, hi = 0, 255
			}
			x := make([]float64, n)
			for i := range x {
				x[i] = float64(lo + r.IntN(hi-lo+1))
			}
			for name, f := range map[string]func([]float64) float64{"SUM": sum, "MEAN": mean, "REDUCE_MAX": best(math.Max), "REDUCE_MIN": best(math.Min), "REDUCE_PROD": product} {
				if sums := name == "SUM" || name == "MEAN" || name == "REDUCE_PROD"; sums && typ != f32 && typ != i32 && typ != i64 || name == "REDUCE_PROD" && n > 1000 {
					continue
				}
				var want []float64
				for _, v := range fold(x, c.shape, drop) {
					w := f(v)
					if typ != f32 {
						w = math.Trunc(w) // as integers divide
					}
					want = append(want, w)
				}
				tol := 0.0
				if name == "MEAN" && typ == f32 {
					tol = 1e-6
				}
				out, err := optest.Run(Defs(), optest.Lite(name, graph.Attrs{"keep_dims": c.keep}, typ, nil), optest.Of(typ, nil, c.shape, x...), axes(c.axes...))
				if err != nil {
					t.Fatalf("%s of %v over %v: %v", name, c.shape, c.axes, err)
				}
				if tensor.FormatShape(out[0].Shape) != tensor.FormatShape(c.out) {
					t.Errorf("%s of %v over %v: shape %v, want %v", name, c.shape, c.axes, out[0].Shape, c.out)
				}
				optest.Near(t, name+" of "+typ.String(), out[0], want, tol, 0)
			}
		}
		// Truth.
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(r.IntN(3) / 2)
		}
		for name, f := range map[string]func([]float64) float64{"REDUCE_ANY": best(math.Max), "REDUCE_ALL": best(math.Min)} {
			var want []float64
			for _, v := range fold(x, c.shape, drop) {
				want = append(want, f(v))
			}
			optest.Exactly(t, name, Defs(), optest.Lite(name, graph.Attrs{"keep_dims": c.keep}, tensor.Bool, nil), c.out, want, optest.Of(tensor.Bool, nil, c.shape, x...), axes(c.axes...))
		}
	}
}

// Sums and means of quantised numbers are those of the real ones, with zero points at
// both ends.
func TestQuantised(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range cases {
		n, drop, count := 1, map[int]bool{}, 1
		for _, d := range c.shape {
			n *= d
		}
		for _, a := range c.axes {
			drop[(int(a)+len(c.shape))%max(1, len(c.shape))] = true
		}
		for d := range drop {
			if d < len(c.shape) {
				count *= c.shape[d]
			}
		}
		for _, typ := range []tensor.Type{i8, u8, i16} {
			lo, hi := map[tensor.Type]int{i8: -128, i16: -3000}[typ], map[tensor.Type]int{i8: 127, u8: 255, i16: 3000}[typ]
			for _, z := range [][2]int{{lo, hi}, {hi, lo}, {3, 5}} {
				x := make([]float64, n)
				for i := range x {
					x[i] = float64(lo + r.IntN(hi-lo+1))
				}
				for name, f := range map[string]func([]float64) float64{"SUM": sum, "MEAN": mean} {
					so := 0.25
					if name == "SUM" {
						so = 0.5 * float64(count)
					}
					var want []float64
					for _, v := range fold(x, c.shape, drop) {
						real := make([]float64, len(v))
						for i := range v {
							real[i] = 0.5 * (v[i] - float64(z[0]))
						}
						tlo, thi := float64(lo), float64(hi)
						if typ == i16 {
							tlo, thi = -32768, 32767
						}
						want = append(want, min(max(f(real)/so+float64(z[1]), tlo), thi))
					}
					out, err := optest.Run(Defs(), optest.Lite(name, graph.Attrs{"keep_dims": c.keep}, typ, optest.Affine(int64(z[1]), float32(so))), optest.Of(typ, optest.Affine(int64(z[0]), 0.5), c.shape, x...), axes(c.axes...))
					if err != nil {
						t.Fatal(err)
					}
					optest.Near(t, name+" of "+typ.String(), out[0], want, 0.76, 0) // rounds twice
				}
			}
		}
	}
}

// Nothing has a sum of 0, a product of 1, and extremes at the other end.
func TestOfNothing(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for _, c := range []struct {
		op   string
		typ  tensor.Type
		want float64
	}{
		{"SUM", f32, 0},
		{"SUM", i32, 0},
		{"MEAN", f32, math.NaN()},
		{"MEAN", i32, 0},
		{"REDUCE_PROD", f32, 1},
		{"REDUCE_PROD", i64, 1},
		{"REDUCE_MAX", f32, -inf},
		{"REDUCE_MIN", f32, inf},
		{"REDUCE_MAX", i8, -128},
		{"REDUCE_MIN", i8, 127},
		{"REDUCE_MAX", u8, 0},
		{"REDUCE_MIN", u8, 255},
		{"REDUCE_MIN", i16, 32767},
		{"REDUCE_MAX", i32, math.MinInt32},
		{"REDUCE_ANY", tensor.Bool, 0},
		{"REDUCE_ALL", tensor.Bool, 1},
	} {
		optest.Exactly(t, c.op+" of "+c.typ.String(), Defs(), optest.Lite(c.op, nil, c.typ, nil), []int{2}, []float64{c.want, c.want}, optest.Of(c.typ, nil, []int{2, 0}), axes(1))
	}
}

func TestCumsum(t *testing.T) {
	t.Parallel()
	v := []float64{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		axis               float64
		exclusive, reverse bool
		want               []float64
	}{
		{1, false, false, []float64{1, 3, 6, 4, 9, 15}},
		{-1, true, false, []float64{0, 1, 3, 0, 4, 9}},
		{1, false, true, []float64{6, 5, 3, 15, 11, 6}},
		{1, true, true, []float64{5, 3, 0, 11, 6, 0}},
		{0, false, false, []float64{1, 2, 3, 5, 7, 9}},
		{0, true, false, []float64{0, 0, 0, 1, 2, 3}},
		{-2, false, true, []float64{5, 7, 9, 4, 5, 6}},
	} {
		for _, typ := range []tensor.Type{f32, i32, i64} {
			optest.Exactly(t, typ.String(), Defs(), optest.Lite("CUMSUM", graph.Attrs{"exclusive": c.exclusive, "reverse": c.reverse}, typ, nil), []int{2, 3}, c.want,
				optest.Of(typ, nil, []int{2, 3}, v...), axes(c.axis))
		}
	}
	optest.Exactly(t, "nothing", Defs(), optest.Lite("CUMSUM", nil, f32, nil), []int{2, 0}, nil, optest.Of(f32, nil, []int{2, 0}), axes(1))
	n := optest.Lite("CUMSUM", nil, f32, nil)
	x := optest.Of(f32, nil, []int{2, 3}, v...)
	optest.Refused(t, "no axis", Defs(), n, "input 1 is missing", x)
	optest.Refused(t, "two axes", Defs(), n, "axis that is not one known number", x, axes(0, 1))
	optest.Refused(t, "axis above", Defs(), n, "", x, axes(2))
	optest.Refused(t, "int8", Defs(), optest.Lite("CUMSUM", nil, i8, nil), "int8 input", optest.Of(i8, nil, []int{2}), axes(0))
}

func TestL2Normalization(t *testing.T) {
	t.Parallel()
	n := optest.Lite("L2_NORMALIZATION", nil, f32, nil)
	x := []float64{3, 4, 0, -8, 0, 0}
	optest.Near(t, "rows", one(t, n, optest.Of(f32, nil, []int{3, 2}, x...)), []float64{0.6, 0.8, 0, -1, 0, 0}, 1e-7, 0)
	n.Attrs = graph.Attrs{"fused_activation_function": "RELU"}
	optest.Near(t, "clamped", one(t, n, optest.Of(f32, nil, []int{3, 2}, x...)), []float64{0.6, 0.8, 0, 0, 0, 0}, 1e-7, 0)
	n.Attrs = nil
	// no less than 1e-6 divides
	optest.Near(t, "small", one(t, n, optest.Row(f32, nil, 1e-7, 0)), []float64{0.1, 0}, 1e-7, 0)
	for _, c := range []struct {
		typ        tensor.Type
		zero, mid  int64
		scale      float32
		x          []float64
		lo, hi     float64
		saturation bool
	}{
		{i8, 0, 0, 0.5, []float64{30, 40, 100, -100, 5, 1}, -128, 127, false},
		{i8, -128, 0, 1, []float64{-98, -88, 127, -128, -127, -128}, -128, 127, true},
		{i8, 127, 0, 1, []float64{97, 87, -128, 127, 126, 127}, -128, 127, true},
		{u8, 128, 128, 0.1, []float64{158, 168, 28, 128, 255, 0}, 0, 255, true},
		{u8, 0, 128, 0.1, []float64{30, 40, 0, 9, 255, 255}, 0, 255, true},
		{u8, 255, 128, 0.1, []float64{225, 215, 255, 9, 0, 0}, 0, 255, true},
	} {
		var want []float64
		for r := 0; r < 6; r += 2 {
			a, b := c.x[r]-float64(c.zero), c.x[r+1]-float64(c.zero)
			for _, v := range []float64{a, b} {
				want = append(want, min(max(128*v/math.Hypot(a, b)+float64(c.mid), c.lo), c.hi))
			}
		}
		out := one(t, optest.Lite("L2_NORMALIZATION", nil, c.typ, optest.Affine(c.mid, 1./128)), optest.Of(c.typ, optest.Affine(c.zero, c.scale), []int{3, 2}, c.x...))
		// an integer square root and two roundings
		optest.Near(t, c.typ.String(), out, want, 1.01, 0)
	}
	q := optest.Affine(0, 1)
	optest.Refused(t, "nothing", Defs(), n, "input 0 is missing")
	optest.Refused(t, "output", Defs(), optest.Lite("L2_NORMALIZATION", nil, u8, q), "int8 input with uint8 output", optest.Row(i8, q, 1))
	optest.Refused(t, "int16", Defs(), optest.Lite("L2_NORMALIZATION", nil, i16, q), "int16 input", optest.Row(i16, q, 1))
	optest.Refused(t, "no scale", Defs(), optest.Lite("L2_NORMALIZATION", nil, i8, q), "without quantisation", optest.Row(i8, nil, 1))
	optest.Refused(t, "activation", Defs(), optest.Lite("L2_NORMALIZATION", graph.Attrs{"fused_activation_function": "TANH"}, f32, nil), "fused activation TANH", optest.Row(f32, nil, 1))
}

func one(t *testing.T, n optest.Node, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// x / (bias + alpha · sum of squares of radius channels on each side) ^ beta.
func TestLocalResponse(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		radius            int
		bias, alpha, beta float64
		depth             int
	}{
		{0, 1, 1, 1, 4}, {1, 1, 1, 0.5, 5}, {2, 2, 0.25, 0.75, 7}, {5, 1, 1, 1, 3}, {1, 1, 0, 2, 3}, {1, 0.5, 1, 0, 3}, {math.MaxInt32, 1, 0.5, 1, 4},
	} {
		rows := 700
		x, want := make([]float64, rows*c.depth), make([]float64, rows*c.depth)
		for i := range x {
			x[i] = float64(r.IntN(17) - 8)
		}
		for i := range x {
			s := 0.0
			for k := range c.depth {
				if j := i / c.depth * c.depth; k >= i-j-c.radius && k <= i-j+c.radius {
					s += x[j+k] * x[j+k]
				}
			}
			want[i] = x[i] / math.Pow(c.bias+c.alpha*s, c.beta)
		}
		attrs := graph.Attrs{"radius": int64(c.radius), "bias": float32(c.bias), "alpha": float32(c.alpha), "beta": float32(c.beta)}
		out := one(t, optest.Lite("LOCAL_RESPONSE_NORMALIZATION", attrs, f32, nil), optest.Of(f32, nil, []int{rows / 7, 7, c.depth}, x...))
		optest.Near(t, "normalised", out, want, 0, 1e-6)
	}
	n := optest.Lite("LOCAL_RESPONSE_NORMALIZATION", graph.Attrs{"radius": int64(1), "bias": float32(1)}, f32, nil)
	optest.Exactly(t, "no channels", Defs(), n, []int{2, 0}, nil, optest.Of(f32, nil, []int{2, 0}))
	n.Attrs["radius"] = int64(-1)
	optest.Refused(t, "negative", Defs(), n, "radius -1 is negative", optest.Row(f32, nil, 1))
	optest.Refused(t, "int8", Defs(), optest.Lite("LOCAL_RESPONSE_NORMALIZATION", nil, i8, nil), "int8 input", optest.Row(i8, nil, 1))
	optest.Refused(t, "nothing", Defs(), n, "input 0 is missing")
}

func TestEmbedding(t *testing.T) {
	t.Parallel()
	v := []float64{1, 2, 3, 4, 5, 6}
	rows := axes(2, 0, 2)
	for _, typ := range []tensor.Type{f32, i8, i16, i32, i64} {
		optest.Exactly(t, typ.String(), Defs(), optest.Lite("EMBEDDING_LOOKUP", nil, typ, nil), []int{3, 2}, []float64{5, 6, 1, 2, 5, 6}, rows, optest.Of(typ, nil, []int{3, 2}, v...))
	}
	n := optest.Lite("EMBEDDING_LOOKUP", nil, f32, nil)
	by := &tensor.Quant{Scale: []float32{1, 2, 0.5}, Zero: []int64{0, 0, 1}}
	for _, open := range []bool{false, true} {
		n.Const = []bool{false, !open}
		optest.Exactly(t, "made floats", Defs(), n, []int{3, 2}, []float64{2, 2.5, 1, 2, 2, 2.5}, rows, optest.Of(i8, by, []int{3, 2}, v...))
		optest.Exactly(t, "4 bits", Defs(), n, []int{2}, []float64{6, 8}, optest.Of(i32, nil, []int{}, 1), optest.Of(tensor.Int4, by, []int{3, 2}, v...))
	}
	table := optest.Of(f32, nil, []int{3, 2}, v...)
	optest.Exactly(t, "no rows", Defs(), n, []int{0, 2}, nil, axes(), table)
	optest.Refused(t, "below", Defs(), n, "index -1 is outside a table of 3 rows", axes(0, -1), table)
	optest.Refused(t, "above", Defs(), n, "index 3 is outside a table of 3 rows", axes(3), table)
	optest.Refused(t, "no table", Defs(), n, "input 1 is missing", rows)
	optest.Refused(t, "table of one", Defs(), n, "table has no rows", rows, optest.Of(f32, nil, []int{}))
	optest.Refused(t, "indices", Defs(), n, "int64 indices", optest.Row(i64, nil, 1), table)
	optest.Refused(t, "output", Defs(), optest.Lite("EMBEDDING_LOOKUP", nil, i8, nil), "float32 table with int8 output", rows, table)
	optest.Refused(t, "no scale", Defs(), optest.Lite("EMBEDDING_LOOKUP", nil, f32, nil), "without quantisation", rows, optest.Of(i8, nil, []int{3, 2}))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	q := optest.Affine(0, 1)
	for _, c := range []struct {
		what, op string
		out      tensor.Type
		qo       *tensor.Quant
		text     string
		in       []*tensor.Tensor
	}{
		{"no axes", "SUM", f32, nil, "input 1 is missing", []*tensor.Tensor{optest.Row(f32, nil, 1)}},
		{"axis above", "SUM", f32, nil, "axis 1", []*tensor.Tensor{optest.Row(f32, nil, 1), axes(1)}},
		{"axis below", "REDUCE_MAX", f32, nil, "axis -2", []*tensor.Tensor{optest.Row(f32, nil, 1), axes(-2)}},
		{"axis of a scalar", "SUM", f32, nil, "axis 1", []*tensor.Tensor{optest.Of(f32, nil, []int{}), axes(1)}},
		{"float axes", "REDUCE_PROD", f32, nil, "integers", []*tensor.Tensor{optest.Row(f32, nil, 1), optest.Row(f32, nil, 0)}},
		{"output", "SUM", i32, nil, "float32 input with int32 output", []*tensor.Tensor{optest.Row(f32, nil, 1), axes(0)}},
		{"bytes without scale", "MEAN", i8, nil, "int8 input", []*tensor.Tensor{optest.Row(i8, nil, 1), axes(0)}},
		{"no scale of the output", "MEAN", i8, nil, "without quantisation", []*tensor.Tensor{optest.Row(i8, q, 1), axes(0)}},
		{"extreme of another type", "REDUCE_MIN", i32, nil, "float32 input with int32 output", []*tensor.Tensor{optest.Row(f32, nil, 1), axes(0)}},
		{"extreme of truth", "REDUCE_MAX", tensor.Bool, nil, "bool input", []*tensor.Tensor{optest.Row(tensor.Bool, nil, 1), axes(0)}},
		{"quantised product", "REDUCE_PROD", i32, q, "int32 input", []*tensor.Tensor{optest.Row(i32, q, 1), axes(0)}},
		{"product of bytes", "REDUCE_PROD", i8, nil, "int8 input", []*tensor.Tensor{optest.Row(i8, nil, 1), axes(0)}},
		{"truth of bytes", "REDUCE_ANY", tensor.Bool, nil, "int8 input", []*tensor.Tensor{optest.Row(i8, nil, 1), axes(0)}},
	} {
		optest.Refused(t, c.what, Defs(), optest.Lite(c.op, nil, c.out, c.qo), c.text, c.in...)
	}
}
