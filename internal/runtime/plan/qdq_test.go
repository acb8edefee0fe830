package plan_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// net builds ONNX graphs with quantisation conversions.
type net struct {
	g  *graph.Graph
	in []*tensor.Tensor
}

func newNet() *net { return &net{g: &graph.Graph{}} }

func (b *net) value(t tensor.Type, c *tensor.Tensor) int {
	v := &graph.Value{ID: len(b.g.Values), Name: fmt.Sprintf("v%d", len(b.g.Values)), Type: t, Const: c, Offset: -1}
	if c != nil {
		v.Type, v.Shape, v.HasShape = c.Type, c.Shape, true
	}
	b.g.Values = append(b.g.Values, v)
	return v.ID
}

func (b *net) constant(c *tensor.Tensor) int { return b.value(c.Type, c) }

func (b *net) input(t *tensor.Tensor) int {
	id := b.value(t.Type, nil)
	b.g.Inputs, b.in = append(b.g.Inputs, id), append(b.in, t)
	return id
}

func (b *net) node(name string, a graph.Attrs, in ...int) int {
	out := b.value(tensor.Invalid, nil)
	b.g.Nodes = append(b.g.Nodes, &graph.Node{Index: len(b.g.Nodes), Op: name, Name: name, Version: 13, Inputs: in, Outputs: []int{out}, Attrs: a})
	return out
}

func (b *net) model() *graph.Model {
	return &graph.Model{Format: "onnx", Opsets: map[string]int{"": 13}, Graphs: []*graph.Graph{b.g}}
}

func scalar32(v float32) *tensor.Tensor { return tensor.From(tensor.Float32, nil, []float32{v}) }

func zeroPoint(t tensor.Type, v int64) *tensor.Tensor {
	x := tensor.New(t)
	x.Data[0] = byte(v)
	return x
}

// draws draws the numbers of one case.
type draws struct {
	t    *rapid.T
	kind tensor.Type
}

func (d draws) codes(name string, shape ...int) *tensor.Tensor {
	x := tensor.New(d.kind, shape...)
	copy(x.Data, rapid.SliceOfN(rapid.Byte(), len(x.Data), len(x.Data)).Draw(d.t, name))
	return x
}

func (d draws) scale(name string) float32 { return rapid.Float32Range(0.004, 0.1).Draw(d.t, name) }

func (d draws) zero(name string) int64 {
	lo := int64(0)
	if d.kind == tensor.Int8 {
		lo = -128
	}
	return lo + int64(rapid.IntRange(0, 255).Draw(d.t, name))
}

// dequantised adds an 8-bit input and its conversion to floating point.
func (b *net) dequantised(d draws, name string, shape ...int) int {
	return b.node("DequantizeLinear", nil, b.input(d.codes(name, shape...)), b.constant(scalar32(d.scale(name+" scale"))), b.constant(zeroPoint(d.kind, d.zero(name+" zero"))))
}

func (b *net) quantised(d draws, id int) {
	y := b.node("QuantizeLinear", nil, id, b.constant(scalar32(d.scale("y scale")*4)), b.constant(zeroPoint(d.kind, d.zero("y zero"))))
	b.g.Outputs = append(b.g.Outputs, y)
}

// weights adds constant weights with a scale for each of n channels along an axis.
func (b *net) weights(d draws, channels, axis int, shape ...int) (id int, scales []float32) {
	w := tensor.New(tensor.Int8, shape...)
	copy(w.Data, rapid.SliceOfN(rapid.Byte(), len(w.Data), len(w.Data)).Draw(d.t, "w"))
	n := 1
	if rapid.Bool().Draw(d.t, "by channel") {
		n = channels
	}
	for i := range n {
		scales = append(scales, d.scale(fmt.Sprint("w scale ", i)))
	}
	s, z := scalar32(scales[0]), tensor.New(tensor.Int8)
	if n > 1 {
		s, z = tensor.From(tensor.Float32, []int{n}, scales), tensor.New(tensor.Int8, n)
	}
	return b.node("DequantizeLinear", graph.Attrs{"axis": int64(axis)}, b.constant(w), b.constant(s), b.constant(z)), scales
}

// bias adds a bias as converters write it, in floating point or with scales of its own.
func (b *net) bias(d draws, x int, scales []float32, n int) int {
	xs := tensor.Of[float32](b.g.Values[b.g.Nodes[slices.IndexFunc(b.g.Nodes, func(n *graph.Node) bool { return n.Outputs[0] == x })].Inputs[1]].Const)[0]
	v := tensor.New(tensor.Int32, n)
	for i := range n {
		tensor.Of[int32](v)[i] = int32(rapid.IntRange(-3000, 3000).Draw(d.t, "bias"))
	}
	s := make([]float32, len(scales))
	for i, w := range scales {
		s[i] = xs * w
	}
	switch rapid.IntRange(0, 3).Draw(d.t, "kind of bias") {
	case 0:
		return -1
	case 1:
		f := tensor.New(tensor.Float32, n)
		for i, q := range tensor.Of[int32](v) {
			tensor.Of[float32](f)[i] = float32(q) * s[min(i, len(s)-1)]
		}
		return b.constant(f)
	case 2:
		for i := range s {
			s[i] *= 1.5
		}
	}
	ts := scalar32(s[0])
	if len(s) > 1 {
		ts = tensor.From(tensor.Float32, []int{len(s)}, s)
	}
	return b.node("DequantizeLinear", graph.Attrs{"axis": int64(0)}, b.constant(v), b.constant(ts))
}

// cases add operators between conversions and return the tolerance in quantisation steps.
var cases = map[string]func(b *net, d draws) int{
	"Conv": func(b *net, d draws) int {
		x := b.dequantised(d, "x", 1, 2, 5, 5)
		w, s := b.weights(d, 3, 0, 3, 2, 3, 3)
		return b.node("Conv", graph.Attrs{"pads": []int64{1, 1, 1, 1}}, x, w, b.bias(d, x, s, 3))
	},
	"Conv by channel": func(b *net, d draws) int {
		x := b.dequantised(d, "x", 2, 3, 4, 6)
		w, s := b.weights(d, 3, 0, 3, 1, 3, 3)
		return b.node("Conv", graph.Attrs{"group": int64(3), "strides": []int64{2, 1}}, x, w, b.bias(d, x, s, 3))
	},
	"ConvTranspose": func(b *net, d draws) int {
		x := b.dequantised(d, "x", 1, 2, 4, 5)
		w, s := b.weights(d, 3, 1, 2, 3, 3, 2)
		return b.node("ConvTranspose", graph.Attrs{"strides": []int64{2, 2}, "pads": []int64{1, 0, 1, 0}}, x, w, b.bias(d, x, s, 3))
	},
	"MatMul": func(b *net, d draws) int {
		w, _ := b.weights(d, 3, 1, 6, 3)
		return b.node("MatMul", nil, b.dequantised(d, "x", 4, 6), w)
	},
	"MatMul of two inputs": func(b *net, d draws) int {
		return b.node("MatMul", nil, b.dequantised(d, "x", 2, 4, 6), b.dequantised(d, "w", 2, 6, 3))
	},
	"Gemm": func(b *net, d draws) int {
		x := b.dequantised(d, "x", 2, 6)
		w, s := b.weights(d, 3, 1, 6, 3)
		return b.node("Gemm", nil, x, w, b.bias(d, x, s, 3))
	},
	"Gemm, transposed": func(b *net, d draws) int {
		x := b.dequantised(d, "x", 2, 6)
		w, s := b.weights(d, 3, 0, 3, 6)
		return b.node("Gemm", graph.Attrs{"transB": int64(1)}, x, w, b.bias(d, x, s, 3))
	},
	"Add": func(b *net, d draws) int {
		return b.node("Add", nil, b.dequantised(d, "x", 2, 5), b.dequantised(d, "w", 5))
	},
	"Mul": func(b *net, d draws) int {
		return b.node("Mul", nil, b.dequantised(d, "x", 2, 5), b.dequantised(d, "w", 2, 1))
	},
	"Relu":    func(b *net, d draws) int { return b.node("Relu", nil, b.dequantised(d, "x", 2, 5)) },
	"Sigmoid": func(b *net, d draws) int { return b.node("Sigmoid", nil, b.dequantised(d, "x", 2, 5)) },
	"LeakyRelu": func(b *net, d draws) int {
		return b.node("LeakyRelu", graph.Attrs{"alpha": float32(0.3)}, b.dequantised(d, "x", 2, 5))
	},
	"Softmax": func(b *net, d draws) int {
		return b.node("Softmax", graph.Attrs{"axis": int64(1)}, b.dequantised(d, "x", 2, 5))
	},
	"AveragePool": func(b *net, d draws) int {
		return b.node("AveragePool", graph.Attrs{"kernel_shape": []int64{2, 3}, "pads": []int64{0, 1, 1, 0}}, b.dequantised(d, "x", 1, 2, 5, 5))
	},
	"GlobalAveragePool": func(b *net, d draws) int { return b.node("GlobalAveragePool", nil, b.dequantised(d, "x", 1, 2, 5, 5)) },
	"ReduceMean": func(b *net, d draws) int {
		return b.node("ReduceMean", graph.Attrs{"axes": []int64{2, 3}, "keepdims": int64(0)}, b.dequantised(d, "x", 1, 2, 3, 3))
	},
	"Concat": func(b *net, d draws) int {
		return b.node("Concat", graph.Attrs{"axis": int64(1)}, b.dequantised(d, "x", 2, 2), b.dequantised(d, "w", 2, 3))
	},
	"Where": func(b *net, d draws) int {
		c := tensor.New(tensor.Bool, 2, 3)
		c.Data[1], c.Data[4] = 1, 1
		return b.node("Where", nil, b.input(c), b.dequantised(d, "x", 2, 3), b.dequantised(d, "w", 1, 3))
	},
}

func run(t interface{ Fatal(...any) }, b *net, exact bool) (out *tensor.Tensor, steps []plan.Step) {
	s, err := engine.New(b.model(), b.in, engine.Options{Registry: operators.Registry(), Exact: exact})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Output(0) == nil {
		t.Fatal("nothing is computed: ", s.Steps())
	}
	steps = s.Steps()
	for i, s := range steps { // regardless of the order of fusion
		if s.State == plan.Fused && (steps[s.Into].State != plan.Runs || !slices.Contains(steps[s.Into].Fused, i)) {
			t.Fatal("a step is fused into one that does not compute it, or does not know: ", i, s.Into, steps[s.Into].Fused)
		}
	}
	return s.Output(0).Clone(), steps
}

// TestLowered compares integer operators with the same ones in floating point. Both round the
// same real number to 8 bits. The floating-point sums differ in their last bits by their order,
// so that one may be on the other side of a tie: one step at most.
func TestLowered(t *testing.T) {
	t.Parallel()
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				clamp := rapid.SampledFrom([]string{"", "Relu", "Clip"}).Draw(r, "clamp")
				d := draws{r, rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(r, "type")}
				b := newNet()
				y := make(b, d)
				switch clamp {
				case "Relu":
					y = b.node("Relu", nil, y)
				case "Clip":
					y = b.node("Clip", nil, y, b.constant(scalar32(-0.5)), b.constant(scalar32(rapid.Float32Range(0, 6).Draw(r, "max"))))
				}
				b.quantised(d, y)
				want, _ := run(r, b, true)
				got, steps := run(r, b, false)
				for _, s := range steps {
					if s.State != plan.Fused && (s.Runs == s.Node || s.Runs == nil) {
						r.Fatalf("%s %s: %v", s.Node.Op, s.State, s.Err)
					}
					// Step.Computes states the integer type where the file has float32. The first
					// operand of Where is a condition, and Concat does not compute.
					if eight := s.Computes == tensor.Int8 || s.Computes == tensor.Uint8; s.State == plan.Runs && s.In[0].Type == tensor.Float32 && name != "Concat" && !eight {
						r.Fatalf("%s computes in %s", s.Node.Op, s.Computes)
					}
				}
				within(r, got, want, 1)
			})
		})
	}
}

// TestOpen: a MatMul whose result stays in floating point still accumulates integers.
func TestOpen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := draws{r, rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(r, "type")}
		b := newNet()
		m, k, n := rapid.IntRange(1, 5).Draw(r, "m"), rapid.IntRange(1, 40).Draw(r, "k"), rapid.IntRange(1, 20).Draw(r, "n")
		x := b.dequantised(d, "x", 2, m, k)
		w, _ := b.weights(d, n, 1, k, n)
		b.g.Outputs = []int{b.node("MatMul", nil, x, w)}
		want, _ := run(r, b, true)
		got, steps := run(r, b, false)
		for _, s := range steps {
			if s.State != plan.Fused && (s.Runs == s.Node || s.Runs == nil) {
				r.Fatalf("%s %s: %v", s.Node.Op, s.State, s.Err)
			}
		}
		// Sums of up to 40 products of at most 255·0.1 and 128·0.1 are rounded to 24 bits.
		for i, v := range tensor.Of[float32](got) {
			if d := math.Abs(float64(v - tensor.Of[float32](want)[i])); d > 40*25.5*12.8*40/(1<<24) {
				r.Fatalf("element %d is %v, in floating point %v", i, v, tensor.Of[float32](want)[i])
			}
		}
	})
}

func within(t interface{ Fatalf(string, ...any) }, got, want *tensor.Tensor, steps int) {
	if got.Type != want.Type || !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("%v %v, in floating point %v %v", got.Type, got.Shape, want.Type, want.Shape)
	}
	a, _ := op.Ints(got)
	b, _ := op.Ints(want)
	for i := range a {
		if d := a[i] - b[i]; d > steps || d < -steps {
			t.Fatalf("code %d is %d, in floating point %d", i, a[i], b[i])
		}
	}
}

// TestMoved checks that operators that move elements are bit-exact.
func TestMoved(t *testing.T) {
	t.Parallel()
	i64 := func(v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, []int{len(v)}, v) }
	for name, node := range map[string]func(b *net, x int) int{
		"MaxPool": func(b *net, x int) int {
			return b.node("MaxPool", graph.Attrs{"kernel_shape": []int64{2, 2}, "pads": []int64{1, 1, 0, 0}}, x)
		},
		"Reshape":   func(b *net, x int) int { return b.node("Reshape", nil, x, b.constant(i64(2, -1))) },
		"Transpose": func(b *net, x int) int { return b.node("Transpose", graph.Attrs{"perm": []int64{0, 2, 3, 1}}, x) },
		"Flatten":   func(b *net, x int) int { return b.node("Flatten", nil, x) },
		"Squeeze":   func(b *net, x int) int { return b.node("Squeeze", nil, x, b.constant(i64(0))) },
		"Unsqueeze": func(b *net, x int) int { return b.node("Unsqueeze", nil, x, b.constant(i64(0))) },
		"Identity":  func(b *net, x int) int { return b.node("Identity", nil, x) },
		"Slice": func(b *net, x int) int {
			return b.node("Slice", nil, x, b.constant(i64(1)), b.constant(i64(3)), b.constant(i64(2)))
		},
		"Gather": func(b *net, x int) int {
			return b.node("Gather", graph.Attrs{"axis": int64(1)}, x, b.constant(i64(2, 0)))
		},
		"Expand":       func(b *net, x int) int { return b.node("Expand", nil, x, b.constant(i64(2, 4, 4, 6))) },
		"Tile":         func(b *net, x int) int { return b.node("Tile", nil, x, b.constant(i64(1, 1, 2, 1))) },
		"DepthToSpace": func(b *net, x int) int { return b.node("DepthToSpace", graph.Attrs{"blocksize": int64(2)}, x) },
		"SpaceToDepth": func(b *net, x int) int { return b.node("SpaceToDepth", graph.Attrs{"blocksize": int64(2)}, x) },
		"Clip": func(b *net, x int) int {
			return b.node("Clip", nil, x, b.constant(scalar32(-1)), b.constant(scalar32(1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				d := draws{r, rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(r, "type")}
				b := newNet()
				scale, zero := scalar32(d.scale("scale")), zeroPoint(d.kind, d.zero("zero"))
				x := b.node("DequantizeLinear", nil, b.input(d.codes("x", 1, 4, 4, 6)), b.constant(scale), b.constant(zero))
				y := node(b, x)
				b.g.Outputs = append(b.g.Outputs, b.node("QuantizeLinear", nil, y, b.constant(scale), b.constant(zero)))
				want, _ := run(r, b, true)
				got, steps := run(r, b, false)
				if s := steps[1]; s.State != plan.Runs || s.Runs == s.Node || steps[0].State != plan.Fused || steps[2].Into != 1 {
					r.Fatalf("not lowered: %v %v %v", steps[0].State, s.State, steps[2].State)
				}
				within(r, got, want, 0)
			})
		})
	}
}

// TestLeftAlone lists patterns that must stay in floating point, and the state of conversions
// with other readers.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	codes := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Int8, shape...) }
	dq := func(b *net, x int, s float32) int {
		return b.node("DequantizeLinear", nil, x, b.constant(scalar32(s)), b.constant(zeroPoint(tensor.Int8, 3)))
	}
	q := func(b *net, x int, s float32) int {
		y := b.node("QuantizeLinear", nil, x, b.constant(scalar32(s)), b.constant(zeroPoint(tensor.Int8, 3)))
		b.g.Outputs = append(b.g.Outputs, y)
		return y
	}
	for _, tt := range []struct {
		name, states string
		build        func(b *net)
	}{
		{"no operator on integers", "runs runs runs", func(b *net) { q(b, b.node("LogSoftmax", nil, dq(b, b.input(codes(4)), 0.1)), 0.1) }},
		{"another scale after a move", "runs runs runs", func(b *net) { q(b, b.node("Flatten", nil, dq(b, b.input(codes(2, 2)), 0.1)), 0.2) }},
		{"read in floating point too", "runs runs runs", func(b *net) {
			y := b.node("Sigmoid", nil, dq(b, b.input(codes(4)), 0.1))
			q(b, y, 0.1)
			b.g.Outputs = append(b.g.Outputs, y)
		}},
		{"conversion with another reader", "runs runs fused runs", func(b *net) {
			x := dq(b, b.input(codes(4)), 0.1)
			q(b, b.node("Sigmoid", nil, x), 0.1)
			b.g.Outputs = append(b.g.Outputs, b.node("Tanh", nil, x))
		}},
		{"conversion that two share", "fused runs fused runs fused", func(b *net) {
			x := dq(b, b.input(codes(4)), 0.1)
			q(b, b.node("Sigmoid", nil, x), 0.1)
			q(b, b.node("LeakyRelu", nil, x), 0.1)
		}},
		{"scale of the run", "runs runs runs", func(b *net) {
			x := b.node("DequantizeLinear", nil, b.input(codes(4)), b.input(scalar32(0.1)), b.constant(zeroPoint(tensor.Int8, 3)))
			q(b, b.node("Sigmoid", nil, x), 0.1)
		}},
		{"sixteen bits", "runs runs runs", func(b *net) {
			x := b.node("DequantizeLinear", nil, b.input(tensor.New(tensor.Int16, 4)), b.constant(scalar32(0.1)))
			b.g.Nodes[0].Version = 21 // the first version with 16 bits
			q(b, b.node("Sigmoid", nil, x), 0.1)
		}},
		{"weights in floating point", "runs runs runs", func(b *net) {
			q(b, b.node("MatMul", nil, dq(b, b.input(codes(2, 2)), 0.1), b.constant(tensor.New(tensor.Float32, 2, 2))), 0.1)
		}},
		{"factors of a product", "runs folded runs runs", func(b *net) {
			x := dq(b, b.input(codes(2, 2)), 0.1)
			q(b, b.node("Gemm", graph.Attrs{"alpha": float32(2)}, x, dq(b, b.constant(codes(2, 2)), 0.1)), 0.1)
		}},
		{"different types", "runs runs runs runs", func(b *net) {
			x := dq(b, b.input(codes(4)), 0.1)
			y := b.node("DequantizeLinear", nil, b.input(tensor.New(tensor.Uint8, 4)), b.constant(scalar32(0.1)))
			q(b, b.node("Add", nil, x, y), 0.1)
		}},
		{"scale that means nothing", "runs runs runs", func(b *net) {
			q(b, b.node("Sigmoid", nil, dq(b, b.input(codes(4)), float32(math.NaN()))), 0.1)
		}},
		{"operands that do not fit", "runs runs failed skipped", func(b *net) {
			q(b, b.node("Add", nil, dq(b, b.input(codes(4)), 0.1), dq(b, b.input(codes(3)), 0.1)), 0.1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newNet()
			tt.build(b)
			p, err := plan.Make(b.model(), b.in, plan.Options{Registry: operators.Registry()})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range p.Steps(0) {
				got = append(got, s.State.String())
			}
			if s := strings.Join(got, " "); s != tt.states {
				t.Errorf("states %q, want %q", s, tt.states)
			}
			e, err := plan.Make(b.model(), b.in, plan.Options{Registry: operators.Registry(), Exact: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range e.Steps(0) {
				if s.State == plan.Fused || s.Runs != nil && s.Runs != s.Node {
					t.Errorf("%s is %v in exact mode", s.Node.Op, s.State)
				}
			}
		})
	}
}

// TestRevert lowers an operator whose Prepare then fails: the file's own operator runs.
func TestRevert(t *testing.T) {
	t.Parallel()
	refuse := func(domain, name string) op.Def {
		d := *operators.Registry().Find(domain, name, 1)
		d.Since = 1
		d.Prepare = func(*op.Call) (op.Run, error) { return nil, op.Unsupported("for this test") }
		return d
	}
	var all []op.Def
	for _, d := range operators.Registry().All() {
		all = append(all, *d)
	}
	for _, refused := range [][]op.Def{{refuse(graph.Microsoft, "QLinearSigmoid")}, {refuse(graph.Microsoft, "QLinearAdd")}, {refuse(graph.Microsoft, "QLinearSigmoid"), refuse(graph.Microsoft, "QLinearAdd")}} {
		b := newNet()
		c := tensor.From(tensor.Int8, []int{4}, []int8{-100, -1, 5, 100})
		x := b.node("DequantizeLinear", nil, b.input(c), b.constant(scalar32(0.05)))
		y := b.node("QuantizeLinear", nil, b.node("Sigmoid", nil, x), b.constant(scalar32(0.01)), b.constant(zeroPoint(tensor.Int8, 0)))
		z := b.node("Relu", nil, b.node("Add", nil, b.node("DequantizeLinear", nil, y, b.constant(scalar32(0.01))), x))
		b.g.Outputs = append(b.g.Outputs, b.node("QuantizeLinear", nil, z, b.constant(scalar32(0.03)), b.constant(zeroPoint(tensor.Int8, 4))))
		want, _ := run(t, b, true)
		s, err := engine.New(b.model(), b.in, engine.Options{Registry: op.NewRegistry(all, refused)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		within(t, s.Output(0), want, 2) // two operators one after the other
		for _, st := range s.Steps() {
			if st.Err != nil {
				t.Errorf("%s: %v", st.Node.Op, st.Err)
			}
		}
		s.Close()
	}
}
