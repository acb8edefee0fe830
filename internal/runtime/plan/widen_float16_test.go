package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// halves builds graphs of 16-bit floating-point values.
type halves struct {
	*net
	t        *rapid.T
	kind     tensor.Type
	channels map[int]int // channels of each value [1,C,6,6]
	made     []int
	floats   []int // values that Casts convert to float32
}

// numbers draws values between -2 and 2.
func (b *halves) numbers(name string, shape ...int) *tensor.Tensor {
	x := tensor.New(b.kind, shape...)
	f := rapid.SliceOfN(rapid.Float32Range(-2, 2), x.Len(), x.Len()).Draw(b.t, name)
	tensor.WriteFloat32(x, 0, f)
	return x
}

func (b *halves) weights(name string, shape ...int) int {
	return b.constant(b.numbers(name, shape...))
}

// add appends a node that reads earlier values.
func (b *halves) add(i int) {
	name := func(s string) string { return fmt.Sprintf("%s %d", s, i) }
	x := rapid.SampledFrom(b.made).Draw(b.t, name("x"))
	c := b.channels[x]
	window := graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 1, 1, 1}}
	var y int
	switch kind := rapid.SampledFrom([]string{"Conv", "depthwise", "Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "Add", "Mul", "Concat", "Transpose", "MaxPool", "AveragePool", "BatchNormalization", "MatMul", "Cast"}).Draw(b.t, name("operator")); kind {
	case "Conv":
		c = rapid.IntRange(1, 5).Draw(b.t, name("channels"))
		in := []int{x, b.weights(name("weights"), c, b.channels[x], 3, 3)}
		if rapid.Bool().Draw(b.t, name("bias")) {
			in = append(in, b.weights(name("biases"), c))
		}
		y = b.node("Conv", window, in...)
	case "depthwise":
		window["group"] = int64(c)
		y = b.node("Conv", window, x, b.weights(name("weights"), c, 1, 3, 3))
	case "Clip":
		y = b.node("Clip", nil, x, b.weights(name("least")), b.constant(tensor.New(b.kind)))
	case "Add", "Mul":
		o := rapid.SampledFrom(b.made).Draw(b.t, name("other"))
		if b.channels[o] != c {
			o = b.weights(name("constant"), 1, c, 1, 1)
		}
		y = b.node(kind, nil, x, o)
	case "Concat":
		o := rapid.SampledFrom(b.made).Draw(b.t, name("other"))
		y, c = b.node(kind, graph.Attrs{"axis": int64(1)}, x, o), c+b.channels[o]
	case "Transpose":
		y = b.node(kind, graph.Attrs{"perm": []int64{0, 1, 3, 2}}, x)
	case "MaxPool", "AveragePool":
		y = b.node(kind, window, x)
	case "BatchNormalization":
		v := tensor.New(b.kind, c)
		tensor.WriteFloat32(v, 0, slices.Repeat([]float32{1.5}, c))
		y = b.node(kind, nil, x, b.weights(name("scale"), c), b.weights(name("shift"), c), b.weights(name("mean"), c), b.constant(v))
	case "MatMul":
		y = b.node(kind, nil, x, b.weights(name("weights"), 6, 6))
	case "Cast":
		y = b.node(kind, graph.Attrs{"to": int64(1)}, x)
		b.floats = append(b.floats, y)
		if rapid.Bool().Draw(b.t, name("computes")) {
			y = b.node("Tanh", nil, y)
			b.floats = append(b.floats, y)
		}
		y = b.node(kind, graph.Attrs{"to": map[tensor.Type]int64{tensor.Float16: 10, tensor.BFloat16: 16}[b.kind]}, y)
	default:
		y = b.node(kind, nil, x)
	}
	b.made, b.channels[y] = append(b.made, y), c
}

// prune removes nodes that no output depends on.
func (b *halves) prune() {
	needed := slices.Clone(b.g.Outputs)
	var nodes []*graph.Node
	for _, n := range slices.Backward(b.g.Nodes) {
		if slices.Contains(needed, n.Outputs[0]) {
			needed, nodes = append(needed, n.Inputs...), append(nodes, n)
		}
	}
	slices.Reverse(nodes)
	for i, n := range nodes {
		n.Index, n.Version = i, 22
	}
	b.g.Nodes = nodes
}

// inFloat32 returns the same graph with everything in float32.
func (b *halves) inFloat32() *net {
	wide := func(x *tensor.Tensor) *tensor.Tensor {
		if x == nil || !x.Type.IsHalf() {
			return x
		}
		f := tensor.New(tensor.Float32, x.Shape...)
		tensor.Read(tensor.Of[float32](f), x, 0)
		return f
	}
	g := *b.g
	g.Values, g.Nodes = nil, nil
	for _, n := range b.g.Nodes {
		m := *n
		if m.Op == "Cast" {
			m.Attrs = graph.Attrs{"to": int64(1)}
		}
		g.Nodes = append(g.Nodes, &m)
	}
	for _, v := range b.g.Values {
		w := *v
		if w.Const = wide(v.Const); w.Type.IsHalf() {
			w.Type = tensor.Float32
		}
		g.Values = append(g.Values, &w)
	}
	n := &net{g: &g}
	for _, x := range b.in {
		n.in = append(n.in, wide(x))
	}
	return n
}

// TestWiden compares planned graphs of 16-bit values with the same ones in float32 whose result
// is rounded once, bit-exactly.
func TestWiden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := &halves{net: newNet(), t: r, kind: rapid.SampledFrom([]tensor.Type{tensor.Float16, tensor.BFloat16}).Draw(r, "type"), channels: map[int]int{}}
		x := b.input(b.numbers("input", 1, 2, 6, 6))
		// Operators that only move inputs stay in 16 bits, so the first operator must compute.
		b.made = []int{b.node("Conv", nil, x, b.weights("first", 3, 2, 1, 1))}
		b.channels[b.made[0]] = 3
		for i := range rapid.IntRange(1, 8).Draw(r, "nodes") {
			b.add(i)
		}
		// Operators that move elements to an output stay in 16 bits too.
		b.g.Outputs = []int{b.node("Exp", nil, b.made[len(b.made)-1])}
		b.prune()
		f, _ := run(r, b.inFloat32(), false)
		want := tensor.New(b.kind, f.Shape...)
		tensor.WriteFloat32(want, 0, tensor.Of[float32](f))
		got, steps := run(r, b.net, false)
		if got.Type != want.Type || !slices.Equal(got.Shape, want.Shape) {
			r.Fatalf("%v %v, in float32 %v %v", got.Type, got.Shape, want.Type, want.Shape)
		}
		for i := range got.Len() {
			// An operator on the 16-bit patterns keeps the sign of a zero that an arithmetic one
			// clears.
			if g, w := tensor.At(got, i), tensor.At(want, i); g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				r.Fatalf("element %d is %v, in float32 %v", i, g, w)
			}
		}
		for _, s := range steps {
			ids := slices.Concat(s.Node.Inputs, s.Node.Outputs)
			for k, x := range slices.Concat(s.In, s.Out) {
				kind := b.kind
				if slices.Contains(b.floats, ids[k]) {
					kind = tensor.Float32
				}
				if x != nil && x.Type != kind {
					r.Fatalf("%s is described with %v", s.Node.Op, x.Type)
				}
			}
		}
	})
}

// TestWidenBeforeClamp fuses a 16-bit clamp into an operator that computes in float32.
func TestWidenBeforeClamp(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Float16, 1, 1, 2, 2)
	tensor.WriteFloat32(x, 0, []float32{-1, 0.1, 3, -0.3})
	w := tensor.New(tensor.Float16, 1, 1, 1, 1)
	tensor.WriteFloat32(w, 0, []float32{-2})
	b := newNet()
	y := b.node("Conv", nil, b.node("Conv", nil, b.input(x), b.constant(w)), b.constant(w))
	y = b.node("Relu", nil, y)
	b.g.Outputs = []int{b.node("Transpose", nil, y), y}
	want, _ := run(t, b, true)
	got, steps := run(t, b, false)
	if got.Type != want.Type || !slices.Equal(got.Data, want.Data) {
		t.Errorf("%v %v, want %v %v", got.Type, got.Data, want.Type, want.Data)
	}
	if steps[0].Runs == steps[0].Node || steps[2].State != plan.Fused {
		t.Error("the first convolution is not in float32, or the clamp not joined to the second")
	}
}

// TestWidenLeavesOutConversions computes operators between Casts from 16 bits and back with the
// rest in float32.
func TestWidenLeavesOutConversions(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Float16, 2, 3)
	tensor.WriteFloat32(x, 0, []float32{-1, 0.1, 3, -0.3, 0.7, 2})
	to := func(code int64) graph.Attrs { return graph.Attrs{"to": code} }
	b := newNet()
	e := b.node("Exp", nil, b.input(x))
	y := b.node("Cast", to(1), b.node("Reshape", nil, b.node("Tanh", nil, e), b.node("Shape", nil, e)))
	// Several nodes read the first one's output, one of them the output of two Casts in a row.
	z := b.node("Add", nil, b.node("Sqrt", nil, y), b.node("Cast", to(1), b.node("Cast", to(10), y)))
	b.g.Outputs = []int{b.node("Log", nil, b.node("Cast", to(10), z))}
	got, steps := run(t, b, false)
	want := tensor.New(tensor.Float16, 2, 3)
	for i := range x.Len() {
		y := math.Tanh(math.Exp(tensor.At(x, i)))
		tensor.WriteFloat32(want, i, []float32{float32(math.Log(math.Sqrt(y) + y))})
	}
	if got.Type != want.Type || !slices.Equal(got.Data, want.Data) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, s := range steps {
		if (s.State == plan.Fused) != (s.Node.Op == "Cast") || s.State == plan.Runs && s.Runs == s.Node && s.Node.Op != "Sqrt" {
			t.Errorf("%s: %v", s.Node.Op, s.State)
		}
	}
	for _, s := range steps {
		for _, x := range slices.Concat(s.In, s.Out) {
			if x == nil || x.Type != tensor.Float16 && x.Type != tensor.Float32 && x.Type != tensor.Int64 {
				t.Errorf("%s is described with %v", s.Node.Op, x)
			}
		}
	}
}

// TestWidenKeepsRounding converts values to 16 bits and back, which rounds them, also with
// operators between that only move them.
func TestWidenKeepsRounding(t *testing.T) {
	t.Parallel()
	x := tensor.From(tensor.Float32, []int{2, 3}, []float32{-1, 0.1, 70000, -0.3, 1e-9, 2.0001})
	to := func(code int64) graph.Attrs { return graph.Attrs{"to": code} }
	for _, code := range []int64{10, 16} {
		for _, moved := range []bool{false, true} {
			b := newNet()
			y := b.node("Cast", to(code), b.node("Neg", nil, b.input(x)))
			if moved {
				y = b.node("Transpose", nil, b.node("Transpose", nil, y))
			}
			b.g.Outputs = []int{b.node("Neg", nil, b.node("Cast", to(1), y))}
			got, _ := run(t, b, false)
			half := tensor.New(map[int64]tensor.Type{10: tensor.Float16, 16: tensor.BFloat16}[code], 2, 3)
			tensor.WriteFloat32(half, 0, tensor.Of[float32](x))
			for i, v := range tensor.Of[float32](got) {
				if want := float32(tensor.At(half, i)); v != want {
					t.Errorf("type %v, moved %v: %v becomes %v, want %v", half.Type, moved, tensor.At(x, i), v, want)
				}
			}
		}
	}
}

// TestWidenLeavesAlone lists nodes that stay in 16 bits.
func TestWidenLeavesAlone(t *testing.T) {
	t.Parallel()
	half := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float16, shape...) }
	for name, make := range map[string]func(b *net){
		"a value that the graph gives, too": func(b *net) {
			y := b.node("Exp", nil, b.input(half(4)))
			b.g.Outputs = []int{b.node("Exp", nil, y), y}
		},
		"what a conversion reads": func(b *net) {
			b.g.Outputs = []int{b.node("Cast", graph.Attrs{"to": int64(1)}, b.node("Exp", nil, b.input(half(4))))}
		},
		"what a conversion makes": func(b *net) {
			b.g.Outputs = []int{b.node("Exp", nil, b.node("Cast", graph.Attrs{"to": int64(10)}, b.input(tensor.New(tensor.Float32, 4))))}
		},
		"rows that are taken from a table": func(b *net) {
			rows := b.node("Gather", nil, b.constant(half(1000, 4)), b.input(tensor.New(tensor.Int64, 2)))
			b.g.Outputs = []int{b.node("Exp", nil, rows)}
		},
		"what only moves": func(b *net) {
			b.g.Outputs = []int{b.node("Transpose", nil, b.node("Identity", nil, b.input(half(4, 2))))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newNet()
			make(b)
			_, steps := run(t, b, false)
			for _, s := range steps {
				if s.Runs != s.Node {
					t.Errorf("%s is computed by another node", s.Node.Op)
				}
			}
		})
	}
}

// TestWidenReverts widens an operator whose Prepare then fails: all compute in 16 bits.
func TestWidenReverts(t *testing.T) {
	t.Parallel()
	var all []op.Def
	for _, d := range operators.Registry().All() {
		all = append(all, *d)
	}
	d := *operators.Registry().Find(graph.ONNX, "Tanh", 13)
	prepare := d.Prepare
	d.Prepare = func(c *op.Call) (op.Run, error) {
		if c.In[0].Type == tensor.Float32 {
			return nil, op.Unsupported("for this test")
		}
		return prepare(c)
	}
	b := newNet()
	x := tensor.New(tensor.Float16, 3)
	tensor.WriteFloat32(x, 0, []float32{-1, 0.1, 3})
	y := b.node("Tanh", nil, b.node("Relu", nil, b.node("Exp", nil, b.input(x))))
	b.g.Outputs = []int{b.node("Exp", nil, y)}
	want, _ := run(t, b, true)
	r := op.NewRegistry(all, []op.Def{d})
	r.Widen = operators.Registry().Widen
	s, err := engine.New(b.model(), b.in, engine.Options{Registry: r})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Output(0); got == nil || !slices.Equal(got.Data, want.Data) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, st := range s.Steps() {
		if st.State != plan.Runs || st.Runs != st.Node {
			t.Errorf("%s %v: %v", st.Node.Op, st.State, st.Err)
		}
	}
}
