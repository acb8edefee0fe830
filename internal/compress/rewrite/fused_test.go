package rewrite_test

import (
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fused builds a random network around a fused or quantised operator of ONNX Runtime: attention
// with or without weights, in float or int8, or a quantised LSTM; a dense layer follows it.
func fused(t *rapid.T) *graph.Model {
	n := &net{t: t, g: &graph.Graph{Name: "net"}}
	kind := rapid.SampledFrom([]string{"Attention", "QAttention", "MultiHeadAttention", "DynamicQuantizeLSTM"}).Draw(t, "operator")
	steps, in, heads, size := n.draw("steps", 1, 4), n.draw("inputs", 2, 5), n.draw("heads", 2, 4), n.draw("size", 1, 4)
	hidden := heads * size
	x, y := n.value(1, steps, in), n.value(1, steps, hidden)
	n.g.Inputs = []int{x}
	byte8 := func(shape ...int) int {
		id := n.value(shape...)
		v := n.g.Values[id]
		v.Const, v.Type = codesOf(tensor.Int8, n.draw("seed", 1, 9), shape...), tensor.Int8
		return id
	}
	scale := func(shape ...int) int {
		id := n.value(shape...)
		n.g.Values[id].Const = scales(shape...)
		return id
	}
	zero := func(shape ...int) int {
		id := n.value(shape...)
		v := n.g.Values[id]
		v.Const, v.Type = tensor.New(tensor.Int8, shape...), tensor.Int8
		return id
	}
	fused := func(op string, attrs graph.Attrs, y int, in ...int) {
		n.node(op, attrs, y, in...)
		last := n.g.Nodes[len(n.g.Nodes)-1]
		last.Domain, last.Version = graph.Microsoft, 1
	}
	attrs := graph.Attrs{"num_heads": int64(heads), "unidirectional": int64(n.draw("causal", 0, 1))}
	switch kind {
	case "Attention":
		if n.draw("sizes", 0, 1) == 1 {
			attrs["qkv_hidden_sizes"] = []int64{int64(hidden), int64(hidden), int64(hidden)}
		}
		fused(kind, attrs, y, x, n.weights(in, 3*hidden), n.weights(3*hidden))
	case "QAttention":
		q, s, z := n.value(1, steps, in), n.value(), n.value()
		n.node("DynamicQuantizeLinear", nil, q, x)
		n.g.Nodes[0].Outputs = []int{q, s, z}
		n.g.Values[q].Type, n.g.Values[z].Type = tensor.Uint8, tensor.Uint8
		each := []int{}
		if n.draw("each output", 0, 1) == 1 {
			each = []int{3 * hidden}
		}
		fused(kind, attrs, y, q, byte8(in, 3*hidden), n.weights(3*hidden), s, scale(each...), -1, z, zero(each...))
	case "MultiHeadAttention":
		var three []int
		for range 3 {
			three = append(three, n.node("MatMul", nil, n.value(1, steps, hidden), x, n.weights(in, hidden)))
		}
		fused(kind, attrs, y, append(three, n.weights(3*hidden))...)
	default:
		turned := n.node("Transpose", graph.Attrs{"perm": []int64{1, 0, 2}}, n.value(steps, 1, in), x)
		ways := n.draw("directions", 1, 2)
		each := []int{ways}
		if n.draw("each output", 0, 1) == 1 {
			each = []int{ways, 4 * hidden}
		}
		all := n.value(steps, ways, 1, hidden)
		fused(kind, graph.Attrs{"hidden_size": int64(hidden), "direction": []string{"forward", "bidirectional"}[ways-1]}, all,
			turned, byte8(ways, in, 4*hidden), byte8(ways, hidden, 4*hidden), -1, -1, -1, -1, -1, scale(each...), zero(each...), scale(each...), zero(each...))
		y = n.node("ReduceSum", graph.Attrs{"keepdims": int64(0)}, n.value(steps, 1, hidden), all, n.ints(1))
	}
	out := n.draw("outputs", 1, 4)
	shape := append([]int{}, n.g.Values[y].Shape...)
	shape[2] = out
	n.g.Outputs = []int{n.node("MatMul", nil, n.value(shape...), y, n.weights(hidden, out))}
	return &graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17, graph.Microsoft: 1}, Graphs: []*graph.Graph{n.g}}
}
