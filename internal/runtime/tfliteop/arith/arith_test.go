package arith

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

var definitions = map[string]func(x, y float64) float64{
	"ADD":                func(x, y float64) float64 { return x + y },
	"SUB":                func(x, y float64) float64 { return x - y },
	"MUL":                func(x, y float64) float64 { return x * y },
	"DIV":                func(x, y float64) float64 { return x / y },
	"MAXIMUM":            math.Max,
	"MINIMUM":            math.Min,
	"SQUARED_DIFFERENCE": func(x, y float64) float64 { return (x - y) * (x - y) },
}

// pairs lists shapes of two inputs and of their output, with the elements of both inputs for each
// element of the output.
func pairs(a, b, out []int, meet func(i, j int)) {
	at := func(shape, idx []int) int {
		k := 0
		for d := range shape {
			v := idx[len(idx)-len(shape)+d]
			if shape[d] == 1 {
				v = 0
			}
			k = k*shape[d] + v
		}
		return k
	}
	n := 1
	for _, d := range out {
		n *= d
	}
	for e := range n {
		idx := make([]int, len(out))
		for d, r := len(out)-1, e; d >= 0; d-- {
			idx[d], r = r%out[d], r/out[d]
		}
		meet(at(a, idx), at(b, idx))
	}
}

var shapes = [][3][]int{
	{{3, 5}, {3, 5}, {3, 5}},
	{{3, 5}, {5}, {3, 5}},
	{{3, 1}, {5}, {3, 5}},
	{{}, {4}, {4}},
	{{2, 1, 3}, {4, 1}, {2, 4, 3}},
	{{1}, {1}, {1}},
	{{0, 3}, {3}, {0, 3}},
	{{130, 100}, {130, 100}, {130, 100}}, // more than one worker's share
}

func elements(r *rand.Rand, shape []int, lo, hi int, not float64) []float64 {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float64, n)
	for i := range v {
		for v[i] = float64(lo + r.IntN(hi-lo+1)); v[i] == not; v[i] = float64(lo + r.IntN(hi-lo+1)) {
		}
	}
	return v
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	acts := []struct {
		name   string
		lo, hi float64
	}{{"NONE", math.Inf(-1), math.Inf(1)}, {"RELU", 0, math.Inf(1)}, {"RELU6", 0, 6}, {"RELU_N1_TO_1", -1, 1}}
	for name, f := range definitions {
		for _, typ := range []tensor.Type{f32, i32, i64, i16, i8} {
			for k, s := range shapes {
				act := acts[k%len(acts)]
				x, y := elements(r, s[0], -11, 11, 99), elements(r, s[1], -11, 11, 0)
				var want []float64
				pairs(s[0], s[1], s[2], func(i, j int) {
					v := f(x[i], y[j])
					if name == "DIV" && typ != f32 {
						v = math.Trunc(v)
					}
					if typ == i8 {
						v = float64(int8(int(v))) // wraps
					}
					if typ == f32 {
						v = float64(float32(v))
					}
					want = append(want, min(max(v, act.lo), act.hi))
				})
				attrs := graph.Attrs{"fused_activation_function": act.name}
				optest.Exactly(t, name+" "+typ.String()+" "+act.name, Defs(), optest.Lite(name, attrs, typ, nil), s[2], want, optest.Of(typ, nil, s[0], x...), optest.Of(typ, nil, s[1], y...))
			}
		}
	}
}

// TestQuantised compares quantised operators with the definition: dequantise, compute, quantise;
// zero points are in the middle and at both ends.
func TestQuantised(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for name, f := range definitions {
		if name == "MAXIMUM" || name == "MINIMUM" {
			continue // of stored numbers, see below
		}
		for _, typ := range []tensor.Type{i8, u8, i16} {
			lo, hi := map[tensor.Type]int{i8: -128, i16: -32768}[typ], map[tensor.Type]int{i8: 127, u8: 255, i16: 32767}[typ]
			zeros := []int{lo, (lo + hi + 1) / 2, hi}
			if typ == i16 {
				zeros = []int{0}
			}
			for _, z1 := range zeros {
				for _, z2 := range zeros {
					zo := zeros[r.IntN(len(zeros))]
					s1, s2 := math.Ldexp(1, -r.IntN(3)), math.Ldexp(1, -r.IntN(3))
					so := math.Ldexp(1, r.IntN(3)-1)
					steps := 0.51
					switch name {
					case "MUL", "DIV":
						steps = 1.01 // rounds twice
						so *= 16
					case "SQUARED_DIFFERENCE":
						so *= 64
					}
					if typ == i16 {
						s1, s2 = s1/256, s2/256
						if so /= 256; name != "ADD" && name != "SUB" {
							so /= 256
						}
					}
					s := shapes[r.IntN(len(shapes)-1)]
					x, y := elements(r, s[0], lo, hi, math.NaN()), elements(r, s[1], lo, hi, math.NaN())
					if name == "DIV" {
						y = elements(r, s[1], lo, hi, float64(z2))
						so = s1 / s2 / 4
					}
					act, alo, ahi := "NONE", math.Inf(-1), math.Inf(1)
					if r.IntN(3) == 0 {
						act, alo, ahi = "RELU6", 0, 6
					}
					var want []float64
					pairs(s[0], s[1], s[2], func(i, j int) {
						v := min(max(f(s1*(x[i]-float64(z1)), s2*(y[j]-float64(z2))), alo), ahi)
						want = append(want, min(max(v/so+float64(zo), float64(lo)), float64(hi)))
					})
					q := func(z int, s float64) *tensor.Quant { return optest.Affine(int64(z), float32(s)) }
					out, err := optest.Run(Defs(), optest.Lite(name, graph.Attrs{"fused_activation_function": act}, typ, q(zo, so)), optest.Of(typ, q(z1, s1), s[0], x...), optest.Of(typ, q(z2, s2), s[1], y...))
					if err != nil {
						t.Fatalf("%s of %v: %v", name, typ, err)
					}
					if why := optest.Differ(out[0], want, steps, 0); why != "" {
						t.Errorf("%s of %v %s, zeros %d %d %d, scales %v %v %v: %s", name, typ, act, z1, z2, zo, s1, s2, so, why)
					}
				}
			}
		}
	}
}

// TestRounding: ties round away from zero, sums saturate at both ends.
func TestRounding(t *testing.T) {
	t.Parallel()
	q, half := optest.Affine(0, 1), optest.Affine(0, 0.5)
	for _, c := range []struct {
		op         string
		typ        tensor.Type
		q, qo      *tensor.Quant
		x, y, want []float64
	}{
		{"ADD", i8, half, q, []float64{1, -1, 2, 3, -3}, []float64{0, 0, 1, 0, 0}, []float64{1, -1, 2, 2, -2}},
		{"SUB", i8, half, q, []float64{1, -1, 2, 3, -3}, []float64{0, 0, 1, 0, 0}, []float64{1, -1, 1, 2, -2}},
		{"ADD", i8, q, q, []float64{127, -128, 100, -100}, []float64{1, -1, 27, -28}, []float64{127, -128, 127, -128}},
		{"ADD", i16, q, q, []float64{32767, -32768, 32766}, []float64{1, -1, 1}, []float64{32767, -32768, 32767}},
		{"MUL", i8, q, q, []float64{-128, 11, -3}, []float64{-128, -11, 5}, []float64{127, -121, -15}},
		{"DIV", i8, q, q, []float64{7, -7, 100, 0, -128, 3}, []float64{7, 7, -3, 5, 1, -3}, []float64{1, -1, -33, 0, -128, -1}},
		{"SQUARED_DIFFERENCE", i8, q, q, []float64{3, -3, 20, 0}, []float64{-3, 3, 0, 11}, []float64{36, 36, 127, 121}},
	} {
		optest.Exactly(t, c.op, Defs(), optest.Lite(c.op, nil, c.typ, c.qo), []int{len(c.x)}, c.want, optest.Row(c.typ, c.q, c.x...), optest.Row(c.typ, c.q, c.y...))
	}
	// Maximum and minimum compare the stored numbers.
	optest.Exactly(t, "MAXIMUM", Defs(), optest.Lite("MAXIMUM", nil, i8, q), []int{2}, []float64{5, -1}, optest.Row(i8, q, 5, -3), optest.Row(i8, q, 4, -1))
	optest.Exactly(t, "MINIMUM", Defs(), optest.Lite("MINIMUM", nil, u8, q), []int{2}, []float64{4, 200}, optest.Row(u8, q, 5, 200), optest.Row(u8, q, 4, 255))
}

func TestAddN(t *testing.T) {
	t.Parallel()
	a, b, c := []float64{1, -2, 3}, []float64{10, 20, 30}, []float64{5, 5, -5}
	for _, typ := range []tensor.Type{f32, i32, i64} {
		n := optest.Lite("ADD_N", nil, typ, nil)
		optest.Exactly(t, "one", Defs(), n, []int{3}, a, optest.Row(typ, nil, a...))
		optest.Exactly(t, "three", Defs(), n, []int{3}, []float64{16, 23, 28}, optest.Row(typ, nil, a...), optest.Row(typ, nil, b...), optest.Row(typ, nil, c...))
	}
	for _, q := range []struct {
		z, zo          int64
		s, so          float32
		x, y, v, want2 []float64
	}{
		{0, 0, 1, 1, a, b, c, []float64{16, 23, 28}},
		// (0+2+4)/2, (1+0+6)/2, (28+255+255)/2
		{-128, -128, 0.5, 1, []float64{-128, -127, -100}, []float64{-126, -128, 127}, []float64{-124, -122, 127}, []float64{-125, -124, 127}},
		// 0, -6/2, -765/2
		{127, 127, 1, 2, []float64{127, 126, -128}, []float64{127, 125, -128}, []float64{127, 124, -128}, []float64{127, 124, -128}},
		// 4/2, 3/2 and -6/2
		{10, -5, 0.25, 0.5, []float64{10, 11, 9}, []float64{10, 12, 8}, []float64{14, 10, 7}, []float64{-3, -3, -8}},
	} {
		in := func(v []float64) *tensor.Tensor { return optest.Row(i8, optest.Affine(q.z, q.s), v...) }
		optest.Exactly(t, "int8", Defs(), optest.Lite("ADD_N", nil, i8, optest.Affine(q.zo, q.so)), []int{3}, q.want2, in(q.x), in(q.y), in(q.v))
	}
	n := optest.Lite("ADD_N", nil, f32, nil)
	optest.Refused(t, "none", Defs(), n, "no input")
	optest.Refused(t, "absent", Defs(), n, "input 1 is missing", optest.Row(f32, nil, 1), nil)
	optest.Refused(t, "another shape", Defs(), n, "input 1 is float32 2, input 0 float32 1", optest.Row(f32, nil, 1), optest.Row(f32, nil, 1, 2))
	optest.Refused(t, "another type", Defs(), n, "input 2 is int32 1, input 0 float32 1", optest.Row(f32, nil, 1), optest.Row(f32, nil, 1), optest.Row(i32, nil, 1))
	optest.Refused(t, "uint8", Defs(), optest.Lite("ADD_N", nil, u8, nil), "uint8 inputs", optest.Row(u8, nil, 1))
	optest.Refused(t, "no scale", Defs(), optest.Lite("ADD_N", nil, i8, nil), "without quantisation", optest.Row(i8, optest.Affine(0, 1), 1))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	q := optest.Affine(0, 1)
	row := func(typ tensor.Type, q *tensor.Quant) *tensor.Tensor { return optest.Row(typ, q, 4, 2) }
	for _, c := range []struct {
		what, op string
		out      tensor.Type
		qo       *tensor.Quant
		attrs    graph.Attrs
		text     string
		x, y     *tensor.Tensor
	}{
		{"one input", "ADD", f32, nil, nil, "input 1 is missing", row(f32, nil), nil},
		{"two types", "ADD", f32, nil, nil, "inputs of types float32 and int32", row(f32, nil), row(i32, nil)},
		{"shapes", "ADD", f32, nil, nil, "", optest.Row(f32, nil, 1, 2), optest.Row(f32, nil, 1, 2, 3)},
		{"no scale of the first", "ADD", i8, q, nil, "without quantisation", row(i8, nil), row(i8, q)},
		{"no scale of the second", "MUL", i8, q, nil, "without quantisation", row(i8, q), row(i8, nil)},
		{"no scale of the output", "SUB", i8, nil, nil, "without quantisation", row(i8, q), row(i8, q)},
		{"scale of zero", "ADD", i8, q, nil, "scale 0", row(i8, optest.Affine(0, 0)), row(i8, q)},
		{"negative scale", "ADD", i8, q, nil, "scale -1", row(i8, q), row(i8, optest.Affine(0, -1))},
		{"NaN", "ADD", i8, optest.Affine(0, float32(math.NaN())), nil, "scale NaN", row(i8, q), row(i8, q)},
		{"activation", "ADD", f32, nil, graph.Attrs{"fused_activation_function": "TANH"}, "fused activation TANH", row(f32, nil), row(f32, nil)},
		{"activation of integers", "ADD", i8, q, graph.Attrs{"fused_activation_function": "TANH"}, "fused activation TANH", row(i8, q), row(i8, q)},
		{"activation of integers", "ADD", i32, nil, graph.Attrs{"fused_activation_function": "TANH"}, "fused activation TANH", row(i32, nil), row(i32, nil)},
		{"division by zero", "DIV", i32, nil, nil, "division by zero", row(i32, nil), optest.Row(i32, nil, 1, 0)},
		{"division by the zero point", "DIV", i8, q, nil, "division by zero", row(i8, q), optest.Row(i8, optest.Affine(7, 1), 8, 7)},
	} {
		optest.Refused(t, c.what, Defs(), optest.Lite(c.op, c.attrs, c.out, c.qo), c.text, c.x, c.y)
	}
	// A float is divided by zero as floats are.
	optest.Exactly(t, "float", Defs(), optest.Lite("DIV", nil, f32, nil), []int{3}, []float64{math.Inf(1), math.Inf(-1), math.NaN()}, optest.Row(f32, nil, 1, -1, 0), optest.Row(f32, nil, 0, 0, 0))
}

// TestFusedClamp: the clamp that the engine fuses into an operator comes after its own.
func TestFusedClamp(t *testing.T) {
	t.Parallel()
	for _, d := range Defs() {
		if want := d.Name != "ADD_N"; d.Fuses != want || d.Domain != graph.TFLite || d.InPlace {
			t.Errorf("%s: fuses %v, in place %v, domain %q", d.Name, d.Fuses, d.InPlace, d.Domain)
		}
	}
	if w, err := NewBroadcast([]int{2, 1}, []int{3}); err != nil || w.Len != 6 {
		t.Errorf("%+v, %v", w, err)
	}
}
