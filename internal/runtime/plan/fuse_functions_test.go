package plan_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// joined compares a graph with the same one computed operator by operator, and returns its steps.
func joined(t *rapid.T, b *net) []plan.Step {
	want, _ := run(t, b, true)
	got, steps := run(t, b, false)
	w, g := tensor.Of[float32](want), tensor.Of[float32](got)
	for i := range w {
		// Separate operators round each result, a fused one rounds only the last.
		if d := math.Abs(float64(g[i] - w[i])); !(d <= 1e-5*math.Abs(float64(w[i]))+1e-5) && (g[i] == g[i] || w[i] == w[i]) {
			t.Fatalf("element %d is %v, want %v", i, g[i], w[i])
		}
	}
	return steps
}

// runs checks what the last step runs, and that all other steps that it needs are fused into it.
func runs(t rapid.TB, steps []plan.Step, name string, fused int) {
	last := steps[len(steps)-1]
	if last.State != plan.Runs || last.Runs.Op != name || len(last.Fused) != fused {
		t.Fatalf("the last step runs %v with %v, want %s with %d", last.Runs, last.Fused, name, fused)
	}
	for _, i := range last.Fused {
		if s := steps[i]; s.State != plan.Fused || s.Into != len(steps)-1 {
			t.Fatalf("step %d is %v into %d", i, s.State, s.Into)
		}
	}
}

func numbers(t *rapid.T, name string, shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Float32, shape...)
	copy(tensor.Of[float32](x), rapid.SliceOfN(rapid.Float32Range(-8, 8), x.Len(), x.Len()).Draw(t, name))
	return x
}

// TestCurves builds functions from operators with factors and terms in every order.
func TestCurves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		x := b.input(numbers(t, "x", 2, rapid.IntRange(1, 40).Draw(t, "n")))
		number := func(v float32) int {
			if rapid.Bool().Draw(t, "one axis") {
				return b.constant(tensor.From(tensor.Float32, []int{1}, []float32{v}))
			}
			return b.constant(scalar32(v))
		}
		two := func(name string, p, q int) int {
			if rapid.Bool().Draw(t, "turned") {
				p, q = q, p
			}
			return b.node(name, nil, p, q)
		}
		product := func(bell int) {
			switch half := number(0.5); rapid.IntRange(0, 2).Draw(t, "order") {
			case 0:
				two("Mul", two("Mul", x, bell), half)
			case 1:
				two("Mul", two("Mul", x, half), bell)
			default:
				two("Mul", x, two("Mul", bell, half))
			}
		}
		name, fused := "", 0
		switch kind := rapid.SampledFrom([]string{"silu", "steep silu", "hardswish", "hardswish by clip", "erf", "erf of a quotient", "tanh", "tanh of products", "tanh of x before brackets"}).Draw(t, "kind"); kind {
		case "silu":
			name, fused = "Swish", 1
			two("Mul", x, b.node("Sigmoid", nil, x))
		case "steep silu":
			name, fused = "Swish", 2
			two("Mul", x, b.node("Sigmoid", nil, two("Mul", x, number(1.702))))
		case "hardswish":
			name, fused = "HardSwish", 1
			two("Mul", x, b.node("HardSigmoid", graph.Attrs{"alpha": float32(1. / 6)}, x))
		case "hardswish by clip":
			name, fused = "HardSwish", 3
			ramp := b.node("Clip", nil, two("Add", x, number(3)), b.constant(scalar32(0)), b.constant(scalar32(6)))
			switch rapid.IntRange(0, 3).Draw(t, "order") {
			case 0:
				b.node("Div", nil, two("Mul", x, ramp), number(6))
			case 1:
				two("Mul", two("Mul", x, ramp), number(1./6))
			case 2:
				two("Mul", x, b.node("Div", nil, ramp, number(6)))
			default:
				two("Mul", x, two("Mul", ramp, number(1./6)))
			}
		case "erf":
			name, fused = "Gelu", 4
			product(two("Add", b.node("Erf", nil, two("Mul", x, number(math.Sqrt2/2))), number(1)))
		case "erf of a quotient":
			name, fused = "Gelu", 4
			product(two("Add", b.node("Erf", nil, b.node("Div", nil, x, number(math.Sqrt2))), number(1)))
		case "tanh":
			name, fused = "Gelu", 7
			cube := two("Mul", b.node("Pow", nil, x, number(3)), number(0.044715))
			product(two("Add", b.node("Tanh", nil, two("Mul", two("Add", x, cube), number(0.7978845608))), number(1)))
		case "tanh of products":
			name, fused = "Gelu", 8
			cube := two("Mul", two("Mul", x, b.node("Mul", nil, x, x)), number(0.044715))
			product(two("Add", b.node("Tanh", nil, two("Mul", two("Add", x, cube), number(0.7978845608))), number(1)))
		case "tanh of x before brackets":
			name, fused = "Gelu", 8
			brackets := two("Add", two("Mul", two("Mul", x, number(0.044715)), x), number(1))
			product(two("Add", b.node("Tanh", nil, two("Mul", two("Mul", x, number(0.7978845608)), brackets)), number(1)))
		}
		last := b.g.Nodes[len(b.g.Nodes)-1]
		b.g.Outputs = []int{last.Outputs[0]}
		runs(t, joined(t, b), name, fused)
	})
}

// TestCurvesNot leaves values with other readers, and other functions, unfused.
func TestCurvesNot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		build func(b *net, x int)
	}{
		{"sigmoid of another", func(b *net, x int) {
			b.node("Mul", nil, x, b.node("Sigmoid", nil, b.node("Neg", nil, x)))
		}},
		{"sigmoid that is an output", func(b *net, x int) {
			s := b.node("Sigmoid", nil, x)
			b.g.Outputs = append(b.g.Outputs, s)
			b.node("Mul", nil, x, s)
		}},
		{"steeper", func(b *net, x int) {
			b.node("Mul", nil, x, b.node("HardSigmoid", nil, x))
		}},
		{"a square, not a cube", func(b *net, x int) {
			term := b.node("Mul", nil, b.node("Mul", nil, x, x), b.constant(scalar32(0.044715)))
			e := b.node("Tanh", nil, b.node("Mul", nil, b.node("Add", nil, x, term), b.constant(scalar32(0.7978845608))))
			b.node("Mul", nil, b.node("Mul", nil, x, b.node("Add", nil, e, b.constant(scalar32(1)))), b.constant(scalar32(0.5)))
		}},
		{"a third", func(b *net, x int) {
			e := b.node("Erf", nil, b.node("Div", nil, x, b.constant(scalar32(math.Sqrt2))))
			b.node("Mul", nil, b.node("Mul", nil, x, b.node("Add", nil, e, b.constant(scalar32(1)))), b.constant(scalar32(0.33)))
		}},
		{"more axes", func(b *net, x int) {
			e := b.node("Erf", nil, b.node("Div", nil, x, b.constant(tensor.From(tensor.Float32, []int{1, 1, 1}, []float32{math.Sqrt2}))))
			b.node("Mul", nil, b.node("Mul", nil, x, b.node("Add", nil, e, b.constant(scalar32(1)))), b.constant(scalar32(0.5)))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newNet()
			test.build(b, b.input(tensor.From(tensor.Float32, []int{2, 2}, []float32{-3, -0.5, 0, 2})))
			b.g.Outputs = append(b.g.Outputs, b.g.Nodes[len(b.g.Nodes)-1].Outputs[0])
			for i, s := range func() []plan.Step { _, s := run(t, b, false); return s }() {
				if s.State != plan.Runs || s.Runs != s.Node {
					t.Errorf("step %d, %s, is %v", i, s.Node.Op, s.State)
				}
			}
		})
	}
}

// TestNorms builds normalisations from operators with factors and terms in every order.
func TestNorms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		n := rapid.IntRange(1, 20).Draw(t, "n")
		x := b.input(numbers(t, "x", 2, 3, n))
		two := func(name string, p, q int) int {
			if rapid.Bool().Draw(t, "turned") {
				p, q = q, p
			}
			return b.node(name, nil, p, q)
		}
		axis := rapid.SampledFrom([]int64{-1, 2}).Draw(t, "axis")
		mean := func(v int) int { return b.node("ReduceMean", graph.Attrs{"axes": []int64{axis}}, v) }
		// The epsilon is large, so that small rounding differences stay small.
		root := func(v int) int {
			var square int
			if rapid.Bool().Draw(t, "power") {
				square = b.node("Pow", nil, v, b.constant(scalar32(2)))
			} else {
				square = b.node("Mul", nil, v, v)
			}
			return b.node("Sqrt", nil, two("Add", mean(square), b.constant(scalar32(0.5))))
		}
		scale, shift := b.constant(numbers(t, "scale", n)), b.constant(numbers(t, "shift", n))
		name, fused := "LayerNormalization", 8
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			d := b.node("Sub", nil, x, mean(x))
			two("Add", two("Mul", b.node("Div", nil, d, root(d)), scale), shift)
		case 1:
			name, fused = "RMSNormalization", 5
			two("Mul", b.node("Div", nil, x, root(x)), scale)
		case 2:
			name, fused = "RMSNormalization", 6
			two("Mul", two("Mul", x, b.node("Reciprocal", nil, root(x))), scale)
		default:
			name, fused = "RMSNormalization", 6
			two("Mul", two("Mul", x, b.node("Div", nil, b.constant(scalar32(1)), root(x))), scale)
		}
		b.g.Outputs = []int{b.g.Nodes[len(b.g.Nodes)-1].Outputs[0]}
		runs(t, joined(t, b), name, fused)
	})
}

// TestBiases fuses constants into convolutions and MatMuls, alone and followed by a normalisation
// or a clamp.
func TestBiases(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		m := rapid.IntRange(1, 5).Draw(t, "outputs")
		var y, bias int
		ones := rapid.IntRange(0, 1).Draw(t, "more axes")
		if rapid.Bool().Draw(t, "product") {
			y = b.node("MatMul", nil, b.input(numbers(t, "x", 2, 3, 4)), b.constant(numbers(t, "weights", 4, m)))
			bias = b.constant(numbers(t, "term", []int{1, m}[1-ones:]...))
		} else {
			y = b.node("Conv", nil, b.input(numbers(t, "x", 2, 3, 4, 5)), b.constant(numbers(t, "weights", m, 3, 2, 2)))
			bias = b.constant(numbers(t, "term", []int{1, m, 1, 1}[1-ones:]...))
		}
		if rapid.Bool().Draw(t, "turned") {
			y = b.node("Add", nil, bias, y)
		} else {
			y = b.node("Add", nil, y, bias)
		}
		fused := 1
		if rapid.Bool().Draw(t, "relu") {
			y, fused = b.node("Relu", nil, y), 2
		}
		b.g.Outputs = []int{y}
		if s := joined(t, b)[0]; s.State != plan.Runs || len(s.Fused) != fused {
			t.Fatalf("the first step computes %v", s.Fused)
		}
	})
}

// TestChannels transposes channels to the end for a MatMul, and back or elsewhere.
func TestChannels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		c, m := rapid.IntRange(2, 5).Draw(t, "channels"), rapid.IntRange(2, 5).Draw(t, "outputs")
		shape, to, back := []int{2, c, 3, 4}, []int64{0, 2, 3, 1}, []int64{0, 3, 1, 2}
		if rapid.Bool().Draw(t, "lines") {
			shape, to, back = []int{2, c, 5}, []int64{0, 2, 1}, []int64{0, 2, 1}
		}
		y := b.node("Transpose", graph.Attrs{"perm": to}, b.input(numbers(t, "x", shape...)))
		y = b.node("MatMul", nil, y, b.constant(numbers(t, "weights", c, m)))
		fused := 2
		if rapid.Bool().Draw(t, "bias") {
			y = b.node("Add", nil, b.constant(numbers(t, "term", m)), y)
			fused = 3
		}
		other := len(back) == 4 && rapid.Bool().Draw(t, "elsewhere")
		if other {
			back = []int64{0, 3, 2, 1}
		}
		b.g.Outputs = []int{b.node("Transpose", graph.Attrs{"perm": back}, y)}
		steps := joined(t, b)
		if other {
			if steps[len(steps)-1].Runs.Op != "Transpose" {
				t.Fatal("channels do not come back, and yet are a convolution's")
			}
			return
		}
		runs(t, steps, "Conv", fused)
	})
}

// TestBatchNorms fuses normalisations into convolutions of all kinds.
func TestBatchNorms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		c, m := rapid.IntRange(1, 4).Draw(t, "channels"), rapid.IntRange(1, 5).Draw(t, "outputs")
		attrs := graph.Attrs{}
		cg := c
		if rapid.Bool().Draw(t, "depthwise") {
			attrs["group"], cg, m = int64(c), 1, c
		}
		shape, kernel := []int{1, c, 6, 7}, []int{m, cg, 3, 2}
		if rapid.IntRange(0, 3).Draw(t, "axes") == 0 {
			shape, kernel = []int{1, c, 3, 4, 5}, []int{m, cg, 2, 2, 2} // uses another kernel
		}
		in := []int{b.input(numbers(t, "x", shape...)), b.constant(numbers(t, "weights", kernel...))}
		if rapid.Bool().Draw(t, "bias") {
			in = append(in, b.constant(numbers(t, "biases", m)))
		}
		v := tensor.New(tensor.Float32, m)
		copy(tensor.Of[float32](v), rapid.SliceOfN(rapid.Float32Range(0.5, 9), m, m).Draw(t, "variance"))
		y := b.node("BatchNormalization", graph.Attrs{"epsilon": float32(0.01)}, b.node("Conv", attrs, in...),
			b.constant(numbers(t, "scale", m)), b.constant(numbers(t, "shift", m)), b.constant(numbers(t, "mean", m)), b.constant(v))
		fused := 1
		if rapid.Bool().Draw(t, "relu") {
			y, fused = b.node("Relu", nil, y), 2
		}
		b.g.Outputs = []int{y}
		want, _ := run(t, b, true)
		got, steps := run(t, b, false)
		w, g := tensor.Of[float32](want), tensor.Of[float32](got)
		for i := range w {
			// Sums of up to 24 products of up to 64, times up to 11: the rounding of the terms is
			// 1e-6 of that.
			if d := math.Abs(float64(g[i] - w[i])); d > 1e-6*24*64*11 {
				t.Fatalf("element %d is %v, want %v", i, g[i], w[i])
			}
		}
		if s := steps[0]; s.State != plan.Runs || len(s.Fused) != fused {
			t.Fatalf("the convolution computes %v", s.Fused)
		}
	})
}

// TestNormalisedParts normalises the channels of several concatenated convolutions, with or
// without another operand among them.
func TestNormalisedParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		parts, m := rapid.IntRange(1, 3).Draw(t, "parts"), 0
		var in []int
		for range parts {
			c, o := rapid.IntRange(1, 3).Draw(t, "channels"), rapid.IntRange(1, 4).Draw(t, "outputs")
			m += o
			in = append(in, b.node("Conv", nil, b.input(numbers(t, "x", 1, c, 3, 4)), b.constant(numbers(t, "weights", o, c, 2, 2))))
		}
		other := rapid.Bool().Draw(t, "other")
		if other {
			m += 2
			in = append(in, b.input(numbers(t, "other", 1, 2, 2, 3)))
		}
		v := tensor.New(tensor.Float32, m)
		copy(tensor.Of[float32](v), rapid.SliceOfN(rapid.Float32Range(0.5, 9), m, m).Draw(t, "variance"))
		y := b.node("Concat", graph.Attrs{"axis": int64(rapid.SampledFrom([]int{1, -3}).Draw(t, "axis"))}, in...)
		y = b.node("BatchNormalization", nil, y, b.constant(numbers(t, "scale", m)), b.constant(numbers(t, "shift", m)), b.constant(numbers(t, "mean", m)), b.constant(v))
		b.g.Outputs = []int{y}
		want, _ := run(t, b, true)
		got, steps := run(t, b, false)
		w, g := tensor.Of[float32](want), tensor.Of[float32](got)
		for i := range w {
			// Sums of up to 12 products of up to 64, times up to 11: the rounding of the terms is
			// 1e-6 of that.
			if d := math.Abs(float64(g[i] - w[i])); d > 1e-6*12*64*11 {
				t.Fatalf("element %d is %v, want %v", i, g[i], w[i])
			}
		}
		if last := steps[len(steps)-1]; (last.State == plan.Fused) == other {
			t.Fatalf("the normalisation is %v", last.State)
		}
	})
}

// TestBorders pads the inputs of convolutions with zeros and with other values.
func TestBorders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		joins := true
		attrs, conv := graph.Attrs{}, graph.Attrs{}
		end := func(name string) int64 { return int64(rapid.IntRange(0, 2).Draw(t, name)) }
		pads := []int64{0, 0, end("top"), end("left"), 0, 0, end("bottom"), end("right")}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			attrs["mode"], joins = "edge", false
		case 1:
			pads[4], joins = 1, false // padding of another axis
		case 2:
			pads[2], joins = 5, false // more than the kernel window covers
		case 3:
			conv["auto_pad"] = "SAME_UPPER"
			joins = false
		case 4:
			conv["auto_pad"] = "VALID"
		default:
			conv["pads"] = []int64{1, 0, 0, 1}
			conv["dilations"] = []int64{2, 2}
		}
		in := []int{b.input(numbers(t, "x", 1, 2, 5, 6)), b.constant(tensor.From(tensor.Int64, []int{8}, pads))}
		switch rapid.IntRange(0, 2).Draw(t, "value") {
		case 0:
			in = append(in, b.constant(scalar32(0)))
		case 1:
			in = append(in, b.constant(scalar32(1)))
			joins = false
		}
		y := b.node("Pad", attrs, in...)
		y = b.node("Conv", conv, y, b.constant(numbers(t, "weights", 3, 2, 3, 3)), b.constant(numbers(t, "biases", 3)))
		fused := 1
		if rapid.Bool().Draw(t, "relu") {
			y, fused = b.node("Relu", nil, y), 2
		}
		b.g.Outputs = []int{y}
		want, _ := run(t, b, true)
		got, steps := run(t, b, false)
		w, g := tensor.Of[float32](want), tensor.Of[float32](got)
		for i := range w {
			// Sums of 18 products of up to 64: the rounding of the terms is 1e-6 of that.
			if d := math.Abs(float64(g[i] - w[i])); d > 1e-6*18*64 {
				t.Fatalf("element %d is %v, want %v", i, g[i], w[i])
			}
		}
		if !joins {
			fused--
		}
		if s := steps[1]; s.State != plan.Runs || len(s.Fused) != fused {
			t.Fatalf("the convolution computes %v, want %d", s.Fused, fused)
		}
	})
}

// TestLengths builds sums of squares, with and without Abs and Sqrt.
func TestLengths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newNet()
		x := b.input(numbers(t, "x", 3, rapid.IntRange(1, 40).Draw(t, "n"), 2))
		fused, y := 1, x
		if rapid.Bool().Draw(t, "product") {
			y = b.node("Mul", nil, x, x)
		} else {
			if rapid.Bool().Draw(t, "magnitude") {
				y = b.node("Abs", nil, x)
				fused++
			}
			y = b.node("Pow", nil, y, b.constant(scalar32(2)))
		}
		attrs := graph.Attrs{"keepdims": int64(rapid.IntRange(0, 1).Draw(t, "keep"))}
		axis := int64(rapid.IntRange(-1, 1).Draw(t, "axis"))
		sum := b.node("ReduceSum", attrs, y, b.constant(tensor.From(tensor.Int64, []int{1}, []int64{axis})))
		name := "ReduceSumSquare"
		switch rapid.IntRange(0, 2).Draw(t, "root") {
		case 0:
			b.node("Sqrt", nil, sum)
			name, fused = "ReduceL2", fused+1
		case 1:
			b.node("Pow", nil, sum, b.constant(scalar32(0.5)))
			name, fused = "ReduceL2", fused+1
		}
		b.g.Outputs = b.g.Nodes[len(b.g.Nodes)-1].Outputs
		runs(t, joined(t, b), name, fused)
	})
}
