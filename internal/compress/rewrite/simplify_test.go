package rewrite_test

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
)

// chain makes a model of operators in a row over x of shape 1x2x3x4: "T" followed by a permutation
// transposes, "R" is Relu, "A" adds a constant of one element, "B" one of four. outs names values
// that are outputs of the model, too.
func chain(t *testing.T, steps []string, outs ...string) *graph.Model {
	t.Helper()
	b := newMaker(0, "main", nil)
	b.g.Inputs = []int{b.value("x", tensor.Float32, 1, 2, 3, 4)}
	b.constant("one", tensor.From(tensor.Float32, []int{1}, []float32{0.25}))
	b.constant("four", tensor.From(tensor.Float32, []int{4}, []float32{1, 2, 3, 4}))
	last := "x"
	for i, s := range steps {
		out := string(rune('a' + i))
		b.value(out, tensor.Float32)
		b.g.Values[b.ids[out]].HasShape = false
		switch s[0] {
		case 'T':
			var perm []int64
			for _, d := range s[1:] {
				perm = append(perm, int64(d-'0'))
			}
			b.node("", "Transpose", graph.Attrs{"perm": perm}, out, last)
		case 'R':
			b.node("", "Relu", nil, out, last)
		case 'A':
			b.node("", "Add", nil, out, "one", last)
		case 'B':
			b.node("", "Add", nil, out, last, "four")
		}
		last = out
	}
	for _, o := range append(outs, last) {
		b.g.Outputs = append(b.g.Outputs, b.ids[o])
	}
	return versioned(b)
}

func versioned(b *maker) *graph.Model {
	for _, n := range b.g.Nodes {
		n.Version = 17
	}
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{b.g}}
}

// results runs a model and returns its outputs.
func results(t *testing.T, m *graph.Model) []*tensor.Tensor {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	s := run(t, m, madeInputs(t, m), engine.Options{})
	var out []*tensor.Tensor
	for i := range m.Main().Outputs {
		out = append(out, s.Output(i))
	}
	return out
}

// Pairs that cancel are removed with the result unchanged; all other transpositions stay.
func TestCancelTransposes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		steps   []string
		outs    []string
		removed []int
	}{
		{"pair", []string{"R", "T0231", "T0312", "R"}, nil, []int{1, 2}},
		{"pair at the end", []string{"R", "T0231", "T0312"}, nil, nil},
		{"operators between", []string{"T0231", "R", "A", "T0312"}, nil, []int{0, 3}},
		{"two pairs", []string{"T0231", "R", "T0312", "A", "T0132", "T0132", "R"}, nil, []int{0, 2, 4, 5}},
		{"nested pairs", []string{"T0231", "T0132", "R", "T0132", "T0312", "R"}, nil, []int{1, 3}},
		{"no inverse", []string{"T0231", "R", "T0231", "R"}, nil, nil},
		{"operand that broadcasts", []string{"T0231", "B", "T0312", "R"}, nil, nil},
		{"value that is an output", []string{"T0231", "R", "T0312", "R"}, []string{"b"}, nil},
		{"first has another reader", []string{"T0231", "T0312", "R"}, []string{"a"}, []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := chain(t, c.steps, c.outs...)
			got, removed := rewrite.CancelTransposes(m)
			if !slices.Equal(removed, c.removed) {
				t.Errorf("removed %v, want %v", removed, c.removed)
			}
			if n, want := len(got.Main().Nodes), len(c.steps)-len(c.removed); n != want {
				t.Errorf("%d nodes are left, want %d", n, want)
			}
			if len(removed) == 0 && got != m {
				t.Error("the model was changed")
			}
			want, have := results(t, m), results(t, parse(t, got))
			for i := range want {
				equal(t, c.name, have[i], want[i])
			}
		})
	}
}

// Batch normalisation after each kind of operator is folded, and the outputs stay within rounding.
func TestFoldBatchNorm(t *testing.T) {
	t.Parallel()
	const in, out = 3, 4
	for _, c := range []struct {
		name, op string
		data     []int
		weights  []int
		attrs    graph.Attrs
		bias     bool
		relu     bool // between the two: nothing is folded
		nodes    int
	}{
		{"Conv", "Conv", []int{1, in, 5, 5}, []int{out, in, 3, 3}, nil, true, false, 1},
		{"Conv without bias", "Conv", []int{1, in, 5, 5}, []int{out, in, 1, 1}, nil, false, false, 1},
		{"ConvTranspose", "ConvTranspose", []int{1, in, 5, 5}, []int{in, out, 3, 3}, nil, true, false, 1},
		{"Gemm", "Gemm", []int{2, in}, []int{in, out}, nil, true, false, 1},
		{"Gemm, transposed", "Gemm", []int{2, in}, []int{out, in}, graph.Attrs{"transB": int64(1)}, true, false, 1},
		{"Gemm, scaled", "Gemm", []int{2, in}, []int{in, out}, graph.Attrs{"alpha": float32(2)}, true, false, 2},
		{"MatMul", "MatMul", []int{2, in}, []int{in, out}, nil, false, false, 2},
		{"Relu between", "Conv", []int{1, in, 5, 5}, []int{out, in, 3, 3}, nil, true, true, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newMaker(0, "main", nil)
			b.g.Inputs = []int{b.value("x", tensor.Float32, c.data...)}
			b.constant("w", numbers(3, c.weights...))
			ins := []string{"x", "w"}
			if c.bias {
				b.constant("b", numbers(4, out))
				ins = append(ins, "b")
			}
			b.value("y", tensor.Float32)
			if v := b.g.Values[b.ids["y"]]; len(c.data) == 2 {
				v.Shape = []int{2, out}
			} else {
				v.HasShape = false
			}
			b.node("", c.op, c.attrs, "y", ins...)
			last := "y"
			if c.relu {
				b.value("r", tensor.Float32)
				b.g.Values[b.ids["r"]].HasShape = false
				b.node("", "Relu", nil, "r", "y")
				last = "r"
			}
			for i, name := range []string{"scale", "shift", "mean"} {
				b.constant(name, numbers(5+i, out))
			}
			b.constant("var", tensor.From(tensor.Float32, []int{out}, []float32{0.5, 1, 2, 4}))
			b.value("z", tensor.Float32)
			b.g.Values[b.ids["z"]].HasShape = false
			b.node("", "BatchNormalization", graph.Attrs{"epsilon": float32(1e-3)}, "z", last, "scale", "shift", "mean", "var")
			b.g.Outputs = []int{b.ids["z"]}
			m := versioned(b)
			got, folded := rewrite.FoldBatchNorm(m)
			if n := len(got.Main().Nodes); n != c.nodes {
				t.Errorf("%d nodes, want %d (folded %v)", n, c.nodes, folded)
			}
			for _, n := range got.Main().Nodes {
				if n.Op == "BatchNormalization" && len(folded) > 0 {
					t.Error("a folded node is left")
				}
			}
			want, have := results(t, m)[0], results(t, parse(t, got))[0]
			x, y := tensor.Of[float32](want), tensor.Of[float32](have)
			for i := range x {
				// A product and a sum are rounded in another order: some units in the last place of
				// values near 10.
				if math.Abs(float64(x[i]-y[i])) > 2e-5 {
					t.Fatalf("element %d: %g, want %g", i, y[i], x[i])
				}
			}
		})
	}
}
