package rewrite_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// recurrent builds a random network with a recurrent operator followed by a dense layer.
func recurrent(t *rapid.T) *graph.Model {
	n := &net{t: t, g: &graph.Graph{Name: "net"}, lite: rapid.Bool().Draw(t, "tflite")}
	steps, in, units, out := n.draw("steps", 1, 4), n.draw("inputs", 1, 5), n.draw("units", 2, 6), n.draw("outputs", 1, 4)
	if n.lite {
		n.recurrentLite(steps, in, units, out)
		return &graph.Model{Format: "tflite", IRVersion: 3, Graphs: []*graph.Graph{n.g}}
	}
	x := n.value(steps, 1, in)
	n.g.Inputs = []int{x}
	kind := n.draw("kind", 0, 2)
	op, gates := []string{"LSTM", "GRU", "RNN"}[kind], []int{4, 3, 1}[kind]
	ways := n.draw("directions", 1, 2)
	w, r := n.weights(ways, gates*units, in), n.weights(ways, gates*units, units)
	ins := []int{x, w, r, n.weights(ways, 2*gates*units), -1, -1}
	if rapid.Bool().Draw(t, "state") {
		ins[5] = n.weights(ways, 1, units)
	}
	if op == "LSTM" && rapid.Bool().Draw(t, "peepholes") {
		ins = append(ins, n.weights(ways, 1, units), n.weights(ways, 3*units))
	}
	all, last := n.value(steps, ways, 1, units), n.value(ways, 1, units)
	n.node(op, graph.Attrs{"hidden_size": int64(units), "direction": []string{"forward", "bidirectional"}[ways-1]}, all, ins...)
	n.g.Nodes[0].Outputs = append(n.g.Nodes[0].Outputs, last)
	n.g.Nodes[0].Version = 14
	flat, y := n.value(1, ways*units), n.value(1, out)
	switch {
	case rapid.Bool().Draw(t, "all"):
		joined := n.value(steps, 1, ways*units)
		if ways == 1 {
			n.node("Squeeze", nil, joined, all, n.ints(1))
		} else {
			turned := n.node("Transpose", graph.Attrs{"perm": []int64{0, 2, 1, 3}}, n.value(steps, 1, ways, units), all)
			n.node("Reshape", nil, joined, turned, n.ints(0, 0, -1))
		}
		y = n.node("MatMul", nil, n.value(steps, 1, out), joined, n.weights(ways*units, out))
	default:
		n.node("Reshape", nil, flat, last, n.ints(1, -1))
		n.node("Gemm", graph.Attrs{"transB": int64(1)}, y, flat, n.weights(out, ways*units), n.weights(out))
	}
	n.g.Outputs = []int{y}
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{n.g}}
}

func (n *net) recurrentLite(steps, in, units, out int) {
	x := n.value(1, steps, in)
	n.g.Inputs = []int{x}
	ways := n.draw("directions", 1, 2)
	ins := make([]int, 24*ways)
	for i := range ins {
		ins[i] = -1
	}
	ins[0] = x
	made := units
	projection := n.draw("projection", 0, 1) == 1
	if projection {
		made = n.draw("projected", 1, 4)
	}
	peepholes, bias := n.draw("peepholes", 0, 1) == 1, n.draw("bias", 0, 1) == 1
	for way := range ways {
		at := ins[17*way:]
		if projection {
			if at[16] = n.weights(made, units); bias {
				at[17] = n.weights(made)
			}
		}
		for k := range 4 {
			at[1+k], at[5+k], at[12+k] = n.weights(units, in), n.weights(units, made), n.weights(units)
			if peepholes && k < 3 {
				at[9+k] = n.weights(units)
			}
		}
	}
	for way := range ways {
		states := ins[18:]
		if ways == 2 {
			states = ins[35+2*way:]
		}
		states[0], states[1] = n.value(1, made), n.value(1, units)
		n.g.Values[states[0]].Variable, n.g.Values[states[1]].Variable = true, true
	}
	attrs := graph.Attrs{"fused_activation_function": "TANH", "time_major": false, "asymmetric_quantize_inputs": false}
	all := n.value(1, steps, ways*made)
	switch {
	case ways == 1:
		n.node("UNIDIRECTIONAL_SEQUENCE_LSTM", attrs, all, ins...)
	case n.draw("merged", 0, 1) == 1:
		attrs["merge_outputs"] = true
		n.node("BIDIRECTIONAL_SEQUENCE_LSTM", attrs, all, ins...)
	default:
		attrs["merge_outputs"] = false
		forward, backward := n.value(1, steps, made), n.value(1, steps, made)
		n.node("BIDIRECTIONAL_SEQUENCE_LSTM", attrs, forward, ins...)
		n.g.Nodes[0].Outputs = []int{forward, backward}
		n.node("CONCATENATION", graph.Attrs{"axis": int64(2), "fused_activation_function": "NONE"}, all, forward, backward)
	}
	y := n.value(1, steps, out)
	n.node("FULLY_CONNECTED", graph.Attrs{"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": true}, y, all, n.weights(out, ways*made), n.weights(out))
	n.g.Outputs = []int{y}
}

// attention builds self-attention as frameworks export it.
func attention(t *rapid.T) *graph.Model {
	n := &net{t: t, g: &graph.Graph{Name: "net"}, lite: rapid.Bool().Draw(t, "tflite")}
	steps, in, heads, dim, out := n.draw("steps", 1, 4), n.draw("inputs", 1, 5), n.draw("heads", 1, 4), n.draw("dim", 1, 5), n.draw("outputs", 1, 4)
	x := n.value(1, steps, in)
	n.g.Inputs = []int{x}
	transpose, reshape, product, softmax := "Transpose", "Reshape", "MatMul", "Softmax"
	if n.lite {
		transpose, reshape, product, softmax = "TRANSPOSE", "RESHAPE", "BATCH_MATMUL", "SOFTMAX"
	}
	joined := !n.lite && n.draw("joined", 0, 1) == 1
	perm := func(y, x int, p ...int64) int {
		if n.lite {
			return n.node(transpose, nil, y, x, n.ints(p...))
		}
		return n.node(transpose, graph.Attrs{"perm": p}, y, x)
	}
	dense := func(x, in, out int) int {
		y := n.value(1, steps, out)
		if n.lite {
			return n.node("FULLY_CONNECTED", graph.Attrs{"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": true}, y, x, n.weights(out, in), n.weights(out))
		}
		z := n.node("MatMul", nil, n.value(1, steps, out), x, n.weights(in, out))
		return n.node("Add", nil, y, z, n.weights(out))
	}
	shaped := func(x int, shape ...int) int {
		s := make([]int64, len(shape))
		for i, d := range shape {
			s[i] = int64(d)
		}
		if n.lite {
			return n.node(reshape, graph.Attrs{"new_shape": s}, n.value(shape...), x, n.ints(s...))
		}
		if !joined {
			return n.node(reshape, nil, n.value(shape...), x, n.ints(s...))
		}
		// The length is computed, and sizes are joined.
		sizes := n.value(len(n.g.Values[x].Shape))
		n.node("Shape", nil, sizes, x)
		length := n.value(1)
		n.node("Slice", nil, length, sizes, n.ints(1), n.ints(2))
		all := n.value(len(s))
		n.node("Concat", graph.Attrs{"axis": int64(0)}, all, n.ints(1), length, n.ints(s[2:]...))
		for _, id := range []int{sizes, length, all} {
			n.g.Values[id].Type = tensor.Int64
		}
		return n.node(reshape, nil, n.value(shape...), x, all)
	}
	split := func(p ...int64) int {
		h := shaped(dense(x, in, heads*dim), 1, steps, heads, dim)
		shape := []int{1, steps, heads, dim}
		return perm(n.value(shape[p[0]], shape[p[1]], shape[p[2]], shape[p[3]]), h, p...)
	}
	q, k, v := split(0, 2, 1, 3), split(0, 2, 3, 1), split(0, 2, 1, 3)
	attrs := func() graph.Attrs {
		if n.lite {
			return graph.Attrs{"adj_x": false, "adj_y": false, "asymmetric_quantize_inputs": false}
		}
		return nil
	}
	scores := n.node(product, attrs(), n.value(1, heads, steps, steps), q, k)
	shares := n.value(1, heads, steps, steps)
	if n.lite {
		n.node(softmax, graph.Attrs{"beta": float32(1)}, shares, scores)
	} else {
		n.node(softmax, graph.Attrs{"axis": int64(-1)}, shares, scores)
	}
	mixed := n.node(product, attrs(), n.value(1, heads, steps, dim), shares, v)
	back := perm(n.value(1, steps, heads, dim), mixed, 0, 2, 1, 3)
	n.g.Outputs = []int{dense(shaped(back, 1, steps, heads*dim), heads*dim, out)}
	m := &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{n.g}}
	if n.lite {
		m.Format, m.IRVersion, m.Opsets = "tflite", 3, nil
	}
	return m
}

// TestUnits takes hidden units of recurrent operators and heads of attention out: what is left
// computes what the network with zeros computes, and all layers lose as many as each other. Sums
// of fewer numbers are added up in another order, which the last bits show.
func TestUnits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		draw func(t *rapid.T) *graph.Model
	}{{"recurrent", recurrent}, {"attention", attention}, {"fused", fused}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			taken := tally{} // by first operator
			rapid.Check(t, func(t *rapid.T) {
				m := tt.draw(t)
				outputs(t, m) // the network is sound
				level := rapid.SampledFrom([]float64{.25, .4, .5, .75, 1}).Draw(t, "level")
				var changes []rewrite.Change
				for i, l := range weights.Find(m, nil) {
					if rapid.IntRange(0, 9).Draw(t, fmt.Sprint("kept", i)) > 0 {
						changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: study.Filter, Level: level}})
					}
				}
				zeroed, _, err := rewrite.Apply(m, changes, rewrite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				removed, effects, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := removed.Validate(); err != nil {
					t.Fatal(err)
				}
				before, after := split(m), split(removed)
				for i, s := range before {
					// Heads go as wholes, where there are several.
					if s[2] > 1 && s[3] > 1 && after[i][3] != s[3] {
						t.Fatalf("%v became %v", s, after[i])
					}
				}
				want := outputs(t, zeroed)
				for i, got := range outputs(t, removed) {
					same(t, tensor.Of[float32](got), tensor.Of[float32](want[i]))
				}
				first := m.Main().Nodes[0]
				taken.add(first.Op+" "+first.Attrs.Str("direction", ""), effects)
			})
			taken.check(t, 20)
		})
	}
}

// split are the shapes that make heads of a model's values.
func split(m *graph.Model) (shapes [][]int64) {
	for _, n := range m.Main().Nodes {
		if n.Op != "Reshape" && n.Op != "RESHAPE" {
			continue
		}
		if c := m.Main().Values[n.Inputs[1]].Const; c != nil {
			if s, err := tensor.All[int64](c); err == nil && len(s) == 4 {
				shapes = append(shapes, s)
			}
		}
	}
	return shapes
}

func same(t *rapid.T, a, b []float32) {
	if len(a) != len(b) {
		t.Fatalf("%d elements, want %d", len(a), len(b))
	}
	most := float32(0)
	for _, x := range b {
		most = max(most, x, -x)
	}
	for k := range a {
		if d := a[k] - b[k]; max(d, -d) > 1e-5*most+1e-6 {
			t.Fatalf("element %d is %v, want %v", k, a[k], b[k])
		}
	}
}
