package count

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestDeclared gives values as the file has them.
func TestDeclared(t *testing.T) {
	t.Parallel()
	c := tensor.New(tensor.Int8, 2)
	q := &tensor.Quant{Scale: []float32{1}}
	g := &graph.Graph{Values: []*graph.Value{
		{Type: tensor.Int8, Shape: []int{3}, HasShape: true, Quant: q},
		{Type: tensor.Int8, Const: c},
		{Type: tensor.Int8, Shape: []int{4}, HasShape: true, Const: c, Variable: true},
		{Type: tensor.Float32, Shape: []int{-1, 5}, HasShape: true, Placeholder: []int{1, 5}},
		{Type: tensor.Float32, Shape: []int{7}},
		{Type: tensor.Float32, HasShape: true},
	}}
	got := Declared(g, []int{0, 1, 2, 3, 4, 5, -1, 6})
	if len(got) != 8 || got[6] != nil || got[7] != nil || got[1] != c || got[0].Quant != q {
		t.Fatalf("%+v", got)
	}
	for i, want := range [][]int{{3}, {2}, {4}, {1, 5}, {-1}, nil} {
		if !slices.Equal(got[i].Shape, want) || i != 1 && got[i].Data != nil {
			t.Errorf("value %d: %v, want %v", i, got[i].Shape, want)
		}
	}
}

// TestTrafficOfTypes has sizes of what is read and written by type.
func TestTrafficOfTypes(t *testing.T) {
	t.Parallel()
	text := &tensor.Tensor{Type: tensor.String, Shape: []int{2}}
	float := &tensor.Tensor{Type: tensor.Float32, Shape: []int{2, 3}}
	four := &tensor.Tensor{Type: tensor.Int4, Shape: []int{3}}
	resource := &tensor.Tensor{Type: tensor.Resource, Shape: []int{}}
	open := &tensor.Tensor{Type: tensor.Float32, Shape: []int{-1}}
	sized := func(kind tensor.Type, shape ...int) *tensor.Tensor { return &tensor.Tensor{Type: kind, Shape: shape} }
	for _, c := range []struct {
		name          string
		op            string
		in, out       []*tensor.Tensor
		read, written int64 // -1 for unknown
	}{
		{"floats", "Add", []*tensor.Tensor{float, float}, []*tensor.Tensor{float}, 48, 24},
		{"half bytes", "Add", []*tensor.Tensor{four}, []*tensor.Tensor{four}, 2, 2},
		{"handles", "READ_VARIABLE", []*tensor.Tensor{resource}, []*tensor.Tensor{float}, 0, 24},
		{"texts that are not known", "Add", []*tensor.Tensor{text}, []*tensor.Tensor{text}, -1, -1},
		{"one of two not known", "Add", []*tensor.Tensor{float, open}, []*tensor.Tensor{float, open}, -1, -1},
		{"absent ones", "Add", []*tensor.Tensor{nil, float}, []*tensor.Tensor{nil, float}, 24, 24},
		{"a look-up reads what it returns", "GATHER", []*tensor.Tensor{open, four}, []*tensor.Tensor{float}, 26, 24},
		{"a look-up without result", "GATHER", []*tensor.Tensor{float, four}, nil, -1, 0},
		{"codes in blocks, with their scales", "GatherBlockQuantized", []*tensor.Tensor{sized(tensor.Uint8, 10, 4), four, sized(tensor.Float32, 10, 1)}, []*tensor.Tensor{sized(tensor.Float32, 2, 8)}, 8 + 2 + 8, 64},
		{"half bytes in blocks, all of them", "GatherBlockQuantized", []*tensor.Tensor{sized(tensor.Int4, 2, 8), four, sized(tensor.Float32, 2, 1)}, []*tensor.Tensor{sized(tensor.Float32, 9, 8)}, 8 + 2 + 8, 288},
		{"codes in blocks of no known number", "GatherBlockQuantized", []*tensor.Tensor{open, four, float}, []*tensor.Tensor{float}, -1, 24},
		{"embeddings", "EmbedLayerNormalization", []*tensor.Tensor{four, nil, sized(tensor.Float32, 1000, 3), sized(tensor.Float32, 500, 3), nil, float}, []*tensor.Tensor{float}, 2 + 24 + 24 + 24, 24},
		{"embeddings of codes", "QEmbedLayerNormalization", []*tensor.Tensor{four, nil, sized(tensor.Uint8, 1000, 3)}, []*tensor.Tensor{float}, 2 + 6, 24},
		{"shapes alone", "RANK", []*tensor.Tensor{float}, []*tensor.Tensor{four}, 0, 2},
		{"nothing", "Add", nil, nil, 0, 0},
	} {
		w := Count(&graph.Model{}, &graph.Graph{}, &graph.Node{Op: c.op}, c.in, c.out)
		number := func(p *int64) int64 {
			if p == nil {
				return -1
			}
			return *p
		}
		if number(w.BytesRead) != c.read || number(w.BytesWritten) != c.written || *w.Params != 0 || *w.WeightBytes != 0 {
			t.Errorf("%s: %d read and %d written, want %d and %d", c.name, number(w.BytesRead), number(w.BytesWritten), c.read, c.written)
		}
	}
	// A token reads the matrices of its experts, all tokens together each matrix once.
	for rows, want := range map[int]int64{1: 2 * 3 * 4 * 4, 9: 8 * 3 * 4 * 4} {
		n := &graph.Node{Domain: graph.Own, Op: "ExpertMatMul", Inputs: []int{-1, 0}, Attrs: graph.Attrs{"experts": int64(8), "N": int64(3)}}
		w := Count(&graph.Model{}, &graph.Graph{}, n, []*tensor.Tensor{nil, sized(tensor.Float32, 8, 3, 4)}, []*tensor.Tensor{sized(tensor.Float32, 1, rows, 2, 3)})
		if w.BytesRead == nil || *w.BytesRead != want {
			t.Errorf("%d rows read %v bytes of experts, want %d", rows, w.BytesRead, want)
		}
	}
	for rows, want := range map[int]int64{1: 2 * (10*16 + 10 + 16*5) * 4, 9: 8 * (10*16 + 10 + 16*5) * 4} {
		n := &graph.Node{Domain: graph.Microsoft, Op: "MoE", Inputs: []int{-1, -1, -1, -1, -1}, Attrs: graph.Attrs{"k": int64(2)}}
		w := Count(&graph.Model{}, &graph.Graph{}, n, []*tensor.Tensor{sized(tensor.Float32, rows, 16), nil, sized(tensor.Float32, 8, 10, 16), sized(tensor.Float32, 8, 10), sized(tensor.Float32, 8, 16, 5)}, []*tensor.Tensor{sized(tensor.Float32, rows, 16)})
		if w.BytesRead == nil || *w.BytesRead != want+int64(rows)*16*4 {
			t.Errorf("%d rows read %v bytes of experts, want %d", rows, w.BytesRead, want)
		}
	}
	// Rotary embeddings read a row of each of two tables for each of 2*3 tokens, all rows at most.
	table := sized(tensor.Float32, 100, 4)
	for _, x := range []struct {
		domain, op string
		tables     int // operand of the first
		in, table  *tensor.Tensor
		want       int64
	}{
		{"", "RotaryEmbedding", 1, sized(tensor.Float32, 2, 3, 16), table, 2 * 6 * 16},
		{"", "RotaryEmbedding", 1, sized(tensor.Float32, 2, 5, 3, 8), table, 2 * 6 * 16},
		{"", "RotaryEmbedding", 1, sized(tensor.Float32, 2, 3, 16), sized(tensor.Float32, 2, 3, 4), 2 * 6 * 16},
		{"", "RotaryEmbedding", 1, sized(tensor.Float32, 2, 3, 16), sized(tensor.Float32, 5, 4), 2 * 5 * 16},
		{"", "RotaryEmbedding", 1, sized(tensor.Float32, 2, 3, 16), open, -1},
		{graph.Microsoft, "RotaryEmbedding", 2, sized(tensor.Float32, 2, 3, 16), table, 2 * 6 * 16},
		{graph.Microsoft, "GroupQueryAttention", 7, sized(tensor.Float16, 2, 3, 16), sized(tensor.Float16, 100, 4), 2 * 6 * 8},
		{graph.Microsoft, "SparseAttention", 9, sized(tensor.Float32, 2, 3, 16), table, 2 * 6 * 16},
		{"other", "RotaryEmbedding", 1, sized(tensor.Float32, 2, 3, 16), table, 2 * 1600},
	} {
		n := &graph.Node{Domain: x.domain, Op: x.op}
		in := make([]*tensor.Tensor, x.tables+2)
		in[0], in[x.tables], in[x.tables+1] = x.in, x.table, x.table
		for k := range in {
			n.Inputs = append(n.Inputs, k)
			if in[k] == nil {
				n.Inputs[k] = -1
			}
		}
		all, _ := bytesOf(x.in)
		w := Count(&graph.Model{}, &graph.Graph{}, n, in, []*tensor.Tensor{x.in})
		if (w.BytesRead == nil) != (x.want < 0) || w.BytesRead != nil && *w.BytesRead-all != x.want {
			t.Errorf("%s %s of %v reads %v bytes of tables, want %d", x.domain, x.op, x.in.Shape, w.BytesRead, x.want)
		}
	}
	// What is a weight and what a shape.
	c := tensor.New(tensor.Int32, 3)
	for _, x := range []struct {
		name string
		op   string
		v    graph.Value
		want bool // as operand 0
	}{
		{"floats", "Add", graph.Value{Type: tensor.Float32, Const: c}, true},
		{"no constant", "Add", graph.Value{Type: tensor.Float32}, false},
		{"a variable", "Add", graph.Value{Type: tensor.Float32, Const: c, Variable: true}, false},
		{"an axis", "Squeeze", graph.Value{Type: tensor.Int32, Const: c}, false},
		{"an index", "Gather", graph.Value{Type: tensor.Int64, Const: c}, false},
		{"a condition", "Where", graph.Value{Type: tensor.Bool, Const: c}, false},
		{"a bias", "CONV_2D", graph.Value{Type: tensor.Int32, Const: c}, true},
		{"a bias in a quantised ONNX model", "DequantizeLinear", graph.Value{Type: tensor.Int32, Const: c}, true},
		{"quantised", "Add", graph.Value{Type: tensor.Int32, Const: c, Quant: &tensor.Quant{}}, true},
		{"texts", "Add", graph.Value{Type: tensor.String, Const: c}, false},
		{"a handle", "Add", graph.Value{Type: tensor.Resource, Const: c}, false},
		{"a sequence", "Add", graph.Value{Type: tensor.Sequence, Const: c}, false},
	} {
		if got := Weight(&graph.Node{Op: x.op}, 0, &x.v); got != x.want {
			t.Errorf("%s: a weight %v, want %v", x.name, got, x.want)
		}
	}
	if Weight(&graph.Node{Op: "DequantizeLinear"}, 2, &graph.Value{Type: tensor.Int32, Const: c}) {
		t.Error("the zero point of a bias counts as a weight")
	}
	for n, want := range map[int64]int64{-1: 0, 0: 0, 1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 1 << 20: 20, 1<<20 + 1: 21} {
		if got := log2(n); got != want {
			t.Errorf("log2 of %d is %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 9: "9", 10: "10", 123: "123"} {
		if got := itoa(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLoopBodies asks how often a loop runs whose condition is passed through, constant,
// or computed.
func TestLoopBodies(t *testing.T) {
	t.Parallel()
	truth := func(v byte) *tensor.Tensor { return &tensor.Tensor{Type: tensor.Bool, Data: []byte{v}} }
	node := func(op string, in, out int, attrs graph.Attrs) *graph.Node {
		n := &graph.Node{Op: op, Outputs: []int{out}, Attrs: attrs}
		if in >= 0 {
			n.Inputs = []int{in}
		}
		return n
	}
	body := func(values int, nodes ...*graph.Node) *graph.Graph {
		g := &graph.Graph{Inputs: []int{0, 1}, Outputs: []int{values - 1}, Nodes: nodes}
		for range values {
			g.Values = append(g.Values, &graph.Value{})
		}
		return g
	}
	same := body(2)
	same.Outputs = []int{1}
	constant := func(v byte) *graph.Graph {
		g := body(3)
		g.Values[2].Const = truth(v)
		return g
	}
	other := body(3)
	other.Values[2].Const = tensor.New(tensor.Int8, 1)
	outside := body(3)
	outside.Outputs = []int{9}
	noOutput, oneInput := body(2), body(2)
	noOutput.Outputs, oneInput.Inputs = nil, []int{0}
	ring := body(4, node("Identity", 3, 2, nil), node("Identity", 2, 3, nil))
	for _, c := range []struct {
		name string
		g    *graph.Graph
		want int64 // -1 for not known
	}{
		{"passed on", same, 5},
		{"through two identities", body(4, node("Identity", 1, 2, nil), node("Identity", 2, 3, nil)), 5},
		{"true", constant(1), 5},
		{"false", constant(0), -1},
		{"no truth value", other, -1},
		{"computed", body(3, node("Not", 1, 2, nil)), -1},
		{"made", body(3, node("Constant", -1, 2, graph.Attrs{"value": truth(1)})), 5},
		{"made false", body(3, node("Constant", -1, 2, graph.Attrs{"value": truth(0)})), -1},
		{"made of nothing", body(3, node("Constant", -1, 2, nil)), -1},
		{"of nothing", body(3), -1},
		{"an identity of nothing", body(3, node("Identity", -1, 2, nil)), -1},
		{"of a value that is absent", outside, -1},
		{"without outputs", noOutput, -1},
		{"without a condition", oneInput, -1},
		{"a ring", ring, -1},
	} {
		m := &graph.Model{Graphs: []*graph.Graph{{}, c.g}}
		n := &graph.Node{Op: "Loop", Attrs: graph.Attrs{"body": graph.GraphRef(1)}}
		for trips, most := range map[int64]int64{5: c.want, -3: min(c.want, 0)} {
			in := []*tensor.Tensor{tensor.From(tensor.Int64, []int{1}, []int64{trips}), truth(1)}
			got := Bodies(m, n, in, nil)
			if len(got) != 1 || got[0].Graph != 1 || (got[0].Times == nil) != (most < 0) || most >= 0 && *got[0].Times != most {
				t.Errorf("%s, %d: %+v, want %d", c.name, trips, got, most)
			}
		}
	}
	// A body that is absent, and a number of trips that is not a number.
	trips := tensor.From(tensor.Int64, []int{1}, []int64{5})
	two := tensor.From(tensor.Int64, []int{2}, []int64{5, 5})
	m := &graph.Model{Graphs: []*graph.Graph{{}, same}}
	for i, c := range []struct {
		body int
		in   []*tensor.Tensor
	}{{2, []*tensor.Tensor{trips}}, {-1, []*tensor.Tensor{trips}}, {1, []*tensor.Tensor{two}}, {1, []*tensor.Tensor{nil}}, {1, nil}, {1, []*tensor.Tensor{trips, {Type: tensor.Bool}}}} {
		got := Bodies(m, &graph.Node{Op: "Loop", Attrs: graph.Attrs{"body": graph.GraphRef(c.body)}}, c.in, nil)
		if len(got) != 1 || got[0].Times != nil {
			t.Errorf("%d: %+v, want one of unknown number", i, got)
		}
	}
}

// TestPackedParams: bytes that hold several weights count as these weights, without those that
// only fill a block.
func TestPackedParams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		domain, op string
		attrs      graph.Attrs
		operand    int
		typ        tensor.Type
		elements   int
		want       int64
	}{
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(64), "N": int64(64), "block_size": int64(32)}, 1, tensor.Uint8, 64 * 2 * 16, 64 * 64},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(40), "N": int64(3), "block_size": int64(32)}, 1, tensor.Uint8, 3 * 2 * 16, 3 * 40},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(96), "N": int64(3), "block_size": int64(32)}, 3, tensor.Uint8, 3 * 2, 3 * 3},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(96), "N": int64(3), "block_size": int64(32)}, 3, tensor.Float32, 9, 9},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(96), "N": int64(3), "block_size": int64(32)}, 2, tensor.Float32, 9, 9},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(64), "N": int64(2), "block_size": int64(32), "bits": int64(2)}, 1, tensor.Uint8, 32, 128},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(64), "N": int64(2), "block_size": int64(32), "bits": int64(8)}, 1, tensor.Uint8, 128, 128},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(64), "N": int64(2), "bits": int64(0)}, 1, tensor.Uint8, 128, 128},
		{graph.Microsoft, "MatMulNBits", graph.Attrs{"K": int64(1) << 40, "N": int64(1) << 40}, 1, tensor.Uint8, 128, 256},
		{graph.Microsoft, "GatherBlockQuantized", nil, 0, tensor.Uint8, 100, 200},
		{graph.Microsoft, "GatherBlockQuantized", nil, 0, tensor.Int4, 100, 100},
		{graph.Microsoft, "QMoE", graph.Attrs{"expert_weight_bits": int64(8)}, 2, tensor.Uint8, 100, 100},
		{graph.Microsoft, "QMoE", nil, 2, tensor.Uint8, 100, 200},
		{graph.Microsoft, "MatMulBnb4", graph.Attrs{"K": int64(10), "N": int64(3)}, 1, tensor.Uint8, 15, 30},
		{graph.Microsoft, "Attention", nil, 1, tensor.Uint8, 100, 100},
		{"local", "MatMulNBits", nil, 1, tensor.Uint8, 100, 100},
	} {
		v := &graph.Value{Type: tt.typ, Const: &tensor.Tensor{Type: tt.typ, Shape: []int{tt.elements}}}
		n := &graph.Node{Domain: tt.domain, Op: tt.op, Attrs: tt.attrs}
		if got := Params(n, tt.operand, v); got != tt.want {
			t.Errorf("%s %v, operand %d: %d parameters, want %d", tt.op, tt.attrs, tt.operand, got, tt.want)
		}
	}
}
