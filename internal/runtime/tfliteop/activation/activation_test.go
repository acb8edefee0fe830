package activation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

var inf = math.Inf(1)

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func clamp(lo, hi float64) func(float64) float64 {
	return func(x float64) float64 { return min(max(x, lo), hi) }
}

func leaky(alpha float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < 0 {
			return alpha * x
		}
		return x
	}
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// functions are the definitions in real numbers.
var functions = []struct {
	name  string
	attrs graph.Attrs
	f     func(float64) float64
	// out8 and out16 are the scales that the format prescribes for the output, 0 for none.
	out8, out16 float32
	zero8       int64
	positive    bool // defined for positive numbers
	// slack is the allowed error of the integer method, in steps of the output: half a step if a
	// table is computed from real numbers, more if it rounds twice.
	slack float64
	types []tensor.Type
}{
	{name: "RELU", f: clamp(0, inf), slack: 0.51},
	{name: "RELU6", f: clamp(0, 6), slack: 0.51},
	{name: "RELU_N1_TO_1", f: clamp(-1, 1), slack: 0.51},
	{name: "RELU_0_TO_1", f: clamp(0, 1), slack: 0.51},
	{name: "LEAKY_RELU", attrs: graph.Attrs{"alpha": float32(0.25)}, f: leaky(0.25), slack: 0.76},
	{name: "LEAKY_RELU", f: leaky(0), slack: 0.76},
	{name: "LOGISTIC", f: logistic, out8: 1. / 256, zero8: -128, out16: 1. / 32768, slack: 1.01},
	{name: "TANH", f: math.Tanh, out8: 1. / 128, out16: 1. / 32768, slack: 1.01},
	{name: "GELU", f: func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }, slack: 0.51},
	{name: "GELU", attrs: graph.Attrs{"approximate": true}, f: func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}, slack: 0.51},
	{name: "HARD_SWISH", f: func(x float64) float64 { return x * clamp(0, 6)(x+3) / 6 }, slack: 1.1, types: []tensor.Type{tensor.Int8, tensor.Uint8}},
	{name: "EXP", f: math.Exp, slack: 0.51},
	{name: "LOG", f: math.Log, positive: true, slack: 0.51},
	{name: "SQRT", f: math.Sqrt, positive: true, slack: 0.51},
	{name: "RSQRT", f: func(x float64) float64 { return 1 / math.Sqrt(x) }, positive: true, slack: 1.01},
	{name: "SIN", f: math.Sin, slack: 0.51},
	{name: "COS", f: math.Cos, slack: 0.51},
	{name: "FLOOR", f: math.Floor, slack: 0.51},
	{name: "CEIL", f: math.Ceil, slack: 0.51},
	{name: "ROUND", f: math.RoundToEven, slack: 0.51},
	{name: "SQUARE", f: func(x float64) float64 { return x * x }, slack: 0.51},
	{name: "NEG", f: func(x float64) float64 { return -x }, slack: 0.51},
	{name: "ABS", f: math.Abs, slack: 0.51},
	{name: "SIGN", f: sign, slack: 0.51},
	{name: "ELU", f: func(x float64) float64 {
		if x < 0 {
			return math.Expm1(x)
		}
		return x
	}, slack: 0.51},
}

func one(t *testing.T, n optest.Node, x ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := optest.Run(Defs(), n, x...)
	if err != nil {
		t.Fatalf("%s of %v: %v", n.Op, x[0].Type, err)
	}
	return out[0]
}

func TestFloats(t *testing.T) {
	t.Parallel()
	for _, fn := range functions {
		var v, want []float64
		for x := -9.0; x <= 9; x += 0.0625 {
			if x > 0 || !fn.positive {
				v, want = append(v, x), append(want, fn.f(x))
			}
		}
		// More than a worker's share, so that every worker's part is tested.
		for len(v) < 40000 {
			v, want = append(v, v...), append(want, want...)
		}
		x := optest.Of(tensor.Float32, nil, []int{2, len(v) / 2}, v...)
		y := one(t, optest.Lite(fn.name, fn.attrs, tensor.Float32, nil), x)
		if len(y.Shape) != 2 || y.Shape[1] != len(v)/2 {
			t.Errorf("%s: shape %v", fn.name, y.Shape)
		}
		optest.Near(t, fn.name, y, want, 2e-7, 2e-6) // a few roundings of float32
	}
}

// TestQuantised checks every 8-bit value, and many 16-bit ones, by dequantising, computing in
// real numbers and quantising: with zero points in the middle and at both ends of the type, and
// an output that saturates.
func TestQuantised(t *testing.T) {
	t.Parallel()
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Uint8, tensor.Int16} {
		lo, hi := map[tensor.Type]float64{tensor.Int8: -128, tensor.Int16: -32768}[typ], map[tensor.Type]float64{tensor.Int8: 127, tensor.Uint8: 255, tensor.Int16: 32767}[typ]
		var stored []float64
		for q := lo; q <= hi; q += max(1, math.Floor((hi-lo)/1000)) {
			stored = append(stored, q)
		}
		stored = append(stored, hi)
		for _, zi := range []float64{lo, math.Floor((lo + hi) / 2), hi} {
			for _, zo := range []float64{lo, math.Floor((lo + hi) / 2), hi} {
				for _, fn := range functions {
					si, so := float32(16/(hi-lo)), float32(9/(hi-lo))
					zi := zi
					zo := zo
					if typ == tensor.Int16 {
						zi, zo = 0, 0 // the format knows no other
					}
					slack := fn.slack
					if fn.out8 != 0 && typ == tensor.Int8 {
						so, zo = fn.out8, float64(fn.zero8)
					}
					if typ == tensor.Int16 {
						slack += 5 // straight lines between 513 points of a table
						if fn.out16 != 0 {
							so = fn.out16
							slack = 8
						}
					}
					if fn.types != nil && typ != fn.types[0] && typ != fn.types[1] {
						continue
					}
					if typ == tensor.Int16 && (fn.positive || fn.name == "SIGN" || fn.name == "FLOOR" || fn.name == "CEIL" || fn.name == "ROUND" || fn.name == "EXP") {
						continue // a jump or a steep part between two points of the table
					}
					x := optest.Row(typ, optest.Affine(int64(zi), si), stored...)
					y := one(t, optest.Lite(fn.name, fn.attrs, typ, optest.Affine(int64(zo), so)), x)
					for i, q := range stored {
						r := float64(si) * (q - zi)
						if fn.positive && r <= 0 {
							continue
						}
						exact := fn.f(r)/float64(so) + zo
						want := min(max(exact, lo), hi)
						if typ == tensor.Int16 && exact > 0.95*hi && exact < 1.05*hi && fn.out16 == 0 {
							continue // the table bends where the type ends
						}
						// Near a discontinuity the rounding of the input decides.
						if d := math.Abs(fn.f(r*(1+1e-6))-fn.f(r*(1-1e-6))) / float64(so); d > 1 {
							continue
						}
						if got := tensor.At(y, i); !(math.Abs(got-want) <= slack) {
							t.Errorf("%s of %v %v (zero %v) to zero %v: %v, want %v", fn.name, typ, q, zi, zo, got, want)
							break
						}
					}
				}
			}
		}
	}
}

// TestOutsideDomain: numbers without a logarithm or root get the end of the range.
func TestOutsideDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op       string
		typ      tensor.Type
		x        []float64
		zi, zo   int64
		want     []float64
		scaleOut float32
	}{
		{"LOG", tensor.Int8, []float64{-128, -1, 0, 1}, 0, 10, []float64{-128, -128, -128, 10}, 1},
		{"LOG", tensor.Uint8, []float64{0, 5, 6}, 5, 20, []float64{0, 0, 20}, 1},
		{"RSQRT", tensor.Int8, []float64{-128, 0, 1, 4, 16}, 0, -100, []float64{127, 127, -96, -98, -99}, 0.25},
	} {
		optest.Exactly(t, c.op, Defs(), optest.Lite(c.op, nil, c.typ, optest.Affine(c.zo, c.scaleOut)), []int{len(c.x)}, c.want, optest.Row(c.typ, optest.Affine(c.zi, 1), c.x...))
	}
}

func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	v := []float64{-5, -1, 0, 1, 7}
	for name, want := range map[string][]float64{
		"SQUARE": {25, 1, 0, 1, 49},
		"NEG":    {5, 1, 0, -1, -7},
		"ABS":    {5, 1, 0, 1, 7},
		"SIGN":   {-1, -1, 0, 1, 1},
	} {
		for _, typ := range []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64} {
			optest.Exactly(t, name+" "+typ.String(), Defs(), optest.Lite(name, nil, typ, nil), []int{5}, want, optest.Row(typ, nil, v...))
		}
	}
	optest.Refused(t, "EXP of int32", Defs(), optest.Lite("EXP", nil, tensor.Int32, nil), "int32 input", optest.Row(tensor.Int32, nil, v...))
	optest.Refused(t, "NEG of uint8", Defs(), optest.Lite("NEG", nil, tensor.Uint8, nil), "uint8 input", optest.Row(tensor.Uint8, nil, 1))
}

func TestFloatEdges(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	v := []float64{-inf, -0.5, 0, 0.5, 1, 1.5, 2.5, 6, 7, inf, nan}
	for name, want := range map[string][]float64{
		"RELU":         {0, 0, 0, 0.5, 1, 1.5, 2.5, 6, 7, inf, nan},
		"RELU6":        {0, 0, 0, 0.5, 1, 1.5, 2.5, 6, 6, 6, nan},
		"RELU_N1_TO_1": {-1, -0.5, 0, 0.5, 1, 1, 1, 1, 1, 1, nan},
		"RELU_0_TO_1":  {0, 0, 0, 0.5, 1, 1, 1, 1, 1, 1, nan},
		"ROUND":        {-inf, 0, 0, 0, 1, 2, 2, 6, 7, inf, nan}, // halves to even
		"SIGN":         {-1, -1, 0, 1, 1, 1, 1, 1, 1, 1, nan},
		"ABS":          {inf, 0.5, 0, 0.5, 1, 1.5, 2.5, 6, 7, inf, nan},
	} {
		optest.Exactly(t, name, Defs(), optest.Lite(name, nil, tensor.Float32, nil), []int{11}, want, optest.Row(tensor.Float32, nil, v...))
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	q := optest.Affine(0, 1)
	i8, u8, i16, i32, f32 := tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Float32
	for _, c := range []struct {
		op      string
		in, out tensor.Type
		qi, qo  *tensor.Quant
		text    string
	}{
		{"RELU", i32, i32, q, q, "int32 input"},
		{"RELU", tensor.Int64, tensor.Int64, q, q, "int64 input"},
		{"RELU", i8, u8, q, q, "int8 input with uint8 output"},
		{"RELU", i8, i8, nil, q, "without quantisation"},
		{"RELU", i8, i8, q, nil, "without quantisation"},
		{"LEAKY_RELU", i8, i8, nil, q, "without quantisation"},
		{"LEAKY_RELU", i32, i32, q, q, "int32 input"},
		{"LOGISTIC", i16, i8, q, q, "int16 input with int8 output"},
		{"LOGISTIC", i16, i16, nil, q, "without quantisation"},
		{"LOGISTIC", i8, i8, nil, q, "without quantisation"},
		{"LOGISTIC", i32, i32, q, q, "int32 input"},
		{"TANH", i32, i32, q, q, "int32 input"},
		{"HARD_SWISH", i16, i16, q, q, "int16 input"},
		{"HARD_SWISH", i8, i8, q, nil, "without quantisation"},
		{"EXP", f32, i8, nil, q, "float32 input with int8 output"},
		{"EXP", i8, i8, nil, nil, "int8 input"},
		{"EXP", i32, i32, q, q, "quantised int32 input"},
		{"EXP", i8, i8, q, nil, "without quantisation"},
		{"ABS", i32, i32, q, q, "int32 input"},
		{"ABS", i8, i8, q, nil, "without quantisation"},
		{"LOG", i8, i8, q, nil, "without quantisation"},
		{"RSQRT", i8, i8, nil, q, "without quantisation"},
		{"SOFTMAX", i8, u8, q, q, "int8 input with uint8 output"},
		{"SOFTMAX", i8, i8, nil, q, "without quantisation"},
		{"SOFTMAX", i16, i16, nil, q, "without quantisation"},
		{"SOFTMAX", i32, i32, q, q, "int32 input"},
		{"LOG_SOFTMAX", i8, u8, q, q, "int8 input with uint8 output"},
		{"LOG_SOFTMAX", i16, i16, q, q, "int16 input"},
		{"LOG_SOFTMAX", i8, i8, q, nil, "without quantisation"},
	} {
		x := optest.Row(c.in, c.qi, 1, 2)
		optest.Refused(t, c.op, Defs(), optest.Lite(c.op, nil, c.out, c.qo), c.text, x)
	}
	optest.Refused(t, "no input", Defs(), optest.Lite("RELU", nil, f32, nil), "input 0 is missing")
	optest.Refused(t, "no slope", Defs(), optest.Lite("PRELU", nil, f32, nil), "input 1 is missing", optest.Row(f32, nil, 1))
	optest.Refused(t, "slopes that do not fit", Defs(), optest.Lite("PRELU", nil, f32, nil), "", optest.Row(f32, nil, 1, 2), optest.Row(f32, nil, 1, 2, 3))
	optest.Refused(t, "slope of another type", Defs(), optest.Lite("PRELU", nil, i8, q), "int8 input with float32 slope", optest.Row(i8, q, 1), optest.Row(f32, nil, 1))
	optest.Refused(t, "int16 PRELU", Defs(), optest.Lite("PRELU", nil, i16, q), "int16 input", optest.Row(i16, q, 1), optest.Row(i16, q, 1))
	optest.Refused(t, "PRELU without scales", Defs(), optest.Lite("PRELU", nil, i8, nil), "without quantisation", optest.Row(i8, q, 1), optest.Row(i8, q, 1))
}

// TestPrelu uses a slope for each channel, broadcast over the other axes.
func TestPrelu(t *testing.T) {
	t.Parallel()
	v := []float64{-4, -4, 4, 2, -2, 0}
	f := tensor.Float32
	optest.Exactly(t, "float", Defs(), optest.Lite("PRELU", nil, f, nil), []int{1, 3, 2}, []float64{-2, 1, 4, 2, -1, 0},
		optest.Of(f, nil, []int{1, 3, 2}, v...), optest.Of(f, nil, []int{1, 1, 2}, 0.5, -0.25))
	// Scales 1/2 · 1/4 to 1/8: a negative product counts as it is, a positive number times 4.
	for _, c := range []struct {
		typ        tensor.Type
		zx, za, zo int64
		x, a, want []float64
	}{
		{tensor.Int8, 0, 0, 0, []float64{-8, -8, 8, 4, -4, 0}, []float64{2, -1}, []float64{-16, 8, 32, 16, -8, 0}},
		{tensor.Int8, -128, 127, -128, []float64{-128, -127, -100, -28, -128, -120}, []float64{126, 0}, []float64{-128, -124, -16, 127, -128, -96}},
		{tensor.Int8, 127, -128, 127, []float64{127, 126, 120, 119, 107, 126}, []float64{-126, -127}, []float64{127, 126, 113, 119, 87, 126}},
		{tensor.Uint8, 10, 3, 100, []float64{10, 9, 11, 0, 255, 7}, []float64{5, 2}, []float64{100, 101, 104, 110, 255, 103}},
	} {
		optest.Exactly(t, c.typ.String(), Defs(), optest.Lite("PRELU", nil, c.typ, optest.Affine(c.zo, 0.125)), []int{3, 2}, c.want,
			optest.Of(c.typ, optest.Affine(c.zx, 0.5), []int{3, 2}, c.x...), optest.Row(c.typ, optest.Affine(c.za, 0.25), c.a...))
	}
}

// TestPreluTable: constant slopes of large inputs become tables, with the results of the loop.
func TestPreluTable(t *testing.T) {
	t.Parallel()
	const channels, rows = 3, 700
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range []tensor.Type{tensor.Int8, tensor.Uint8} {
		lo, hi := optest.Ends(typ)
		x, a := optest.Of(typ, optest.Affine(3, 0.5), []int{1, rows, channels}, optest.Draw(r, rows*channels, lo, hi)...), optest.Row(typ, optest.Affine(-2, 0.07), optest.Draw(r, channels, lo, hi)...)
		n := optest.Lite("PRELU", nil, typ, optest.Affine(5, 0.3))
		var got [2][]byte
		for i, fixed := range []bool{false, true} {
			n.Const = []bool{false, fixed}
			out, err := optest.Run(Defs(), n, x, a)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = out[0].Data
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%v: %v, want %v", typ, got[1][:30], got[0][:30])
		}
	}
}

// softmax is the definition, row by row.
func softmax(v []float64, depth int, beta float64) []float64 {
	out := make([]float64, len(v))
	for r := 0; r < len(v); r += depth {
		sum := 0.0
		for _, x := range v[r : r+depth] {
			sum += math.Exp(beta * x)
		}
		for i, x := range v[r : r+depth] {
			out[r+i] = math.Exp(beta*x) / sum
		}
	}
	return out
}

func logs(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Log(x)
	}
	return out
}

var softmaxRows = [][]float64{{0, 0, 0, 0}, {-7, 1, 2, 3}, {7, -7, 7, 6.5}, {-1, -2, -3, -7.75}, {7.75, 0, -7.75, 7.5}}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	var flat []float64
	for len(flat) < 20000 { // many rows: every worker has some
		for _, r := range softmaxRows {
			flat = append(flat, r...)
		}
	}
	for _, beta := range []float64{1, 0.5, 2} {
		attrs := graph.Attrs{"beta": float32(beta)}
		shape := []int{2, len(flat) / 8, 4}
		want := softmax(flat, 4, beta)
		y := one(t, optest.Lite("SOFTMAX", attrs, tensor.Float32, nil), optest.Of(tensor.Float32, nil, shape, flat...))
		optest.Near(t, "float", y, want, 0, 2e-6)
		for _, c := range []struct {
			in, out  tensor.Type
			scale    float64
			zero, zo int64
			so       float64
			abs      float64 // steps
		}{
			{tensor.Int8, tensor.Int8, 1. / 16, 0, -128, 1. / 256, 1},
			{tensor.Int8, tensor.Int8, 1. / 16, -3, -128, 1. / 256, 1},
			{tensor.Int8, tensor.Int16, 1. / 16, 0, -32768, 1. / 65536, 40},
			{tensor.Uint8, tensor.Uint8, 1. / 16, 128, 0, 1. / 256, 1},
			{tensor.Int16, tensor.Int16, 1. / 4096, 0, 0, 1. / 32768, 12},
		} {
			stored := make([]float64, len(flat))
			res := make([]float64, len(flat))
			lo, hi := map[tensor.Type]float64{tensor.Int8: -128, tensor.Int16: -32768}[c.out], map[tensor.Type]float64{tensor.Int8: 127, tensor.Uint8: 255, tensor.Int16: 32767}[c.out]
			for i, v := range flat {
				stored[i] = v/c.scale + float64(c.zero)
				res[i] = min(max(want[i]/c.so+float64(c.zo), lo), hi)
			}
			if c.zero == -3 { // not to leave the type
				for i := range stored {
					stored[i] = max(stored[i], -128)
				}
				for i, v := range softmax(realOf(stored, c.scale, c.zero), 4, beta) {
					res[i] = min(max(v/c.so+float64(c.zo), lo), hi)
				}
			}
			y := one(t, optest.Lite("SOFTMAX", attrs, c.out, optest.Affine(c.zo, float32(c.so))), optest.Of(c.in, optest.Affine(c.zero, float32(c.scale)), shape, stored...))
			optest.Near(t, "softmax "+c.in.String()+" to "+c.out.String(), y, res, c.abs, 0)
		}
	}
	// A row of one, no rows and rows of nothing.
	optest.Exactly(t, "one", Defs(), optest.Lite("SOFTMAX", nil, tensor.Float32, nil), []int{3, 1}, []float64{1, 1, 1}, optest.Of(tensor.Float32, nil, []int{3, 1}, -5, 0, 80))
	optest.Exactly(t, "one", Defs(), optest.Lite("SOFTMAX", nil, tensor.Int8, optest.Affine(-128, 1./256)), []int{2, 1}, []float64{127, 127}, optest.Of(tensor.Int8, optest.Affine(0, 1), []int{2, 1}, -5, 80))
	for _, shape := range [][]int{{0, 4}, {4, 0}, {0}} {
		optest.Exactly(t, "empty", Defs(), optest.Lite("SOFTMAX", nil, tensor.Float32, nil), shape, nil, optest.Of(tensor.Float32, nil, shape))
	}
	// For a difference beyond the fixed-point range the result is zero.
	optest.Exactly(t, "far", Defs(), optest.Lite("SOFTMAX", nil, tensor.Int8, optest.Affine(-128, 1./256)), []int{3}, []float64{-128, 127, -128},
		optest.Row(tensor.Int8, optest.Affine(0, 4), -128, 127, 0))
	optest.Exactly(t, "scalar", Defs(), optest.Lite("SOFTMAX", nil, tensor.Float32, nil), []int{}, []float64{1}, optest.Of(tensor.Float32, nil, []int{}, 3))
}

func realOf(stored []float64, scale float64, zero int64) []float64 {
	out := make([]float64, len(stored))
	for i, q := range stored {
		out[i] = scale * (q - float64(zero))
	}
	return out
}

func TestLogSoftmax(t *testing.T) {
	t.Parallel()
	var flat []float64
	for _, r := range softmaxRows {
		flat = append(flat, r...)
	}
	want := logs(softmax(flat, 4, 1))
	shape := []int{len(softmaxRows), 4}
	y := one(t, optest.Lite("LOG_SOFTMAX", nil, tensor.Float32, nil), optest.Of(tensor.Float32, nil, shape, flat...))
	optest.Near(t, "float", y, want, 1e-6, 1e-6)
	for _, c := range []struct {
		typ      tensor.Type
		zero, zo int64
		lo, hi   float64
	}{{tensor.Int8, 0, 127, -128, 127}, {tensor.Int8, 0, 0, -128, 127}, {tensor.Uint8, 128, 255, 0, 255}} {
		stored, res := make([]float64, len(flat)), make([]float64, len(flat))
		for i, v := range flat {
			stored[i] = v*16 + float64(c.zero)
			res[i] = min(max(want[i]*16+float64(c.zo), c.lo), c.hi)
		}
		y := one(t, optest.Lite("LOG_SOFTMAX", nil, c.typ, optest.Affine(c.zo, 1./16)), optest.Of(c.typ, optest.Affine(c.zero, 1./16), shape, stored...))
		optest.Near(t, "log "+c.typ.String(), y, res, 0.51, 0)
	}
}

// TestDefinitions: clamps and functions of one number may work in place; PRELU and row functions
// may not, because they read a second input or more than they write.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	apart := map[string]bool{"SOFTMAX": true, "LOG_SOFTMAX": true, "PRELU": true}
	seen := map[string]op.Def{}
	for _, d := range Defs() {
		if d.Domain != graph.TFLite || d.InPlace == apart[d.Name] {
			t.Errorf("%s: domain %q, in place %v", d.Name, d.Domain, d.InPlace)
		}
		seen[d.Name] = d
	}
	for _, f := range functions {
		if seen[f.name].Infer == nil {
			t.Errorf("%s is absent", f.name)
		}
	}
}
